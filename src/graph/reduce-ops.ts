// Sums over axes and their opposite, broadcasting.
import { type Shape, sameShape } from "./dims.ts";
import { reshape } from "./shape-ops.ts";
import { apply1, axisOf, type Op, type Tensor } from "./tensor.ts";

/** The summed axes stay, with size 1. */
const sumOp: Op<{ axes: readonly number[] }> = {
  name: "sum",
  infer: ([x], { axes }) => [{ dtype: "f32", shape: x!.shape.map((dim, axis) => (axes.includes(axis) ? 1 : dim)) }],
  emit: (emitter, { inputs, outputs, attributes: { axes } }) =>
    emitter.node("ReduceSum", [inputs[0]!, emitter.int64(axes)], outputs, { keepdims: 1 }),
  gradient: ({ inputs: [x], cotangents: [d] }) => [broadcastTo(d!, x!.shape)],
};

const broadcastOp: Op<{ shape: Shape }> = {
  name: "broadcast",
  infer: ([x], { shape }) => [{ dtype: x!.dtype, shape }],
  emit: (emitter, { inputs, outputs, attributes: { shape } }) =>
    emitter.node("Expand", [inputs[0]!, emitter.shapeValue(shape)], outputs),
  gradient: ({ inputs: [x], cotangents: [d] }) => [reduceTo(d!, x!.shape)],
};

/** Sums over the given axes (all of them when none are named). */
export function sum(x: Tensor, axes?: readonly number[], options: { keepDims?: boolean } = {}): Tensor {
  const summed = (axes ?? x.shape.map((_, axis) => axis)).map((axis) => axisOf(axis, x.shape.length));
  if (summed.length === 0) return x;
  const total = apply1(sumOp, [x], { axes: summed });
  return options.keepDims
    ? total
    : reshape(
        total,
        x.shape.filter((_, axis) => !summed.includes(axis)),
      );
}

export function broadcastTo(x: Tensor, shape: Shape): Tensor {
  return sameShape(x.shape, shape) ? x : apply1(broadcastOp, [x], { shape });
}

/** Undoes a broadcast: sums over the axes that `shape` lacks or has with size 1. */
export function reduceTo(x: Tensor, shape: Shape): Tensor {
  if (sameShape(x.shape, shape)) return x;
  const extra = x.shape.length - shape.length;
  if (extra < 0) return broadcastTo(x, shape);
  const repeated = (axis: number): boolean => axis >= extra && shape[axis - extra] === 1 && x.shape[axis] !== 1;
  const axes = x.shape.map((_, axis) => axis).filter((axis) => axis < extra || repeated(axis));
  const summed = sum(x, axes, { keepDims: true });
  return broadcastTo(reshape(summed, summed.shape.slice(extra)), shape);
}
