// Where values enter a graph: inputs, bound anew in every run; constants, stored in the compiled graph.
import { elementCount } from "../core/arrays.ts";
import type { Shape } from "./dims.ts";
import { GraphError } from "./errors.ts";
import { apply1, type DType, type Op, type Tensor } from "./tensor.ts";

interface InputAttributes {
  name: string;
  dtype: DType;
  shape: Shape;
}

export const inputOp: Op<InputAttributes> = {
  name: "input",
  infer: (_, { dtype, shape }) => [{ dtype, shape }],
  emit: () => {},
};

interface ConstantAttributes {
  dtype: "f32" | "i32";
  shape: readonly number[];
  data: Float32Array | Int32Array;
}

export const constantOp: Op<ConstantAttributes> = {
  name: "constant",
  infer: (_, { dtype, shape, data }) => {
    const size = elementCount(shape);
    if (size !== data.length) {
      throw new GraphError("graph/shape", `A constant of shape [${shape.join(", ")}] was given ${data.length} values.`);
    }
    return [{ dtype, shape }];
  },
  emit: (emitter, { outputs, attributes }) => emitter.initializer(outputs[0]!, attributes),
};

const inputs = new Map<string, Tensor>();

/**
 * A value given in every run. Its named dimensions are bound by the shape that is fed. Asking for the same name and type again
 * gives the same tensor.
 */
export function input(name: string, shape: Shape, dtype: DType = "f32"): Tensor {
  const key = `${name} ${dtype}[${shape.join(",")}]`;
  let tensor = inputs.get(key);
  if (!tensor) {
    tensor = privateInput(name, shape, dtype);
    inputs.set(key, tensor);
  }
  return tensor;
}

/** An input that is equal to no other: a loop body's parameter. */
export function privateInput(name: string, shape: Shape, dtype: DType): Tensor {
  return apply1(inputOp, [], { name, dtype, shape });
}

export function constant(data: Float32Array | Int32Array, shape: readonly number[]): Tensor {
  return apply1(constantOp, [], { dtype: data instanceof Float32Array ? "f32" : "i32", shape, data });
}

/** A float constant of rank 0. */
export function scalar(value: number): Tensor {
  return constant(Float32Array.of(value), []);
}

/** The value of a constant of one element; undefined for everything else. */
export function scalarValue(tensor: Tensor): number | undefined {
  if (tensor.node.op !== (constantOp as Op<never>)) return undefined;
  const { data } = tensor.node.attributes as ConstantAttributes;
  return data.length === 1 ? data[0] : undefined;
}
