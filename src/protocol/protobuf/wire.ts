// The protobuf encoding itself: varints, length-delimited fields, and raw little-endian arrays. Arrays go between typed arrays
// and bytes by block copies; no object is made per number.
import { endianness } from "node:os";
import { ProtocolError } from "../errors.ts";

if (endianness() !== "LE") throw new Error("Whetstone's protobuf codecs need a little-endian machine.");

const textDecoder = new TextDecoder("utf-8", { fatal: true });

export function malformed(reason: string): ProtocolError {
  return new ProtocolError(
    "protocol/malformed-protobuf",
    `The protobuf body cannot be read: ${reason}. Send the message that this route expects, unchanged.`,
    [{ loc: ["body"], msg: reason, type: "protobuf_invalid" }],
  );
}

export const wireType = { varint: 0, fixed64: 1, bytes: 2, fixed32: 5 } as const;

/** Reads one message's fields from a range of bytes. Every length is checked against the range before it is used. */
export class Reader {
  readonly bytes: Uint8Array;
  position: number;
  readonly end: number;
  /** The field that `next` stopped at. */
  field = 0;
  type = 0;

  constructor(bytes: Uint8Array, start = 0, end = bytes.length) {
    this.bytes = bytes;
    this.position = start;
    this.end = end;
  }

  /** Moves to the next field; false at the end of the message. */
  next(): boolean {
    if (this.position >= this.end) return false;
    const tag = this.varint();
    this.field = Math.floor(tag / 8);
    this.type = tag & 7;
    if (this.field < 1 || this.field > 0x1fffffff) throw malformed(`field number ${this.field}`);
    return true;
  }

  skip(): void {
    if (this.type === wireType.varint) this.varint();
    else if (this.type === wireType.fixed64) this.advance(8);
    else if (this.type === wireType.bytes) this.advance(this.length());
    else if (this.type === wireType.fixed32) this.advance(4);
    else throw malformed(`wire type ${this.type} of field ${this.field}`);
  }

  /** An unsigned varint as a number; the low 53 bits are exact, negative int64 values come out above 2^63. */
  varint(): number {
    let value = 0;
    let scale = 1;
    for (let count = 0; count < 10; count++) {
      if (this.position >= this.end) throw malformed("it ends inside a number");
      const byte = this.bytes[this.position++]!;
      value += (byte & 0x7f) * scale;
      if (byte < 0x80) return value;
      scale *= 128;
    }
    throw malformed("a number is longer than 10 bytes");
  }

  /** An int32 field: negative values are sign-extended to ten bytes. */
  int32(): number {
    this.expect(wireType.varint);
    let value = 0;
    for (let count = 0; count < 10; count++) {
      if (this.position >= this.end) throw malformed("it ends inside a number");
      const byte = this.bytes[this.position++]!;
      if (count < 5) value |= (byte & 0x7f) << (7 * count);
      if (byte < 0x80) return value;
    }
    throw malformed("a number is longer than 10 bytes");
  }

  bool(): boolean {
    this.expect(wireType.varint);
    return this.varint() !== 0;
  }

  enum(): number {
    return this.int32();
  }

  /** A count or a size: an int64 that must lie in 0 … 2^53. */
  size(): number {
    this.expect(wireType.varint);
    return this.checkedSize();
  }

  double(): number {
    this.expect(wireType.fixed64);
    const start = this.advance(8);
    return new DataView(this.bytes.buffer, this.bytes.byteOffset + start, 8).getFloat64(0, true);
  }

  string(): string {
    const start = this.block();
    try {
      return textDecoder.decode(this.bytes.subarray(start, this.position));
    } catch {
      throw malformed(`field ${this.field} is not UTF-8 text`);
    }
  }

  /** A reader over a nested message. */
  message(): Reader {
    const start = this.block();
    return new Reader(this.bytes, start, this.position);
  }

  /** A copy of a bytes field. */
  copy(): Uint8Array {
    return this.aligned(1);
  }

  /** Adds a repeated int64 field, packed or not, to `sizes`. */
  sizes(sizes: number[]): void {
    if (this.type === wireType.varint) {
      sizes.push(this.checkedSize());
      return;
    }
    const inner = this.message();
    while (inner.position < inner.end) sizes.push(inner.checkedSize());
  }

