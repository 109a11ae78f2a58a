// Ops that work element by element, with NumPy's broadcasting.
import { broadcastShapes, type Dim } from "./dims.ts";
import { GraphError } from "./errors.ts";
import { reduceTo } from "./reduce-ops.ts";
import { scalar, scalarValue } from "./source-ops.ts";
import { apply1, describe, type GradientCall, type Op, type Tensor, type TensorType } from "./tensor.ts";

function broadcastTypes(name: string, a: TensorType, b: TensorType): Dim[] {
  const shape = a.dtype === b.dtype ? broadcastShapes(a.shape, b.shape) : undefined;
  if (shape) return shape;
  throw new GraphError("graph/shape", `${name} cannot combine ${describe(a)} with ${describe(b)}.`);
}

function binary(
  name: string,
  onnx: string,
  gradient?: (
    call: GradientCall<undefined> & { a: Tensor; b: Tensor; y: Tensor; d: Tensor },
  ) => [() => Tensor, () => Tensor],
  result: "f32" | "bool" = "f32",
): Op<undefined> {
  const op: Op<undefined> = {
    name,
    infer: ([a, b]) => [{ dtype: result, shape: broadcastTypes(name, a!, b!) }],
    emit: (emitter, { inputs, outputs }) => emitter.node(onnx, inputs, outputs),
  };
  if (gradient) {
    op.gradient = (call) => {
      const [a, b] = call.inputs as [Tensor, Tensor];
      const parts = gradient({ ...call, a, b, y: call.outputs[0]!, d: call.cotangents[0]! });
      return parts.map((part, i) => (call.needed[i] ? reduceTo(part(), call.inputs[i]!.shape) : undefined));
    };
  }
  return op;
}

const addOp = binary("add", "Add", ({ d }) => [() => d, () => d]);
const subtractOp = binary("subtract", "Sub", ({ d }) => [() => d, () => negate(d)]);
const multiplyOp = binary("multiply", "Mul", ({ a, b, d }) => [() => multiply(d, b), () => multiply(d, a)]);
// Where the operands tie, the gradient goes to the first.
const minimumOp = binary("minimum", "Min", ({ a, b, d }) => [
  () => where(greater(a, b), scalar(0), d),
  () => where(greater(a, b), d, scalar(0)),
]);
const maximumOp = binary("maximum", "Max", ({ a, b, d }) => [
  () => where(less(a, b), scalar(0), d),
  () => where(less(a, b), d, scalar(0)),
]);
const lessOp = binary("less", "Less", undefined, "bool");
const greaterOp = binary("greater", "Greater", undefined, "bool");

function unary(name: string, onnx: string, gradient: (d: Tensor, x: Tensor, y: Tensor) => Tensor): Op<undefined> {
  return {
    name,
    infer: ([x]) => [{ dtype: "f32", shape: x!.shape }],
    emit: (emitter, { inputs, outputs }) => emitter.node(onnx, inputs, outputs),
    gradient: ({ inputs, outputs, cotangents }) => [gradient(cotangents[0]!, inputs[0]!, outputs[0]!)],
  };
}

const negateOp = unary("negate", "Neg", (d) => negate(d));
const expOp = unary("exp", "Exp", (d, _, y) => multiply(d, y));
const sigmoidOp = unary("sigmoid", "Sigmoid", (d, _, y) => multiply(d, subtract(y, multiply(y, y))));
const whereOp: Op<undefined> = {
  name: "where",
  infer: ([condition, a, b]) => {
    const shape = broadcastShapes(condition!.shape, broadcastTypes("where", a!, b!));
    if (shape) return [{ dtype: a!.dtype, shape }];
    throw new GraphError(
      "graph/shape",
      `where cannot choose by ${describe(condition!)} between ${describe(a!)} and ${describe(b!)}.`,
    );
  },
  emit: (emitter, { inputs, outputs }) => emitter.node("Where", inputs, outputs),
  gradient: ({ inputs: [condition, a, b], cotangents: [d], needed }) => [
    undefined,
    needed[1] ? reduceTo(where(condition!, d!, scalar(0)), a!.shape) : undefined,
    needed[2] ? reduceTo(where(condition!, scalar(0), d!), b!.shape) : undefined,
  ],
};

export function add(a: Tensor, b: Tensor): Tensor {
  if (scalarValue(b) === 0) return a;
  if (scalarValue(a) === 0) return b;
  return apply1(addOp, [a, b], undefined);
}

export function subtract(a: Tensor, b: Tensor): Tensor {
  return scalarValue(b) === 0 ? a : apply1(subtractOp, [a, b], undefined);
}

export function multiply(a: Tensor, b: Tensor): Tensor {
  if (scalarValue(b) === 1) return a;
  if (scalarValue(a) === 1) return b;
  return apply1(multiplyOp, [a, b], undefined);
}

export const minimum = (a: Tensor, b: Tensor): Tensor => apply1(minimumOp, [a, b], undefined);
export const maximum = (a: Tensor, b: Tensor): Tensor => apply1(maximumOp, [a, b], undefined);
export const less = (a: Tensor, b: Tensor): Tensor => apply1(lessOp, [a, b], undefined);
export const greater = (a: Tensor, b: Tensor): Tensor => apply1(greaterOp, [a, b], undefined);
export const where = (condition: Tensor, a: Tensor, b: Tensor): Tensor => apply1(whereOp, [condition, a, b], undefined);
export const negate = (x: Tensor): Tensor => apply1(negateOp, [x], undefined);
export const exp = (x: Tensor): Tensor => apply1(expOp, [x], undefined);
export const sigmoid = (x: Tensor): Tensor => apply1(sigmoidOp, [x], undefined);
