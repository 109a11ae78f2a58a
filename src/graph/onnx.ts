// The ONNX graph under construction. Ops add their nodes through it; it names values, keeps integer constants, and computes
// shapes that are only known when the graph runs from the shapes of the inputs.

import { MessageWriter } from "../core/protobuf.ts";
import { type Dim, type Shape, sumOfProducts } from "./dims.ts";
import { GraphError } from "./errors.ts";
import type { DType, TensorType } from "./tensor.ts";

/** A subgraph given as a node's attribute. */
export interface Subgraph {
  graph: MessageWriter;
}

export type AttributeValue = number | string | readonly number[] | Subgraph;

/** ONNX's element types. */
const elementTypes: Record<DType, number> = { f32: 1, i32: 6, bool: 9 };
const INT64 = 7;
/** Attributes that ONNX defines as floats; every other number is an integer. */
const floatAttributes = new Set(["alpha", "beta", "epsilon"]);
const attributeTypes = { float: 1, int: 2, string: 3, graph: 5, ints: 7 };

/** ONNX Runtime's own operator set, and what graphs use of it. */
const CONTRIB_DOMAIN = "com.microsoft";
const contribOps = new Set(["FusedMatMul", "RotaryEmbedding"]);

export class Emitter {
  readonly #nodes: MessageWriter[] = [];
  readonly #initializers: MessageWriter[] = [];
  /** Where each named dimension can be read: an input and one of its axes. */
  readonly #dimensions: ReadonlyMap<string, { input: string; axis: number }>;
  readonly #parent: Emitter | undefined;
  readonly #names: { next: number };
  readonly #int64s = new Map<string, string>();
  readonly #shapes = new Map<string, string>();

  constructor(dimensions: ReadonlyMap<string, { input: string; axis: number }>, parent?: Emitter) {
    this.#dimensions = dimensions;
    this.#parent = parent;
    this.#names = parent ? parent.#names : { next: 0 };
  }

  /** An emitter for a loop's body; shapes and integer constants stay in the outermost graph. */
  child(): Emitter {
    return new Emitter(this.#dimensions, this);
  }

  fresh(hint: string): string {
    return `${hint}_${this.#names.next++}`;
  }

  node(
    type: string,
    inputs: readonly string[],
    outputs: readonly string[],
    attributes: Readonly<Record<string, AttributeValue>> = {},
  ): void {
    const message = new MessageWriter();
    for (const name of inputs) message.string(1, name);
    for (const name of outputs) message.string(2, name);
    message.string(3, this.fresh(type)).string(4, type);
    for (const [name, value] of Object.entries(attributes)) message.message(5, encodeAttribute(name, value));
    if (contribOps.has(type)) message.string(7, CONTRIB_DOMAIN);
    this.#nodes.push(message);
  }

  initializer(
    name: string,
    { dtype, shape, data }: { dtype: DType; shape: readonly number[]; data: Float32Array | Int32Array },
  ): void {
    this.#addInitializer(
      name,
      elementTypes[dtype],
      shape,
      new Uint8Array(data.buffer, data.byteOffset, data.byteLength),
    );
  }

