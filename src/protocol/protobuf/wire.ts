// The protobuf encoding itself: varints, length-delimited fields, and raw little-endian arrays. Arrays go between typed arrays
// and bytes by block copies; no object is made per number.
import { endianness } from "node:os";
import type { Part } from "../../core/protobuf.ts";
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

const wireType = { varint: 0, fixed64: 1, bytes: 2, fixed32: 5 } as const;

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

  /** Reads every field of the message with the reader of its number; those without one are passed over. */
  fields(readers: Readonly<Record<number, () => void>>): void {
    while (this.next()) {
      const read = readers[this.field];
      if (read) read();
      else this.skip();
    }
  }

  /** An entry of a map, whose value `read` takes; `missing` where there is none. */
  entry<T>(missing: T, read: (entry: Reader) => T): [key: string, value: T] {
    const entry = this.message();
    let key = "";
    let value = missing;
    entry.fields({ 1: () => (key = entry.string()), 2: () => (value = read(entry)) });
    return [key, value];
  }

  /** Moves to the next field; false at the end of the message. */
  private next(): boolean {
    if (this.position >= this.end) return false;
    const tag = this.varint();
    this.field = Math.floor(tag / 8);
    this.type = tag & 7;
    if (this.field < 1 || this.field > 0x1fffffff) throw malformed(`field number ${this.field}`);
    return true;
  }

  private skip(): void {
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
    const copy = this.copy(4);
    return new Int32Array(copy.buffer, 0, copy.length / 4);
  }

  float32s(): Float32Array<ArrayBuffer> {
    const copy = this.copy(4);
    return new Float32Array(copy.buffer, 0, copy.length / 4);
  }

  /** A copy of a bytes field in a buffer of its own, whose length is a multiple of `itemSize`. */
  copy(itemSize = 1): Uint8Array<ArrayBuffer> {
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

/** The memory of an array, as it travels. */
export const bytesOf = (array: Int32Array | Float32Array | BigInt64Array): Uint8Array =>
  new Uint8Array(array.buffer, array.byteOffset, array.byteLength);

/** Numbers as the kind of array that they stand for. Writing throws where a value is no number of that kind. */
export function numbers(values: ArrayLike<number>, kind: "int32" | "int64" | "float32", name: string): Part {
  const itemSize = kind === "int64" ? 8 : 4;
  const write = kind === "float32" ? writeFloats : kind === "int64" ? writeInt64s : writeInt32s;
  return {
    length: values.length * itemSize,
    writeTo(target, offset) {
      const bad = write(values, new DataView(target.buffer, target.byteOffset + offset, this.length));
      if (bad < 0) return;
      const reason = `${name}[${bad}] is ${String(values[bad])}, not ${kind === "float32" ? "a number" : "a 32-bit integer"}`;
      throw new ProtocolError("protocol/invalid-message", `${reason}. Pass a flat list of numbers.`);
    },
  };
}

// Each returns the index of the first value that is not of its kind, or -1. They are loops of their own because a batch holds millions.

function writeFloats(values: ArrayLike<number>, target: DataView): number {
  for (let index = 0; index < values.length; index++) {
    const value = values[index];
    if (typeof value !== "number") return index;
    target.setFloat32(4 * index, value, true);
  }
  return -1;
}

function writeInt32s(values: ArrayLike<number>, target: DataView): number {
  for (let index = 0; index < values.length; index++) {
    const value = values[index]! | 0;
    if (value !== values[index]) return index;
    target.setInt32(4 * index, value, true);
  }
  return -1;
}

function writeInt64s(values: ArrayLike<number>, target: DataView): number {
  for (let index = 0; index < values.length; index++) {
    const value = values[index]! | 0;
    if (value !== values[index]) return index;
    target.setInt32(8 * index, value, true);
    target.setInt32(8 * index + 4, value >> 31, true);
  }
  return -1;
}

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

/** Sets an own property whatever the key, "__proto__" included. */
export function setEntry<T>(record: Record<string, T>, key: string, value: T): void {
  if (key === "__proto__")
    Object.defineProperty(record, key, { value, enumerable: true, configurable: true, writable: true });
  else record[key] = value;
}
