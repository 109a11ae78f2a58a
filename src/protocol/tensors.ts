// Tensors as they travel: a flat row-major typed array with its shape, dense or compressed by rows (CSR).

import { z } from "zod";
import { elementCount } from "../core/arrays.ts";
import { float32Array, indexOfNonInt64, int32Array, narrowInt64 } from "./arrays.ts";
import { optional } from "./message.ts";

export type TensorDtype = "float32" | "int64";

/** The positions of a sparse tensor's values. */
export interface SparseRows {
  /** rows + 1 entries: where each row's values begin. */
  crowIndices: Int32Array;
  /** One column per value. */
  colIndices: Int32Array;
}

/** A dense array of one type, or the rows of a sparse one. */
export interface Tensor {
  /** The type of its numbers. */
  dtype: TensorDtype;
  /**
   * Row-major values; for a sparse tensor only those that are not zero. float32 is a Float32Array. int64 is an Int32Array; a
   * decoder gives a BigInt64Array where some value does not fit 32 bits.
   */
  data: Float32Array | Int32Array | BigInt64Array;
  /** The dense shape. */
  shape: readonly number[];
  /** Where its numbers stand, when only some are given. */
  sparse?: SparseRows | undefined;
}

/** A dense tensor; its dtype follows from the array. Shape: one dimension unless given. */
export function tensor(data: Float32Array | Int32Array, shape: readonly number[] = [data.length]): Tensor {
  return { dtype: data instanceof Float32Array ? "float32" : "int64", data, shape };
}

const wireTensor = z.object({
  data: z.custom<readonly number[]>((value) => Array.isArray(value), "expected a flat list of numbers"),
  dtype: z.enum(["int64", "float32"]),
  shape: optional(z.array(z.int().min(0))),
  sparse_crow_indices: optional(int32Array),
  sparse_col_indices: optional(int32Array),
});

export const tensorSchema = z.codec(wireTensor, z.custom<Tensor>(), {
  decode(wire, context) {
    const refuse = (message: string) => {
      context.issues.push({ code: "custom", input: wire.data, path: ["data"], message });
      return z.NEVER;
    };
    let data: Tensor["data"];
    if (wire.dtype === "float32") {
      const result = z.safeDecode(float32Array, wire.data);
      if (!result.success) return refuse(result.error.issues[0]!.message);
      data = result.data;
    } else {
      const bad = indexOfNonInt64(wire.data);
      if (bad >= 0) return refuse(`expected integers for dtype int64, got ${String(wire.data[bad])} at index ${bad}`);
      data = narrowInt64(wire.data);
    }
    const decoded: Tensor = { dtype: wire.dtype, data, shape: wire.shape ?? [data.length] };
    if (wire.sparse_crow_indices && wire.sparse_col_indices)
      decoded.sparse = { crowIndices: wire.sparse_crow_indices, colIndices: wire.sparse_col_indices };
    return decoded;
  },
  encode: (value) => ({
    data:
      value.data instanceof Float32Array
        ? (z.encode(float32Array, value.data) as number[])
        : Array.from(value.data, Number),
    dtype: value.dtype,
    shape: [...value.shape],
    ...(value.sparse && {
      sparse_crow_indices: value.sparse.crowIndices,
      sparse_col_indices: value.sparse.colIndices,
    }),
  }),
});

/** Says what is wrong between a tensor's shape, values and indices, or undefined when they fit together. */
export function tensorProblem({ data, dtype, shape, sparse }: Tensor): string | undefined {
  const count = elementCount(shape);
  if ((dtype === "float32") !== data instanceof Float32Array) return `dtype ${dtype} does not match its values`;
  if (!sparse) {
    return count === data.length ? undefined : `shape [${shape}] has ${count} values, but ${data.length} were sent`;
  }
  const { crowIndices, colIndices } = sparse;
  if (shape.length !== 2) return `a sparse tensor has 2 dimensions, but its shape is [${shape}]`;
  const [rows, columns] = shape as [number, number];
  if (crowIndices.length !== rows + 1)
    return `a sparse tensor of ${rows} rows has ${rows + 1} row indices, but ${crowIndices.length} were sent`;
  if (colIndices.length !== data.length) return `${data.length} sparse values have ${colIndices.length} column indices`;
  if (crowIndices[0] !== 0 || crowIndices[rows] !== data.length)
    return `sparse row indices run from ${crowIndices[0]} to ${crowIndices[rows]}, not from 0 to ${data.length}`;
  for (let row = 0; row < rows; row++)
    if (crowIndices[row + 1]! < crowIndices[row]!) return `sparse row indices decrease at row ${row}`;
  for (const column of colIndices)
    if (column < 0 || column >= columns) return `sparse column ${column} is outside 0…${columns - 1}`;
  return undefined;
}

/** The dense form of a tensor that has no tensorProblem; dense tensors are returned as they are. */
export function densify(value: Tensor): Tensor {
  if (!value.sparse) return value;
  const { crowIndices, colIndices } = value.sparse;
  const [rows, columns] = value.shape as [number, number];
  const Values = value.data.constructor as new (length: number) => typeof value.data;
  const data = new Values(rows * columns);
  for (let row = 0; row < rows; row++)
    for (let index = crowIndices[row]!; index < crowIndices[row + 1]!; index++)
      data[row * columns + colIndices[index]!] = value.data[index]!;
  return { dtype: value.dtype, data, shape: value.shape };
}
