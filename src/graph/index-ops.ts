// Ops that select or scatter by integer indices. Scattering adds, in the order of the indices, so that results are reproducible.
import { type Dim, evaluateShape, sameShape, sizeOf } from "./dims.ts";
import { GraphError } from "./errors.ts";
import { at, elementCount, fill } from "./ndarray.ts";
import { reshape, zeros } from "./shape-ops.ts";
import { apply1, describe, type Op, type Tensor } from "./tensor.ts";

/** Inputs: the table, the row indices and, where every row is taken at most once, the inverse map. */
const gatherOp: Op<undefined> = {
  name: "gather",
  infer: ([table, indices]) => [{ dtype: table!.dtype, shape: [...indices!.shape, ...table!.shape.slice(1)] }],
  emit: (emitter, { inputs, outputs }) => emitter.node("Gather", inputs.slice(0, 2), outputs, { axis: 0 }),
  interpret: ([table, indices], { outputTypes, bindings }) => [
    fill(evaluateShape(outputTypes[0]!.shape, bindings), (index) => {
      const row = at(indices!, index.slice(0, indices!.shape.length));
      return at(table!, [row, ...index.slice(indices!.shape.length)]);
    }),
  ],
  gradient: ({ inputs: [table, indices, inverse], cotangents: [d] }) => {
    const count = sizeOf(indices!.shape);
    const flat = reshape(d!, [count, ...table!.shape.slice(1)]);
    return [inverse ? gather(flat, inverse) : scatterAddRows(reshape(indices!, [count]), flat, table!.shape[0]!)];
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
  interpret: ([indices, updates], { outputTypes, bindings }) => {
    const result = fill(evaluateShape(outputTypes[0]!.shape, bindings), () => 0);
    const width = elementCount(result.shape.slice(1));
    for (const [position, row] of indices!.data.entries()) {
      for (let i = 0; i < width; i++) result.data[row * width + i]! += updates!.data[position * width + i]!;
    }
    return [result];
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
  interpret: ([x, indices]) => [fill(indices!.shape, (index) => at(x!, [...index.slice(0, -1), at(indices!, index)]))],
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
  interpret: ([base, indices, updates]) => {
    const [width, count] = [base!.shape.at(-1)!, indices!.shape.at(-1)!];
    const data = Float64Array.from(base!.data);
    for (const [position, column] of indices!.data.entries()) {
      data[Math.floor(position / count) * width + column]! += updates!.data[position]!;
    }
    return [{ shape: base!.shape, data }];
  },
  gradient: ({ inputs: [, indices], cotangents: [d] }) => [d, undefined, gatherElements(d!, indices!)],
};

/** Rows of `table`: the result has the shape of `indices` followed by a row's shape. */
export function gather(table: Tensor, indices: Tensor): Tensor {
  return apply1(gatherOp, [table, indices], undefined);
}

/**
 * `gather` for an arrangement that takes each row at most once. `inverse` says where in the flattened result each row of the
 * table went; a row that went nowhere must point at an element whose cotangent is zero. The gradient is then a gather too.
 */
export function gatherOnce(table: Tensor, indices: Tensor, inverse: Tensor): Tensor {
  return apply1(gatherOp, [table, indices, inverse], undefined);
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
