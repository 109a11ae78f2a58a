// Ops that work element by element, with NumPy's broadcasting.
import { broadcastShapes, type Dim } from "./dims.ts";
import { GraphError } from "./errors.ts";
import { reduceTo } from "./reduce-ops.ts";
import { scalar, scalarValue } from "./source-ops.ts";
import { apply1, describe, type Op, type Tensor, type TensorType } from "./tensor.ts";

function broadcastTypes(name: string, a: TensorType, b: TensorType): Dim[] {
  const shape = a.dtype === b.dtype ? broadcastShapes(a.shape, b.shape) : undefined;
  if (shape) return shape;
  throw new GraphError("graph/shape", `${name} cannot combine ${describe(a)} with ${describe(b)}.`);
}

type BinaryGradient = (call: { a: Tensor; b: Tensor; d: Tensor }) => [() => Tensor, () => Tensor];

/** `gradient`: what each operand gets of a cotangent d, as the result has it. */
function binary(name: string, onnx: string, gradient?: BinaryGradient, result: "f32" | "bool" = "f32") {
  const op: Op<undefined> = {
    name,
    infer: ([a, b]) => [{ dtype: result, shape: broadcastTypes(name, a!, b!) }],
    emit: (emitter, { inputs, outputs }) => emitter.node(onnx, inputs, outputs),
  };
  if (gradient) {
    op.gradient = ({ inputs, cotangents: [d], needed }) => {
      const parts = gradient({ a: inputs[0]!, b: inputs[1]!, d: d! });
      return parts.map((part, i) => (needed[i] ? reduceTo(part(), inputs[i]!.shape) : undefined));
    };
  }
  return (a: Tensor, b: Tensor): Tensor => apply1(op, [a, b], undefined);
}

const sumOf = binary("add", "Add", ({ d }) => [() => d, () => d]);
const difference = binary("subtract", "Sub", ({ d }) => [() => d, () => negate(d)]);
const product = binary("multiply", "Mul", ({ a, b, d }) => [() => multiply(d, b), () => multiply(d, a)]);
// Where the operands tie, the gradient goes to the first.
export const minimum = binary("minimum", "Min", ({ a, b, d }) => [
  () => where(greater(a, b), scalar(0), d),
  () => where(greater(a, b), d, scalar(0)),
]);
export const maximum = binary("maximum", "Max", ({ a, b, d }) => [
  () => where(less(a, b), scalar(0), d),
  () => where(less(a, b), d, scalar(0)),
]);
export const less = binary("less", "Less", undefined, "bool");
export const greater = binary("greater", "Greater", undefined, "bool");

export function add(a: Tensor, b: Tensor): Tensor {
  if (scalarValue(b) === 0) return a;
  if (scalarValue(a) === 0) return b;
  return sumOf(a, b);
}

export function subtract(a: Tensor, b: Tensor): Tensor {
  return scalarValue(b) === 0 ? a : difference(a, b);
}

export function multiply(a: Tensor, b: Tensor): Tensor {
  if (scalarValue(b) === 1) return a;
  if (scalarValue(a) === 1) return b;
  return product(a, b);
}

/** `gradient`: what x gets of a cotangent d, given the result y. */
function unary(name: string, onnx: string, gradient: (d: Tensor, y: Tensor) => Tensor) {
  const op: Op<undefined> = {
    name,
    infer: ([x]) => [{ dtype: "f32", shape: x!.shape }],
    emit: (emitter, { inputs, outputs }) => emitter.node(onnx, inputs, outputs),
    gradient: ({ outputs, cotangents }) => [gradient(cotangents[0]!, outputs[0]!)],
  };
  return (x: Tensor): Tensor => apply1(op, [x], undefined);
}

export const negate = unary("negate", "Neg", (d) => negate(d));
export const exp = unary("exp", "Exp", (d, y) => multiply(d, y));
export const sigmoid = unary("sigmoid", "Sigmoid", (d, y) => multiply(d, subtract(y, multiply(y, y))));

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

export const where = (condition: Tensor, a: Tensor, b: Tensor): Tensor => apply1(whereOp, [condition, a, b], undefined);
