// Ops that select or scatter by integer indices. Scattering adds, in the order of the indices, so that results are reproducible.
import { type Dim, sameShape, sizeOf } from "./dims.ts";
import { GraphError } from "./errors.ts";
import { reshape, zeros } from "./shape-ops.ts";
import { apply1, describe, type Op, type Tensor } from "./tensor.ts";

/** Inputs: the table, the indices along `axis` and, where every index is taken at most once, the inverse map. */
const gatherOp: Op<{ axis: number }> = {
  name: "gather",
  infer: ([table, indices], { axis }) => [
    {
      dtype: table!.dtype,
      shape: [...table!.shape.slice(0, axis), ...indices!.shape, ...table!.shape.slice(axis + 1)],
    },
  ],
  emit: (emitter, { inputs, outputs, attributes: { axis } }) =>
    emitter.node("Gather", inputs.slice(0, 2), outputs, { axis }),
  gradient: ({ inputs: [table, indices, inverse], cotangents: [d], attributes: { axis } }) => {
    const count = sizeOf(indices!.shape);
    const flat = reshape(d!, [...table!.shape.slice(0, axis), count, ...table!.shape.slice(axis + 1)]);
    if (inverse) return [gather(flat, inverse, axis)];
    if (axis === 0) return [scatterAddRows(reshape(indices!, [count]), flat, table!.shape[0]!)];
    throw new GraphError("graph/gradient", `A gather along axis ${axis} has a gradient only where it is one-to-one.`);
  },
};

const scatterAddRowsOp: Op<{ rows: Dim }> = {
  name: "scatterAddRows",
  infer: ([indices, updates], { rows }) => {
    if (indices!.shape.length !== 1 || updates!.shape[0] !== indices!.shape[0]) {
      throw new GraphError("graph/shape", `scatterAddRows cannot add ${describe(updates!)} at ${describe(indices!)}.`);
    }
    return [{ dtype: "f32", shape: [rows, ...updates!.shape.slice(1)] }];
  },
  emit: (emitter, { inputs, outputs, inputTypes, outputTypes }) => {
    const rank = inputTypes[1]!.shape.length;
    const [column, expanded, empty] = [emitter.fresh("column"), emitter.fresh("expanded"), emitter.fresh("empty")];
    emitter.node("Unsqueeze", [inputs[0]!, emitter.int64([...Array(rank).keys()].slice(1))], [column]);
    emitter.node("Expand", [column, emitter.shapeValue(inputTypes[1]!.shape)], [expanded]);
    emitter.node("ConstantOfShape", [emitter.shapeValue(outputTypes[0]!.shape)], [empty]);
    emitter.node("ScatterElements", [empty, expanded, inputs[1]!], outputs, { axis: 0, reduction: "add" });
  },
  gradient: ({ inputs: [indices], cotangents: [d] }) => [undefined, gather(d!, indices!)],
};

/** Along the last axis. */
const gatherElementsOp: Op<undefined> = {
  name: "gatherElements",
  infer: ([x, indices]) => {
    if (sameShape(x!.shape.slice(0, -1), indices!.shape.slice(0, -1)))
      return [{ dtype: x!.dtype, shape: indices!.shape }];
    throw new GraphError("graph/shape", `gatherElements cannot read ${describe(x!)} at ${describe(indices!)}.`);
  },
  emit: (emitter, { inputs, outputs }) => emitter.node("GatherElements", inputs, outputs, { axis: -1 }),
  gradient: ({ inputs: [x, indices], cotangents: [d] }) => [scatterAddElements(zeros(x!.shape), indices!, d!)],
};

const scatterAddElementsOp: Op<undefined> = {
  name: "scatterAddElements",
  infer: ([base, indices, updates]) => {
    if (sameShape(indices!.shape, updates!.shape)) return [base!];
    throw new GraphError(
      "graph/shape",
      `scatterAddElements cannot add ${describe(updates!)} at ${describe(indices!)}.`,
    );
  },
  emit: (emitter, { inputs, outputs }) =>
    emitter.node("ScatterElements", inputs, outputs, { axis: -1, reduction: "add" }),
  gradient: ({ inputs: [, indices], cotangents: [d] }) => [d, undefined, gatherElements(d!, indices!)],
};

/** Entries of `table` along an axis (rows by default); the indices' shape takes that axis's place. */
export function gather(table: Tensor, indices: Tensor, axis = 0): Tensor {
  return apply1(gatherOp, [table, indices], { axis });
}

/**
 * `gather` for an arrangement that takes each entry at most once. `inverse` says where in the flattened result each entry of the
 * table went; one that went nowhere must point at an element whose cotangent is zero. The gradient is then a gather too.
 */
export function gatherOnce(table: Tensor, indices: Tensor, inverse: Tensor, axis = 0): Tensor {
  return apply1(gatherOp, [table, indices, inverse], { axis });
}

/** A tensor of `rows` rows, with `updates[i]` added at row `indices[i]`. */
export function scatterAddRows(indices: Tensor, updates: Tensor, rows: Dim): Tensor {
  return apply1(scatterAddRowsOp, [indices, updates], { rows });
}

export function gatherElements(x: Tensor, indices: Tensor): Tensor {
  return apply1(gatherElementsOp, [x, indices], undefined);
}

export function scatterAddElements(base: Tensor, indices: Tensor, updates: Tensor): Tensor {
  return apply1(scatterAddElementsOp, [base, indices, updates], undefined);
}