  int32s(): Int32Array<ArrayBuffer> {
    const copy = this.aligned(4);
    return new Int32Array(copy.buffer, 0, copy.length / 4);
  }

  float32s(): Float32Array<ArrayBuffer> {
    const copy = this.aligned(4);
    return new Float32Array(copy.buffer, 0, copy.length / 4);
  }

  /** A copy of a bytes field in a buffer of its own, whose length is a multiple of `itemSize`. */
  aligned(itemSize: number): Uint8Array<ArrayBuffer> {
    const start = this.block();
    const count = this.position - start;
    if (count % itemSize !== 0) throw malformed(`an array of ${itemSize}-byte items has ${count} bytes`);
    const copy = new Uint8Array(count);
    copy.set(this.bytes.subarray(start, this.position));
    return copy;
  }

  private checkedSize(): number {
    const value = this.varint();
    if (value > Number.MAX_SAFE_INTEGER) throw malformed(`a size of field ${this.field} is out of range`);
    return value;
  }

  /** Passes over a bytes field and returns where its content starts; `position` is then its end. */
  private block(): number {
    this.expect(wireType.bytes);
    return this.advance(this.length());
  }

  private length(): number {
    const length = this.varint();
    if (length > this.end - this.position) throw malformed(`field ${this.field} is longer than what follows it`);
    return length;
  }

  private advance(count: number): number {
    const start = this.position;
    if (count > this.end - start) throw malformed("it ends inside a field");
    this.position = start + count;
    return start;
  }

  private expect(type: number): void {
    if (this.type !== type) throw malformed(`field ${this.field} has wire type ${this.type}, expected ${type}`);
  }
}

/** The bytes an unsigned number takes as a varint. */
export function varintSize(value: number): number {
  let size = 1;
  while (value >= 128) {
    value = Math.floor(value / 128);
    size++;
  }
  return size;
}

/** The bytes a length-delimited field takes, its tag (of one byte) and length included. */
export const blockSize = (length: number) => 1 + varintSize(length) + length;

/** Writes fields into a buffer of the right size, which the caller has computed. Field numbers are below 16. */
export class Writer {
  readonly bytes: Uint8Array;
  position = 0;

  /** `bytes` may be longer than what will be written. */
  constructor(bytes: number | Uint8Array) {
    this.bytes = typeof bytes === "number" ? Buffer.allocUnsafeSlow(bytes) : bytes;
  }

  /** The bytes written. A difference from the computed size is a mistake in this folder. */
  finish(): Uint8Array {
    if (this.position !== this.bytes.length)
      throw new Error(`protobuf size ${this.bytes.length} was computed, ${this.position} bytes were written`);
    return this.bytes;
  }

  tag(field: number, type: number): void {
    this.bytes[this.position++] = (field << 3) | type;
  }

  varint(value: number): void {
    while (value >= 128) {
      this.bytes[this.position++] = (value % 128) | 0x80;
      value = Math.floor(value / 128);
    }
    this.bytes[this.position++] = value;
  }

  /** An int32, bool or enum field; nothing when it is 0. Negative values are not used by this protocol. */
  number(field: number, value: number): void {
    if (value === 0) return;
    this.tag(field, wireType.varint);
    this.varint(value);
  }

  double(field: number, value: number): void {
    this.tag(field, wireType.fixed64);
    new DataView(this.bytes.buffer, this.bytes.byteOffset + this.position, 8).setFloat64(0, value, true);
    this.position += 8;
  }

  /** The head of a length-delimited field; its content must follow. */
  head(field: number, length: number): void {
    this.tag(field, wireType.bytes);
    this.varint(length);
  }

  block(field: number, content: Uint8Array): void {
    this.head(field, content.length);
    this.raw(content);
  }

  raw(content: Uint8Array): void {
    this.bytes.set(content, this.position);
    this.position += content.length;
  }

  array(field: number, array: Int32Array | Float32Array | BigInt64Array): void {
    this.head(field, array.byteLength);
    this.raw(new Uint8Array(array.buffer, array.byteOffset, array.byteLength));
  }

