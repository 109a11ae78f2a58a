// Reads safetensors files. Nothing in a header is believed: lengths, offsets, dtypes and shapes are checked against each other and
// against the file before a byte of data is used. Calls are synchronous; they run on the engine's worker thread.
import { closeSync, fstatSync, openSync } from "node:fs";
import { elementCount } from "../core/arrays.ts";
import { readFully } from "../core/files.ts";
import { widenBfloat16, widenFloat16 } from "../core/float16.ts";
import { isRecord } from "../core/json.ts";
import { EngineError } from "./errors.ts";

export const bytesPerElement = {
  F64: 8,
  F32: 4,
  F16: 2,
  BF16: 2,
  I64: 8,
  I32: 4,
  I16: 2,
  I8: 1,
  U8: 1,
  BOOL: 1,
} as const;
export type Dtype = keyof typeof bytesPerElement;

/** The element types that can be read as numbers for a model. */
const readable = new Set<Dtype>(["F32", "F16", "BF16"]);

/** The safetensors format's own limit on its header. */
const maxHeaderBytes = 100_000_000;
/** 16-bit numbers that are read at once. */
const chunkElements = 1 << 21;

export interface TensorEntry {
  name: string;
  dtype: Dtype;
  shape: readonly number[];
  /** Byte range in the file. */
  start: number;
  end: number;
}

/** One open safetensors file. */
export class SafetensorsFile {
  readonly path: string;
  readonly entries: ReadonlyMap<string, TensorEntry>;
  readonly #descriptor: number;

