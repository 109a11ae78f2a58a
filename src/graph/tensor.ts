// A graph is the set of nodes that its output tensors reach: there is no builder object to carry around. A node applies an op to
// tensors; an op knows its result's shape, its ONNX form and its gradient.
import { type Dim, type Shape, sameShape } from "./dims.ts";
import { GraphError } from "./errors.ts";
import type { Emitter } from "./onnx.ts";

export type DType = "f32" | "i32" | "bool";

export interface TensorType {
  dtype: DType;
  shape: Shape;
}

export interface Op<Attributes = unknown> {
  readonly name: string;
  /** True: output 0 is input 0 and nothing is computed. The other inputs matter to the gradient only. */
  readonly alias?: true;
  infer(inputs: readonly TensorType[], attributes: Attributes): TensorType[];
  /** Adds ONNX nodes that compute `outputs` (value names) from `inputs`. */
  emit(emitter: Emitter, call: EmitCall<Attributes>): void;
  /**
   * The cotangent of each input, given those of the outputs (undefined: zero). Only the inputs flagged in `needed` matter.
   * Ops without it carry no gradient (comparisons, index arithmetic).
   */
  gradient?(call: GradientCall<Attributes>): readonly (Tensor | undefined)[];
}

export interface EmitCall<Attributes> {
  inputs: readonly string[];
  outputs: readonly string[];
  inputTypes: readonly TensorType[];
  outputTypes: readonly TensorType[];
  attributes: Attributes;
}

export interface GradientCall<Attributes> {
  inputs: readonly Tensor[];
  outputs: readonly Tensor[];
  cotangents: readonly (Tensor | undefined)[];
  needed: readonly boolean[];
  attributes: Attributes;
}

export interface Node {
  readonly id: number;
  // biome-ignore lint/suspicious/noExplicitAny: a node holds any op together with that op's own attributes
  readonly op: Op<any>;
  readonly inputs: readonly Tensor[];
  readonly attributes: unknown;
  readonly outputs: readonly Tensor[];
}

export interface Tensor extends TensorType {
  readonly node: Node;
  /** Which of its node's outputs this is. */
  readonly index: number;
}

let nextId = 0;

/** Applies an op; the results' shapes are inferred, and wrong operands are refused here. */
export function apply<Attributes>(op: Op<Attributes>, inputs: readonly Tensor[], attributes: Attributes): Tensor[] {
  const types = op.infer(inputs, attributes);
  const outputs: Tensor[] = [];
  const node: Node = { id: nextId++, op, inputs: [...inputs], attributes, outputs };
  for (const [index, type] of types.entries()) outputs.push({ ...type, node, index });
  return outputs;
}

export function apply1<Attributes>(op: Op<Attributes>, inputs: readonly Tensor[], attributes: Attributes): Tensor {
  return apply(op, inputs, attributes)[0]!;
}

export function describe(type: TensorType): string {
  return `${type.dtype}[${type.shape.join(", ")}]`;
}

export function requireShape(what: string, type: TensorType, shape: Shape): void {
  if (!sameShape(type.shape, shape)) {
    throw new GraphError("graph/shape", `${what} is ${describe(type)}; its shape must be [${shape.join(", ")}].`);
  }
}

/** The axis counted from the front. */
export function axisOf(axis: number, rank: number): number {
  return axis < 0 ? axis + rank : axis;
}

/** A dimension that an op needs as a number. */
export function staticDim(what: string, dim: Dim): number {
  if (typeof dim === "number") return dim;
  throw new GraphError("graph/shape", `${what} has the size "${dim}"; it must be known when the graph is built.`);
}
