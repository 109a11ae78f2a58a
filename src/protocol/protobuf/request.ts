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
} from "../training.ts";
import { decodeFields, doubleEntry, encodeFields, type Field, readDoubleEntry } from "./fields.ts";
import { readTensor, tensorSize, writeTensor } from "./tensor.ts";
import { blockSize, malformed, Reader, utf8, varintSize, Writer, wireType } from "./wire.ts";

/** Writes the body of `POST /forward_backward`, one datum at a time, so that a large batch need not be encoded in one go. */
export class ForwardBackwardEncoder {
  readonly #writer: Writer;
  readonly #request: Omit<ForwardBackwardSource, "seqId">;
  readonly #sizes: readonly number[];
  /** What follows the data. */
  readonly #tail: Uint8Array;
  #written = 0;

  /** `allocate` gives at least as many bytes as it is asked for. Throws `protocol/not-expressible` for image asset pointers. */
  constructor(
    request: Omit<ForwardBackwardSource, "seqId">,
    allocate: (size: number) => Uint8Array = Buffer.allocUnsafeSlow,
  ) {
    const modelId = utf8(request.modelId);
    const lossFn: Field[] = request.lossFn === "" ? [] : [[4, utf8(request.lossFn)]];
    this.#request = request;
    this.#sizes = request.data.map(datumSize);
    this.#tail = encodeFields([...lossFn, ...configFields(request.lossFnConfig, request.forwardOnly)]);
    let size = largestSeqIdSize + this.#tail.length;
    if (modelId.length > 0) size += blockSize(modelId.length);
    for (const datum of this.#sizes) size += blockSize(datum);
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
    writer.raw(this.#tail);
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

/** Settings come in two forms; the newer one (7) also takes text: a message of a double (1) or a string (2). */
function configFields(config: LossFnConfig, forwardOnly: boolean): Field[] {
  const entries = Object.entries(config);
  const numbers = entries.flatMap(([key, value]): Field[] =>
    typeof value === "number" ? [[5, doubleEntry(key, value)]] : [],
  );
  const values = entries.map(
    ([key, value]): Field => [
      7,
      encodeFields([
        [1, utf8(key)],
        [2, configValue(value)],
      ]),
    ],
  );
  return [...numbers, [6, forwardOnly ? 1 : 0], ...values];
}

function configValue(value: number | string): Uint8Array {
  if (typeof value === "string") return encodeFields([[2, utf8(value)]]);
  const writer = new Writer(9);
  writer.double(1, value);
  return writer.finish();
}

function readConfigEntry(entry: Reader): [key: string, value: number | string] {
  let key = "";
  let value: number | string = 0;
  decodeFields(entry, {
    1: (at) => (key = at.string()),
    2: (at) => decodeFields(at.message(), { 1: (at) => (value = at.double()), 2: (at) => (value = at.string()) }),
  });
  return [key, value];
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
  decodeFields(reader, { 1: (at) => (tokens = at.int32s()) });
  return { type: "encoded_text", tokens };
}

function readImageChunk(reader: Reader): Chunk {
  let data: Uint8Array = new Uint8Array();
  let format = "";
  let expectedTokens: number | undefined;
  decodeFields(reader, {
    1: (at) => (data = at.copy()),
    2: (at) => (format = at.string()),
    3: (at) => (expectedTokens = at.int32()),
  });
  if (format !== "png" && format !== "jpeg") throw malformed(`image format "${format}" is neither png nor jpeg`);
  return { type: "image", data, format, ...(expectedTokens !== undefined && { expectedTokens }) };
}

function readDmelChunk(reader: Reader): Chunk {
  let dmel: Uint8Array = new Uint8Array();
  decodeFields(reader, { 1: (at) => (dmel = at.copy()) });
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
