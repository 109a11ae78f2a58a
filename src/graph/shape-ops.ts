// Ops that move elements around without computing: reshape, transpose, concatenate, split.
import { addDims, type Dim, type Shape, sameShape, sizeOf } from "./dims.ts";
import { GraphError } from "./errors.ts";
import { apply, apply1, axisOf, describe, type Op, type Tensor } from "./tensor.ts";

const reshapeOp: Op<{ shape: Shape }> = {
  name: "reshape",
  infer: ([x], { shape }) => {
    if (sizeOf(x!.shape) === sizeOf(shape)) return [{ dtype: x!.dtype, shape }];
    throw new GraphError("graph/shape", `${describe(x!)} cannot be reshaped to [${shape.join(", ")}].`);
  },
  emit: (emitter, { inputs, outputs, inputTypes, attributes: { shape } }) => {
    // ONNX spells "as in the input" 0 and "whatever is left" -1; only shapes beyond that are computed in the graph.
    const literal = shape.map((dim, axis) =>
      typeof dim === "number" ? dim : dim === inputTypes[0]!.shape[axis] ? 0 : -1,
    );
    const simple = literal.filter((dim) => dim === -1).length <= 1 && !shape.includes(0);
    emitter.node("Reshape", [inputs[0]!, simple ? emitter.int64(literal) : emitter.shapeValue(shape)], outputs);
  },
  gradient: ({ inputs: [x], cotangents: [d] }) => [reshape(d!, x!.shape)],
};

const transposeOp: Op<{ order: readonly number[] }> = {
  name: "transpose",
  infer: ([x], { order }) => {
    if (order.length !== x!.shape.length || new Set(order).size !== order.length) {
      throw new GraphError("graph/shape", `${describe(x!)} cannot be transposed by [${order.join(", ")}].`);
    }
    return [{ dtype: x!.dtype, shape: order.map((axis) => x!.shape[axis]!) }];
  },
  emit: (emitter, { inputs, outputs, attributes: { order } }) =>
    emitter.node("Transpose", inputs, outputs, { perm: order }),
  gradient: ({ cotangents: [d], attributes: { order } }) => [transpose(d!, inverseOrder(order))],
};

function inverseOrder(order: readonly number[]): number[] {
  return order.map((_, axis) => order.indexOf(axis));
}

const concatOp: Op<{ axis: number }> = {
  name: "concat",
  infer: (inputs, { axis }) => {
    const first = inputs[0]!;
    for (const other of inputs) {
      if (other.dtype !== first.dtype || !sameShape(without(other.shape, axis), without(first.shape, axis))) {
        throw new GraphError(
          "graph/shape",
          `concat cannot join ${describe(first)} and ${describe(other)} along axis ${axis}.`,
        );
      }
    }
    const joined = inputs.map((type) => type.shape[axis]!).reduce(addDims);
    return [{ dtype: first.dtype, shape: first.shape.map((dim, i) => (i === axis ? joined : dim)) }];
  },
  emit: (emitter, { inputs, outputs, attributes: { axis } }) => emitter.node("Concat", inputs, outputs, { axis }),
  gradient: ({ inputs, cotangents: [d], attributes: { axis } }) =>
    split(
      d!,
      axis,
      inputs.map(({ shape }) => shape[axis]!),
    ),
};

function without(shape: Shape, axis: number): Dim[] {
  return shape.filter((_, i) => i !== axis);
}

const zerosOp: Op<{ shape: Shape }> = {
  name: "zeros",
  infer: (_, { shape }) => [{ dtype: "f32", shape }],
  emit: (emitter, { outputs, attributes: { shape } }) =>
    emitter.node("ConstantOfShape", [emitter.shapeValue(shape)], outputs),
};

/** The opposite of concat. */
const splitOp: Op<{ axis: number; sizes: readonly Dim[] }> = {
  name: "split",
  infer: ([x], { axis, sizes }) => {
    if (sizes.reduce(addDims) !== x!.shape[axis]) {
      throw new GraphError(
        "graph/shape",
        `${describe(x!)} cannot be split into ${sizes.join(" and ")} along axis ${axis}.`,
      );
    }
    return sizes.map((size) => ({ dtype: x!.dtype, shape: x!.shape.map((dim, i) => (i === axis ? size : dim)) }));
  },
  emit: (emitter, { inputs, outputs, attributes: { axis, sizes } }) =>
    emitter.node("Split", [inputs[0]!, emitter.shapeValue(sizes)], outputs, { axis }),
  gradient: ({ outputs, cotangents, attributes: { axis } }) => [
    concat(
      outputs.map((output, i) => cotangents[i] ?? zeros(output.shape)),
      axis,
    ),
  ],
};

/** Zeros of any shape, also one that is only known when the graph runs. */
export const zeros = (shape: Shape): Tensor => apply1(zerosOp, [], { shape });

/** The same elements under another shape of the same size. */
export function reshape(x: Tensor, shape: Shape): Tensor {
  return sameShape(x.shape, shape) ? x : apply1(reshapeOp, [x], { shape });
}

/** Axis i of the result is axis `order[i]` of `x`. */
export function transpose(x: Tensor, order: readonly number[]): Tensor {
  return order.every((axis, i) => axis === i) ? x : apply1(transposeOp, [x], { order });
}

export function concat(parts: readonly Tensor[], axis: number): Tensor {
  return parts.length === 1 ? parts[0]! : apply1(concatOp, parts, { axis: axisOf(axis, parts[0]!.shape.length) });
}

/** Consecutive parts along one axis, with the given sizes. */
export function split(x: Tensor, axis: number, sizes: readonly Dim[]): Tensor[] {
  return apply(splitOp, [x], { axis: axisOf(axis, x.shape.length), sizes });
}
