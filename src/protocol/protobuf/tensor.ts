// Tensor ↔ protobuf: raw little-endian values with a dtype and a shape, dense or compressed by rows.
import type { Tensor } from "../tensors.ts";
import type { TensorSource } from "../training.ts";
import { blockSize, malformed, narrowed, type Reader, varintSize, Writer } from "./wire.ts";

export const dtypes = { float32: 1, int64: 2, int32: 3, bfloat16: 4 } as const;

/** Unsigned numbers as a packed field holds them. */
export function packed(values: readonly number[]): Uint8Array {
  const writer = new Writer(values.reduce((size, value) => size + varintSize(value), 0));
  for (const value of values) writer.varint(value);
  return writer.finish();
}

/** A tensor's values as they travel: float32, or int64. */
export function valueBytes({ data }: Tensor): Uint8Array {
  if (!(data instanceof Int32Array)) return new Uint8Array(data.buffer, data.byteOffset, data.byteLength);
  const writer = new Writer(8 * data.length);
  writer.rawInt64s(data);
  return writer.finish();
}

function packedSize(values: readonly number[]): number {
  if (values.length === 0) return 0;
  return blockSize(values.reduce((size, value) => size + varintSize(value), 0));
}

export function tensorSize(value: TensorSource): number {
  const bytes = value.data.length * (value.dtype === "int64" ? 8 : 4);
  return blockSize(value.sparse ? sparseSize(value, bytes) : bytes) + 2 + packedSize(value.shape);
}

function sparseSize(value: TensorSource, bytes: number): number {
  const { crowIndices, colIndices } = value.sparse!;
  return blockSize(bytes) + blockSize(8 * crowIndices.length) + blockSize(8 * colIndices.length);
}

export function writeTensor(writer: Writer, value: TensorSource, name: string): void {
  if (value.sparse) {
    writer.head(2, sparseSize(value, value.data.length * (value.dtype === "int64" ? 8 : 4)));
    writeValues(writer, value, name);
    writer.int64s(2, value.sparse.crowIndices);
    writer.int64s(3, value.sparse.colIndices);
  } else writeValues(writer, value, name);
  writer.number(3, dtypes[value.dtype]);
  if (value.shape.length > 0) writer.block(4, packed(value.shape));
}

function writeValues(writer: Writer, { data, dtype }: TensorSource, name: string): void {
  if (data instanceof Float32Array) writer.array(1, data);
  else if (data instanceof Int32Array || data instanceof BigInt64Array) writer.int64s(1, data);
  else writer.list(1, data, dtype, name);
}

export function readTensor(reader: Reader): Tensor {
  let dense: Uint8Array<ArrayBuffer> | undefined;
  let sparse: ReturnType<typeof readSparse> | undefined;
  let dtype = 0;
  const shape: number[] = [];
  while (reader.next()) {
    if (reader.field === 1) {
      dense = reader.aligned(1);
      sparse = undefined;
    } else if (reader.field === 2) {
      sparse = readSparse(reader.message());
      dense = undefined;
    } else if (reader.field === 3) dtype = reader.enum();
    else if (reader.field === 4) reader.sizes(shape);
    else reader.skip();
  }
  const { data, ...kind } = readValues(sparse?.values ?? dense ?? new Uint8Array(), dtype);
  const value: Tensor = { dtype: kind.dtype, data, shape: shape.length > 0 ? shape : [data.length] };
  if (sparse) value.sparse = { crowIndices: sparse.crowIndices, colIndices: sparse.colIndices };
  return value;
}

function readSparse(reader: Reader) {
  let values = new Uint8Array();
  let crowIndices = new Int32Array();
  let colIndices = new Int32Array();
  while (reader.next()) {
    if (reader.field === 1) values = reader.aligned(1);
    else if (reader.field === 2) crowIndices = readIndices(reader);
    else if (reader.field === 3) colIndices = readIndices(reader);
    else reader.skip();
  }
  return { values, crowIndices, colIndices };
}

function readIndices(reader: Reader): Int32Array<ArrayBuffer> {
  const indices = narrowed(reader.aligned(8));
  if (indices instanceof BigInt64Array) throw malformed("an index of a sparse tensor is out of range");
  return indices;
}

/** Raw values of a declared dtype; int32 widens to int64 and bfloat16 to float32. `bytes` starts its own buffer. */
export function readValues(bytes: Uint8Array<ArrayBuffer>, dtype: number): Pick<Tensor, "dtype" | "data"> {
  const itemSize = dtype === dtypes.int64 ? 8 : dtype === dtypes.bfloat16 ? 2 : 4;
  if (bytes.length % itemSize !== 0)
    throw malformed(`a tensor of ${itemSize}-byte values (dtype ${dtype}) has ${bytes.length} bytes`);
  const count = bytes.length / itemSize;
  if (dtype === dtypes.float32)
    return { dtype: "float32", data: new Float32Array(bytes.buffer, bytes.byteOffset, count) };
  if (dtype === dtypes.int64) return { dtype: "int64", data: narrowed(bytes) };
  if (dtype === dtypes.int32) return { dtype: "int64", data: new Int32Array(bytes.buffer, bytes.byteOffset, count) };
  if (dtype === dtypes.bfloat16) {
    const bits = new Uint32Array(count);
    const halves = new Uint16Array(bytes.buffer, bytes.byteOffset, count);
    for (let index = 0; index < count; index++) bits[index] = halves[index]! << 16;
    return { dtype: "float32", data: new Float32Array(bits.buffer) };
  }
  throw malformed(`tensor dtype ${dtype} is unknown; use 1 (float32) or 2 (int64)`);
}