  constructor(path: string) {
    this.path = path;
    this.#descriptor = openFile(path);
    try {
      this.entries = readHeader(this.#descriptor, path);
    } catch (error) {
      closeSync(this.#descriptor);
      throw error;
    }
  }

  /** The tensor widened to float32. `shape` is what the caller needs it to be, `into` an array to put it in. */
  readFloat32(name: string, shape?: readonly number[], into?: Float32Array): Float32Array {
    const entry = this.entries.get(name);
    if (!entry) throw bad(this.path, `has no tensor "${name}"`);
    if (shape && shape.join() !== entry.shape.join()) {
      throw bad(this.path, `has ${name} with shape [${entry.shape}], where the model needs [${shape}]`);
    }
    const out = into ?? new Float32Array(elementCount(entry.shape));
    this.#widen(entry, 0, out);
    return out;
  }

  /** Elements `from` to `from + count` of a tensor, widened to float32. */
  readElements(entry: TensorEntry, from: number, count: number): Float32Array {
    const out = new Float32Array(count);
    this.#widen(entry, from, out);
    return out;
  }

  /** Fills an array with the elements of a tensor from one on. */
  #widen({ name, dtype, start }: TensorEntry, from: number, out: Float32Array): void {
    if (!readable.has(dtype)) throw bad(this.path, `stores ${name} as ${dtype}; only F32, F16 and BF16 can be read`);
    const position = start + from * bytesPerElement[dtype];
    if (dtype === "F32") {
      this.#fill(new Uint8Array(out.buffer, out.byteOffset, out.byteLength), position);
      return;
    }
    const widen = dtype === "BF16" ? widenBfloat16 : widenFloat16;
    const chunk = new Uint16Array(Math.min(chunkElements, out.length));
    for (let done = 0; done < out.length; done += chunk.length) {
      const some = chunk.subarray(0, out.length - done);
      this.#fill(new Uint8Array(some.buffer, 0, some.byteLength), position + done * some.BYTES_PER_ELEMENT);
      widen(some, out.subarray(done));
    }
  }

  /** Bytes of the file, in a buffer of their own. */
  readBytes(position: number, length: number): Uint8Array<ArrayBuffer> {
    const bytes = new Uint8Array(length);
    this.#fill(bytes, position);
    return bytes;
  }

  close(): void {
    closeSync(this.#descriptor);
  }

  #fill(into: Uint8Array, position: number): void {
    fill(this.#descriptor, this.path, into, position);
  }
}

function openFile(path: string): number {
  try {
    return openSync(path, "r");
  } catch (error) {
    throw new EngineError("engine/missing-file", `${path} cannot be read. Name a folder that holds it.`, {
      cause: error,
    });
  }
}

function readHeader(descriptor: number, path: string): Map<string, TensorEntry> {
  const fileBytes = fstatSync(descriptor).size;
  if (fileBytes < 8) throw bad(path, `is ${fileBytes} bytes long, too short for a safetensors file`);
  const prefix = Buffer.alloc(8);
  fill(descriptor, path, prefix, 0);
  const headerBytes = prefix.readBigUInt64LE();
  if (headerBytes > BigInt(maxHeaderBytes) || Number(headerBytes) > fileBytes - 8) {
    throw bad(path, `claims a header of ${headerBytes} bytes in a file of ${fileBytes}`);
  }
  const text = Buffer.alloc(Number(headerBytes));
  fill(descriptor, path, text, 8);
  const dataStart = 8 + text.byteLength;
  const { __metadata__: _metadata, ...tensors } = parseHeader(text, path);

  const entries = new Map<string, TensorEntry>();
  for (const [name, value] of Object.entries(tensors)) {
    entries.set(name, checkEntry(path, name, value, dataStart, fileBytes));
  }
  checkLayout(path, entries, dataStart, fileBytes);
  return entries;
}

function parseHeader(text: Buffer, path: string): Record<string, unknown> {
  let header: unknown;
  try {
    header = JSON.parse(text.toString("utf8"));
  } catch (error) {
    throw bad(path, "has a header that is not JSON", error);
  }
  if (!isRecord(header)) throw bad(path, "has a header that is not a JSON object");
  return header;
}

function checkEntry(path: string, name: string, value: unknown, dataStart: number, fileBytes: number): TensorEntry {
  if (!isRecord(value)) throw bad(path, `describes ${name} with something that is not an object`);
  const { dtype, shape, data_offsets: offsets } = value;
  if (typeof dtype !== "string" || !Object.hasOwn(bytesPerElement, dtype)) {
    throw bad(path, `gives ${name} the unknown dtype ${JSON.stringify(dtype)}`);
  }
  if (!isSizes(shape)) throw bad(path, `gives ${name} the impossible shape ${JSON.stringify(shape)}`);
  if (!isSizes(offsets) || offsets.length !== 2 || offsets[0]! > offsets[1]!) {
    throw bad(path, `gives ${name} the impossible offsets ${JSON.stringify(offsets)}`);
  }
  const [start, end] = [dataStart + offsets[0]!, dataStart + offsets[1]!];
  if (end > fileBytes) {
    throw bad(path, `is cut short: ${name} ends at byte ${end}, and the file has ${fileBytes}`);
  }
  const needed = elementCount(shape) * bytesPerElement[dtype as Dtype];
  if (needed !== end - start) {
    throw bad(path, `stores ${end - start} bytes for ${name}; ${dtype} of shape [${shape}] needs ${needed}`);
  }
  return { name, dtype: dtype as Dtype, shape, start, end };
}

/** Tensors must cover the data exactly once: no overlap, no hole, nothing behind the last. */
function checkLayout(
  path: string,
  entries: ReadonlyMap<string, TensorEntry>,
  dataStart: number,
  fileBytes: number,
): void {
  let position = dataStart;
  for (const entry of [...entries.values()].sort((a, b) => a.start - b.start || a.end - b.end)) {
    if (entry.start !== position) {
      throw bad(path, `has ${entry.name} at byte ${entry.start}, where the tensor before it ends at ${position}`);
    }
    position = entry.end;
  }
  if (position !== fileBytes) throw bad(path, `has data up to byte ${position}, but is ${fileBytes} bytes long`);
}

function fill(descriptor: number, path: string, into: Uint8Array, position: number): void {
  const read = readFully(descriptor, into, position);
  if (read < into.byteLength) throw bad(path, `ended at byte ${position + read} while it was being read`);
}

const isSizes = (value: unknown): value is number[] =>
  Array.isArray(value) && value.every((size) => Number.isSafeInteger(size) && size >= 0);

function bad(path: string, what: string, cause?: unknown): EngineError {
  return new EngineError("engine/bad-safetensors", `${path} ${what}. Copy or download the file again.`, { cause });
}
