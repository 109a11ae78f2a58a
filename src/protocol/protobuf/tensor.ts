// Tensor ↔ protobuf: raw little-endian values with a dtype and a shape, dense or compressed by rows.
import { MessageWriter, type Part } from "../../core/protobuf.ts";
import type { SparseRows, Tensor } from "../tensors.ts";
import type { TensorSource } from "../training.ts";
import { bytesOf, malformed, narrowed, numbers, type Reader } from "./wire.ts";

export const dtypes = { float32: 1, int64: 2, int32: 3, bfloat16: 4 } as const;

/** The size of one value as it travels. */
export const itemSizeOf = (dtype: number): number => (dtype === dtypes.int64 ? 8 : dtype === dtypes.bfloat16 ? 2 : 4);

/** The values of a tensor, as float32 or int64. Writing throws where a plain list holds something else; `name` is for the message. */
export function valuesOf({ data, dtype }: TensorSource, name: string): Uint8Array | Part {
  if (data instanceof Float32Array || data instanceof BigInt64Array) return bytesOf(data);
  return numbers(data, dtype, name);
}

export function tensorMessage(value: TensorSource, name: string): MessageWriter {
  const message = new MessageWriter();
  const values = valuesOf(value, name);
  if (value.sparse) {
    const rows = numbers(value.sparse.crowIndices, "int64", name);
    const columns = numbers(value.sparse.colIndices, "int64", name);
    message.message(2, new MessageWriter().bytes(1, values).bytes(2, rows).bytes(3, columns));
  } else message.bytes(1, values);
  message.varint(3, dtypes[value.dtype]);
  return value.shape.length > 0 ? message.packed(4, value.shape) : message;
}

export function readTensor(reader: Reader): Tensor {
  const found: { values: Uint8Array<ArrayBuffer>; sparse?: SparseRows | undefined } = { values: new Uint8Array() };
  let dtype = 0;
  const shape: number[] = [];
  reader.fields({
    1: () => Object.assign(found, { values: reader.copy(), sparse: undefined }),
    2: () => Object.assign(found, readSparse(reader.message())),
    3: () => (dtype = reader.int32()),
    4: () => reader.sizes(shape),
  });
  const { values, sparse } = found;
  const read = readValues(values, dtype);
  return { ...read, shape: shape.length > 0 ? shape : [read.data.length], ...(sparse && { sparse }) };
}

function readSparse(reader: Reader): { values: Uint8Array<ArrayBuffer>; sparse: SparseRows } {
  let values = new Uint8Array();
  const sparse = { crowIndices: new Int32Array(), colIndices: new Int32Array() };
  reader.fields({
    1: () => (values = reader.copy()),
    2: () => (sparse.crowIndices = readIndices(reader, "an index of a sparse tensor is out of range")),
    3: () => (sparse.colIndices = readIndices(reader, "an index of a sparse tensor is out of range")),
  });
  return { values, sparse };
}

/** int64 values that must fit 32 bits. */
export function readIndices(reader: Reader, otherwise: string): Int32Array<ArrayBuffer> {
  const indices = narrowed(reader.copy(8));
  if (indices instanceof BigInt64Array) throw malformed(otherwise);
  return indices;
}

/** Raw values of a declared dtype; int32 widens to int64 and bfloat16 to float32. `bytes` starts its own buffer. */
export function readValues(bytes: Uint8Array<ArrayBuffer>, dtype: number): Pick<Tensor, "dtype" | "data"> {
  const itemSize = itemSizeOf(dtype);
  if (bytes.length % itemSize !== 0)
    throw malformed(`a tensor of ${itemSize}-byte values (dtype ${dtype}) has ${bytes.length} bytes`);
  const { buffer } = bytes;
  if (dtype === dtypes.float32) return { dtype: "float32", data: new Float32Array(buffer) };
  if (dtype === dtypes.int64) return { dtype: "int64", data: narrowed(bytes) };
  if (dtype === dtypes.int32) return { dtype: "int64", data: new Int32Array(buffer) };
  if (dtype === dtypes.bfloat16) {
    const bits = Uint32Array.from(new Uint16Array(buffer), (half) => half << 16);
    return { dtype: "float32", data: new Float32Array(bits.buffer) };
  }
  throw malformed(`tensor dtype ${dtype} is unknown; use 1 (float32) or 2 (int64)`);
}