  /** A constant vector of 64-bit integers (axes, shapes). */
  int64(values: readonly number[]): string {
    if (this.#parent) return this.#parent.int64(values);
    const key = values.join(",");
    let name = this.#int64s.get(key);
    if (name === undefined) {
      name = this.fresh("ints");
      this.#int64s.set(key, name);
      this.#addInitializer(name, INT64, [values.length], new Uint8Array(BigInt64Array.from(values, BigInt).buffer));
    }
    return name;
  }

  /** A vector of 64-bit integers that holds a shape, computed in the graph where it has named dimensions. */
  shapeValue(shape: Shape): string {
    if (shape.every((dim) => typeof dim === "number")) return this.int64(shape);
    if (this.#parent) return this.#parent.shapeValue(shape);
    const key = shape.join(",");
    let name = this.#shapes.get(key);
    if (name === undefined) {
      const parts = shape.map((dim) => this.#dimValue(dim));
      name = parts.length === 1 ? parts[0]! : this.fresh("shape");
      if (parts.length > 1) this.node("Concat", parts, [name], { axis: 0 });
      this.#shapes.set(key, name);
    }
    return name;
  }

  /** One dimension as a vector of one element. */
  #dimValue(dim: Dim): string {
    if (typeof dim === "number") return this.int64([dim]);
    const known = this.#shapes.get(dim);
    if (known !== undefined) return known;
    const terms = sumOfProducts(dim).map(({ coefficient, names }) => {
      const factors = [
        ...(coefficient === 1 && names.length > 0 ? [] : [this.int64([coefficient])]),
        ...names.map((name) => this.#namedDim(name)),
      ];
      return factors.reduce((a, b) => this.#binary("Mul", a, b));
    });
    const value = terms.reduce((a, b) => this.#binary("Add", a, b));
    this.#shapes.set(dim, value);
    return value;
  }

  #namedDim(name: string): string {
    const known = this.#shapes.get(name);
    if (known !== undefined) return known;
    const source = this.#dimensions.get(name);
    if (!source) throw new GraphError("graph/shape", `The dimension "${name}" belongs to no input of the graph.`);
    const value = this.fresh(`dim_${name}`);
    this.node("Shape", [source.input], [value], { start: source.axis, end: source.axis + 1 });
    this.#shapes.set(name, value);
    return value;
  }

  #binary(type: string, a: string, b: string): string {
    const result = this.fresh("dim");
    this.node(type, [a, b], [result]);
    return result;
  }

  #addInitializer(name: string, type: number, shape: readonly number[], bytes: Uint8Array): void {
    const message = new MessageWriter();
    for (const dim of shape) message.varint(1, dim);
    message.varint(2, type).string(8, name).bytes(9, bytes);
    this.#initializers.push(message);
  }

  /** The GraphProto. */
  finish(
    name: string,
    inputs: readonly { name: string; type: TensorType }[],
    outputs: readonly { name: string; type: TensorType }[],
  ): MessageWriter {
    const graph = new MessageWriter();
    for (const node of this.#nodes) graph.message(1, node);
    graph.string(2, name);
    for (const initializer of this.#initializers) graph.message(5, initializer);
    for (const value of inputs) graph.message(11, encodeValueInfo(value.name, value.type));
    for (const value of outputs) graph.message(12, encodeValueInfo(value.name, value.type));
    return graph;
  }
}

function encodeAttribute(name: string, value: AttributeValue): MessageWriter {
  const message = new MessageWriter().string(1, name);
  if (typeof value === "string") return message.bytes(4, Buffer.from(value)).varint(20, attributeTypes.string);
  if (typeof value === "number") {
    return floatAttributes.has(name)
      ? message.float(2, value).varint(20, attributeTypes.float)
      : message.varint(3, value).varint(20, attributeTypes.int);
  }
  if ("graph" in value) return message.message(6, value.graph).varint(20, attributeTypes.graph);
  for (const item of value) message.varint(8, item);
  return message.varint(20, attributeTypes.ints);
}

function encodeValueInfo(name: string, { dtype, shape }: TensorType): MessageWriter {
  const dims = new MessageWriter();
  for (const dim of shape) {
    const message = new MessageWriter();
    dims.message(1, typeof dim === "number" ? message.varint(1, dim) : message.string(2, dim));
  }
  const tensor = new MessageWriter().varint(1, elementTypes[dtype]).message(2, dims);
  return new MessageWriter().string(1, name).message(2, new MessageWriter().message(1, tensor));
}

/** The ModelProto around a graph. */
export function encodeModel(graph: MessageWriter): Uint8Array {
  const operatorSet = (domain: string, version: number): MessageWriter =>
    new MessageWriter().string(1, domain).varint(2, version);
  return new MessageWriter()
    .varint(1, 10)
    .string(2, "whetstone")
    .message(7, graph)
    .message(8, operatorSet("", 21))
    .message(8, operatorSet(CONTRIB_DOMAIN, 1))
    .finish();
}