  /** 32-bit integers as int64[]. */
  int64s(field: number, values: Int32Array | BigInt64Array): void {
    if (values instanceof BigInt64Array) {
      this.array(field, values);
      return;
    }
    this.head(field, values.length * 8);
    this.rawInt64s(values);
  }

  /** A plain list, written as the kind of array it stands for. Throws where a value is no number of that kind. */
  list(field: number, list: readonly number[], kind: "int32" | "int64" | "float32", name: string): void {
    this.head(field, list.length * (kind === "int64" ? 8 : 4));
    for (let start = 0; start < list.length; start += listBlock) {
      const end = Math.min(start + listBlock, list.length);
      const bad = convert[kind](list, start, end);
      if (bad >= 0) {
        const reason = `${name}[${bad}] is ${String(list[bad])}, not ${kind === "float32" ? "a number" : "a 32-bit integer"}`;
        throw new ProtocolError("protocol/invalid-message", `${reason}. Pass a flat list of numbers.`);
      }
      this.raw(
        kind === "int64" ? scratchBytes.subarray(0, 8 * (end - start)) : scratchBytes.subarray(0, 4 * (end - start)),
      );
    }
  }

  /** 32-bit integers as int64[], without a head. */
  rawInt64s(values: Int32Array): void {
    for (let start = 0; start < values.length; start += listBlock) {
      const end = Math.min(start + listBlock, values.length);
      for (let index = start, to = 0; index < end; index++, to += 2) {
        const value = values[index]!;
        scratch[to] = value;
        scratch[to + 1] = value >> 31;
      }
      this.raw(scratchBytes.subarray(0, 8 * (end - start)));
    }
  }
}

/** Values are converted in blocks that stay in the processor's cache until they are copied out. */
const listBlock = 4096;
const scratch = new Int32Array(2 * listBlock);
const scratchFloats = new Float32Array(scratch.buffer, 0, listBlock);
const scratchBytes = new Uint8Array(scratch.buffer);

/** Each puts a block of a list into the scratch space; the index of the first value that is not of its kind, or -1. */
const convert = {
  int32(list: readonly number[], start: number, end: number): number {
    for (let index = start; index < end; index++) {
      const value = list[index]! | 0;
      if (value !== list[index]) return index;
      scratch[index - start] = value;
    }
    return -1;
  },
  int64(list: readonly number[], start: number, end: number): number {
    for (let index = start, to = 0; index < end; index++, to += 2) {
      const value = list[index]! | 0;
      if (value !== list[index]) return index;
      scratch[to] = value;
      scratch[to + 1] = value >> 31;
    }
    return -1;
  },
  float32(list: readonly number[], start: number, end: number): number {
    for (let index = start; index < end; index++) {
      const value = list[index];
      if (typeof value !== "number") return index;
      scratchFloats[index - start] = value;
    }
    return -1;
  },
};

/** Little-endian int64[] as an Int32Array where every value fits, else as a BigInt64Array. `bytes` starts its own buffer. */
export function narrowed(bytes: Uint8Array<ArrayBuffer>): Int32Array<ArrayBuffer> | BigInt64Array<ArrayBuffer> {
  const count = bytes.length / 8;
  const halves = new Int32Array(bytes.buffer, bytes.byteOffset, 2 * count);
  const values = new Int32Array(count);
  for (let index = 0; index < count; index++) {
    const low = halves[2 * index]!;
    if (halves[2 * index + 1] !== low >> 31) return new BigInt64Array(bytes.buffer, bytes.byteOffset, count);
    values[index] = low;
  }
  return values;
}

const textEncoder = new TextEncoder();
const encodedTexts = new Map<string, Uint8Array>();

/** UTF-8 bytes; names repeat in every datum, so short ones are remembered. */
export function utf8(text: string): Uint8Array {
  let bytes = encodedTexts.get(text);
  if (!bytes) {
    bytes = textEncoder.encode(text);
    if (encodedTexts.size < 256 && bytes.length < 128) encodedTexts.set(text, bytes);
  }
  return bytes;
}
