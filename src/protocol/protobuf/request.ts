// ForwardBackwardRequest ↔ protobuf.
import { ProtocolError } from "../errors.ts";
import type { Chunk } from "../model-input.ts";
import type { Tensor } from "../tensors.ts";
import type {
  ChunkSource,
  Datum,
  DatumSource,
  ForwardBackwardRequest,
  ForwardBackwardSource,
  LossFnConfig,
  TensorSource,
} from "../training.ts";
import { blockSize, malformed, narrowed, Reader, utf8, varintSize, Writer, wireType } from "./wire.ts";

export const dtypes = { float32: 1, int64: 2, int32: 3, bfloat16: 4 } as const;

/** Writes the body of `POST /forward_backward`, one datum at a time, so that a large batch need not be encoded in one go. */
export class ForwardBackwardEncoder {
  readonly #writer: Writer;
  readonly #request: Omit<ForwardBackwardSource, "seqId">;
  readonly #sizes: readonly number[];
  #written = 0;

  /** `allocate` gives at least as many bytes as it is asked for. Throws `protocol/not-expressible` for image asset pointers. */
  constructor(
    request: Omit<ForwardBackwardSource, "seqId">,
    allocate: (size: number) => Uint8Array = Buffer.allocUnsafeSlow,
  ) {
    const modelId = utf8(request.modelId);
    const lossFn = utf8(request.lossFn);
    this.#request = request;
    this.#sizes = request.data.map(datumSize);
    let size = largestSeqIdSize;
    if (modelId.length > 0) size += blockSize(modelId.length);
    for (const datum of this.#sizes) size += blockSize(datum);
    if (lossFn.length > 0) size += blockSize(lossFn.length);
    size += configSize(request.lossFnConfig);
    if (request.forwardOnly) size += 2;
    this.#writer = new Writer(allocate(size));
    if (modelId.length > 0) this.#writer.block(1, modelId);
  }

  /** Writes the next datum; false when all are written. Throws `protocol/invalid-message` for a value that is no number of its kind. */
  next(): boolean {
    const datum = this.#request.data[this.#written];
    if (!datum) return false;
    this.#writer.head(3, this.#sizes[this.#written++]!);
    writeDatum(this.#writer, datum);
    return true;
  }

  /** What `allocate` gave. */
  get memory(): Uint8Array {
    return this.#writer.bytes;
  }

  /** The finished body. The sequence number stands last, because it may be known last; fields may come in any order. */
  finish(seqId: number): Uint8Array {
    while (this.next());
    const writer = this.#writer;
    const lossFn = utf8(this.#request.lossFn);
    if (lossFn.length > 0) writer.block(4, lossFn);
    const config = Object.entries(this.#request.lossFnConfig);
    for (const [key, value] of config) if (typeof value === "number") writeDoubleEntry(writer, 5, key, value);
    writer.number(6, this.#request.forwardOnly ? 1 : 0);
    for (const [key, value] of config) writeConfigValue(writer, key, value);
    writer.number(2, seqId);
    return writer.bytes.subarray(0, writer.position);
  }
}

/** A tag and a varint of 31 bits. */
const largestSeqIdSize = 6;

/** The body of `POST /forward_backward` in one go; see ForwardBackwardEncoder. */
export function encodeForwardBackwardRequest(request: ForwardBackwardSource): Uint8Array {
  return new ForwardBackwardEncoder(request).finish(request.seqId);
}

/** An entry of a map<string, double>. */
export const doubleEntrySize = (key: string) => blockSize(utf8(key).length) + 9;

export function writeDoubleEntry(writer: Writer, field: number, key: string, value: number): void {
  writer.head(field, doubleEntrySize(key));
  writer.block(1, utf8(key));
  writer.double(2, value);
}

export function readDoubleEntry(entry: Reader): [key: string, value: number] {
  let key = "";
  let value = 0;
  while (entry.next()) {
    if (entry.field === 1) key = entry.string();
    else if (entry.field === 2) value = entry.double();
    else entry.skip();
  }
  return [key, value];
}

/** A setting's value in the newer of its two forms, which also takes text: a message of a double (1) or a string (2). */
const configValueSize = (value: number | string) => (typeof value === "number" ? 9 : blockSize(utf8(value).length));

const configEntrySize = (key: string, value: number | string) =>
  blockSize(utf8(key).length) + blockSize(configValueSize(value));

function configSize(config: LossFnConfig): number {
  let size = 0;
  for (const [key, value] of Object.entries(config)) {
    if (typeof value === "number") size += blockSize(doubleEntrySize(key));
    size += blockSize(configEntrySize(key, value));
  }
  return size;
}

function writeConfigValue(writer: Writer, key: string, value: number | string): void {
  writer.head(7, configEntrySize(key, value));
  writer.block(1, utf8(key));
  writer.head(2, configValueSize(value));
  if (typeof value === "number") writer.double(1, value);
  else writer.block(2, utf8(value));
}

function readConfigEntry(entry: Reader): [key: string, value: number | string] {
  let key = "";
  let value: number | string = 0;
  while (entry.next()) {
    if (entry.field === 1) key = entry.string();
    else if (entry.field === 2) {
      const inner = entry.message();
      while (inner.next()) {
        if (inner.field === 1) value = inner.double();
        else if (inner.field === 2) value = inner.string();
        else inner.skip();
      }
    } else entry.skip();
  }
  return [key, value];
}

/** A repeated int64 field, packed; nothing when empty. */
export function packedSize(values: readonly number[]): number {
  if (values.length === 0) return 0;
  let size = 0;
  for (const value of values) size += varintSize(value);
  return blockSize(size);
}

export function writePacked(writer: Writer, field: number, values: readonly number[]): void {
  if (values.length === 0) return;
  let size = 0;
  for (const value of values) size += varintSize(value);
  writer.head(field, size);
  for (const value of values) writer.varint(value);
}

function datumSize(datum: DatumSource): number {
  let size = 0;
  for (const chunk of datum.modelInput.chunks) size += blockSize(blockSize(chunkSize(chunk)));
  for (const name in datum.lossFnInputs) {
    size += blockSize(blockSize(utf8(name).length) + blockSize(tensorSize(datum.lossFnInputs[name]!)));
  }
  return size;
}

function writeDatum(writer: Writer, datum: DatumSource): void {
  for (const chunk of datum.modelInput.chunks) {
    const size = chunkSize(chunk);
    writer.head(1, blockSize(size));
    writeChunk(writer, chunk, size);
  }
  for (const name in datum.lossFnInputs) {
    const value = datum.lossFnInputs[name]!;
    const size = tensorSize(value);
    writer.head(2, blockSize(utf8(name).length) + blockSize(size));
    writer.block(1, utf8(name));
    writer.head(2, size);
    writeTensor(writer, value, name);
  }
}

function chunkSize(chunk: ChunkSource): number {
  if (chunk.type === "encoded_text") return chunk.tokens.length > 0 ? blockSize(4 * chunk.tokens.length) : 0;
  if (chunk.type === "dmel") return blockSize(chunk.dmel.length);
  if (chunk.type === "image_asset_pointer")
    throw new ProtocolError(
      "protocol/not-expressible",
      `An image asset pointer ("${chunk.location}") cannot be used in training data. Send the image itself as an "image" chunk.`,
    );
  const expected = chunk.expectedTokens;
  return (
    blockSize(chunk.data.length) +
    blockSize(utf8(chunk.format).length) +
    (expected === undefined ? 0 : 1 + varintSize(expected))
  );
}

function writeChunk(writer: Writer, chunk: ChunkSource, size: number): void {
  if (chunk.type === "encoded_text") {
    writer.head(1, size);
    if (chunk.tokens instanceof Int32Array) {
      if (chunk.tokens.length > 0) writer.array(1, chunk.tokens);
    } else if (chunk.tokens.length > 0) writer.list(1, chunk.tokens, "int32", "tokens");
  } else if (chunk.type === "image") {
    writer.head(2, size);
    writer.block(1, chunk.data);
    writer.block(2, utf8(chunk.format));
    if (chunk.expectedTokens !== undefined) {
      writer.tag(3, wireType.varint);
      writer.varint(chunk.expectedTokens);
    }
  } else if (chunk.type === "dmel") {
    writer.head(3, size);
    writer.block(1, chunk.dmel);
  }
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
  writePacked(writer, 4, value.shape);
}

function writeValues(writer: Writer, { data, dtype }: TensorSource, name: string): void {
  if (data instanceof Float32Array) writer.array(1, data);
  else if (data instanceof Int32Array || data instanceof BigInt64Array) writer.int64s(1, data);
  else writer.list(1, data, dtype, name);
}

/** Reads the body of `POST /forward_backward`. Throws `protocol/malformed-protobuf` and nothing else. */
export function decodeForwardBackwardRequest(bytes: Uint8Array): ForwardBackwardRequest {
  const reader = new Reader(bytes);
  const data: Datum[] = [];
  const lossFnConfig: Record<string, number | string> = {};
  // Numbers come twice, in the older and in the newer form; the newer one counts.
  const newer: [string, number | string][] = [];
  const request = { modelId: "", seqId: 0, data, lossFn: "", lossFnConfig, forwardOnly: false };
  while (reader.next()) {
    if (reader.field === 1) request.modelId = reader.string();
    else if (reader.field === 2) request.seqId = reader.int32();
    else if (reader.field === 3) data.push(readDatum(reader.message()));
    else if (reader.field === 4) request.lossFn = reader.string();
    else if (reader.field === 5) setEntry(lossFnConfig, ...readDoubleEntry(reader.message()));
    else if (reader.field === 6) request.forwardOnly = reader.bool();
    else if (reader.field === 7) newer.push(readConfigEntry(reader.message()));
    else reader.skip();
  }
  for (const [key, value] of newer) setEntry(lossFnConfig, key, value);
  return request;
}

/** Sets an own property whatever the key, "__proto__" included. */
export function setEntry<T>(record: Record<string, T>, key: string, value: T): void {
  if (key === "__proto__")
    Object.defineProperty(record, key, { value, enumerable: true, configurable: true, writable: true });
  else record[key] = value;
}

function readDatum(reader: Reader): Datum {
  const datum: Datum = { modelInput: { chunks: [] }, lossFnInputs: {} };
  while (reader.next()) {
    if (reader.field === 1) datum.modelInput.chunks.push(readChunk(reader.message()));
    else if (reader.field === 2) setEntry(datum.lossFnInputs, ...readTensorEntry(reader.message()));
    else reader.skip();
  }
  return datum;
}

function readChunk(reader: Reader): Chunk {
  let chunk: Chunk | undefined;
  while (reader.next()) {
    if (reader.field === 1) chunk = readTextChunk(reader.message());
    else if (reader.field === 2) chunk = readImageChunk(reader.message());
    else if (reader.field === 3) chunk = readDmelChunk(reader.message());
    else reader.skip();
  }
  if (!chunk) throw malformed("a chunk is neither text, nor an image, nor audio");
  return chunk;
}

function readTextChunk(reader: Reader): Chunk {
  let tokens = new Int32Array();
  while (reader.next()) {
    if (reader.field === 1) tokens = reader.int32s();
    else reader.skip();
  }
  return { type: "encoded_text", tokens };
}

function readImageChunk(reader: Reader): Chunk {
  let data: Uint8Array = new Uint8Array();
  let format = "";
  let expectedTokens: number | undefined;
  while (reader.next()) {
    if (reader.field === 1) data = reader.copy();
    else if (reader.field === 2) format = reader.string();
    else if (reader.field === 3) expectedTokens = reader.int32();
    else reader.skip();
  }
  if (format !== "png" && format !== "jpeg") throw malformed(`image format "${format}" is neither png nor jpeg`);
  return { type: "image", data, format, ...(expectedTokens !== undefined && { expectedTokens }) };
}

function readDmelChunk(reader: Reader): Chunk {
  let dmel: Uint8Array = new Uint8Array();
  while (reader.next()) {
    if (reader.field === 1) dmel = reader.copy();
    else reader.skip();
  }
  return { type: "dmel", dmel };
}

function readTensorEntry(reader: Reader): [key: string, value: Tensor] {
  let key = "";
  let value: Tensor | undefined;
  while (reader.next()) {
    if (reader.field === 1) key = reader.string();
    else if (reader.field === 2) value = readTensor(reader.message());
    else reader.skip();
  }
  if (!value) throw malformed(`loss input "${key}" has no tensor`);
  return [key, value];
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
