// Reads GGUF files, the format of llama.cpp, Ollama and LM Studio: what a file says of itself, and its tensors as float32. Nothing in a
// header is believed: counts, lengths, offsets and shapes are checked against each other and against the file. Calls are synchronous;
// weights are read on the engine's worker threads.
import { closeSync, fstatSync, openSync } from "node:fs";
import { elementCount } from "../core/arrays.ts";
import { messageOf } from "../core/errors.ts";
import { readFully } from "../core/files.ts";
import { blockTypes } from "./block-types.ts";
import { badFile, GgufError } from "./errors.ts";

export type GgufValue = number | boolean | string | GgufValue[];

export interface GgufTensor {
  name: string;
  /** As Hugging Face has it, the outermost first. */
  shape: readonly number[];
  /** The number of its type in `blockTypes`. */
  type: number;
  /** Byte range in the file. */
  start: number;
  end: number;
}

/** Bytes that are read at once. */
const chunkBytes = 1 << 22;
const magic = "GGUF";

export class GgufFile {
  readonly path: string;
  readonly metadata: ReadonlyMap<string, GgufValue>;
  readonly tensors: ReadonlyMap<string, GgufTensor>;
  readonly #descriptor: number;

  constructor(path: string) {
    this.path = path;
    try {
      this.#descriptor = openSync(path, "r");
    } catch (error) {
      throw new GgufError("gguf/no-file", `${path} cannot be read: ${messageOf(error)}. Name a GGUF file.`, {
        cause: error,
      });
    }
    try {
      const reader = new HeaderReader(path, this.#descriptor);
      ({ metadata: this.metadata, tensors: this.tensors } = readHeader(reader));
    } catch (error) {
      closeSync(this.#descriptor);
      throw error;
    }
  }

  /** A tensor as float32, bit for bit what llama.cpp's own Python package makes of it. `into`: an array of its size to put it in. */
  readFloat32(tensor: GgufTensor, into: Float32Array = new Float32Array(elementCount(tensor.shape))): Float32Array {
    const { blockBytes, blockSize, unpack } = blockTypes[tensor.type]!;
    const atOnce = Math.max(1, Math.floor(chunkBytes / blockBytes)) * blockBytes;
    for (let at = tensor.start; at < tensor.end; at += atOnce) {
      const bytes = Buffer.allocUnsafeSlow(Math.min(atOnce, tensor.end - at));
      fill(this.path, this.#descriptor, bytes, at);
      unpack(bytes, into.subarray(((at - tensor.start) / blockBytes) * blockSize));
    }
    return into;
  }

  close(): void {
    closeSync(this.#descriptor);
  }
}

function readHeader(reader: HeaderReader) {
  if (reader.bytes(4).toString("latin1") !== magic) throw badFile(reader.path, "does not begin as a GGUF file");
  const version = reader.uint32();
  if (version !== 2 && version !== 3)
    throw new GgufError(
      "gguf/unsupported",
      `${reader.path} is a GGUF file of version ${version}; 2 and 3 can be read. Convert it with a newer llama.cpp, or take another file.`,
    );
  const [tensorCount, pairCount] = [reader.count(), reader.count()];
  const metadata = new Map<string, GgufValue>();
  for (let index = 0; index < pairCount; index++) metadata.set(reader.text(), reader.value(reader.uint32()));
  const described = [];
  for (let index = 0; index < tensorCount; index++) described.push(readTensor(reader));

  const alignment = metadata.get("general.alignment") ?? 32;
  if (typeof alignment !== "number" || !Number.isInteger(alignment) || alignment < 1)
    throw badFile(reader.path, `is aligned to ${String(alignment)} bytes`);
  const dataStart = Math.ceil(reader.position / alignment) * alignment;
  const tensors = new Map<string, GgufTensor>();
  for (const { offset, byteLength, ...tensor } of described) {
    const start = dataStart + offset;
    const end = start + byteLength;
    if (end > reader.fileBytes)
      throw badFile(
        reader.path,
        `is cut short: ${tensor.name} ends at byte ${end}, and the file has ${reader.fileBytes}`,
      );
    if (tensors.has(tensor.name)) throw badFile(reader.path, `has ${tensor.name} twice`);
    tensors.set(tensor.name, { ...tensor, start, end });
  }
  return { metadata, tensors };
}

function readTensor(reader: HeaderReader) {
  const name = reader.text();
  const rank = reader.uint32();
  if (rank > 4) throw badFile(reader.path, `gives ${name} ${rank} dimensions`);
  const shape = Array.from({ length: rank }, () => reader.count()).reverse();
  const type = reader.uint32();
  const offset = reader.count();
  const block = blockTypes[type];
  if (!block) {
    const readable = Object.values(blockTypes).map((known) => known.name);
    throw new GgufError(
      "gguf/unsupported",
      `${reader.path} stores ${name} as type ${type} of GGML, which is not read here; ${readable.join(", ")} are. Take another quantization of this model.`,
    );
  }
  const elements = elementCount(shape);
  if (!Number.isSafeInteger(elements) || elements === 0 || shape.at(-1)! % block.blockSize !== 0)
    throw badFile(reader.path, `gives ${name} the impossible shape [${shape}] for ${block.name}`);
  return { name, shape, type, offset, byteLength: (elements / block.blockSize) * block.blockBytes };
}

/** Takes one value after the other from the beginning of a file. */
class HeaderReader {
  readonly path: string;
  readonly fileBytes: number;
  readonly #descriptor: number;
  #chunk = Buffer.alloc(0);
  /** Where the chunk begins in the file, and how much of it was taken. */
  #chunkStart = 0;
  #taken = 0;

  constructor(path: string, descriptor: number) {
    this.path = path;
    this.#descriptor = descriptor;
    this.fileBytes = fstatSync(descriptor).size;
  }

  get position(): number {
    return this.#chunkStart + this.#taken;
  }

  bytes(length: number): Buffer {
    const { position } = this;
    if (length > this.fileBytes - position)
      throw badFile(this.path, `ends within its header, at byte ${this.fileBytes}`);
    if (this.#taken + length > this.#chunk.byteLength) {
      this.#chunk = Buffer.allocUnsafeSlow(Math.min(Math.max(chunkBytes, length), this.fileBytes - position));
      fill(this.path, this.#descriptor, this.#chunk, position);
      [this.#chunkStart, this.#taken] = [position, 0];
    }
    this.#taken += length;
    return this.#chunk.subarray(this.#taken - length, this.#taken);
  }

  uint32(): number {
    return this.bytes(4).readUInt32LE();
  }

  /** A number of 64 bits that counts something in this file. */
  count(): number {
    const value = this.bytes(8).readBigUInt64LE();
    if (value > BigInt(Number.MAX_SAFE_INTEGER)) throw badFile(this.path, `counts ${value} of something`);
    return Number(value);
  }

  text(): string {
    return this.bytes(this.count()).toString("utf8");
  }

  value(type: number): GgufValue {
    const read = valueTypes[type];
    if (read) return read(this);
    throw badFile(this.path, `has a value of the unknown type ${type}`);
  }

  list(): GgufValue[] {
    const type = this.uint32();
    const length = this.count();
    // Every value takes at least a byte; lists in lists are in no file that is known.
    if (length > this.fileBytes - this.position || valueTypes[type] === readList)
      throw badFile(this.path, `has a list of ${length} values of type ${type}`);
    const values: GgufValue[] = [];
    for (let index = 0; index < length; index++) values.push(this.value(type));
    return values;
  }
}

const readList = (reader: HeaderReader): GgufValue => reader.list();

/** The types of values, by their numbers in the format. */
const valueTypes: Readonly<Record<number, (reader: HeaderReader) => GgufValue>> = {
  0: (reader) => reader.bytes(1).readUInt8(),
  1: (reader) => reader.bytes(1).readInt8(),
  2: (reader) => reader.bytes(2).readUInt16LE(),
  3: (reader) => reader.bytes(2).readInt16LE(),
  4: (reader) => reader.bytes(4).readUInt32LE(),
  5: (reader) => reader.bytes(4).readInt32LE(),
  6: (reader) => reader.bytes(4).readFloatLE(),
  7: (reader) => reader.bytes(1).readUInt8() !== 0,
  8: (reader) => reader.text(),
  9: readList,
  10: (reader) => Number(reader.bytes(8).readBigUInt64LE()),
  11: (reader) => Number(reader.bytes(8).readBigInt64LE()),
  12: (reader) => reader.bytes(8).readDoubleLE(),
};

function fill(path: string, descriptor: number, into: Uint8Array, position: number): void {
  const read = readFully(descriptor, into, position);
  if (read < into.byteLength) throw badFile(path, `ended at byte ${position + read} while it was being read`);
}
