// The journal's records on disk. A segment is a run of frames; a frame is a header, an event as JSON, and its arrays in binary, each
// part with a checksum of its own, so that a reader may pass over the arrays. Parts are deflated where that pays.
//
// header (28 bytes, little-endian): "WJ" · version u8 · flags u8 (1: JSON deflated; upper half: the kind of event) · JSON bytes u32 ·
//   array bytes u32 · JSON length u32 · crc of JSON u32 · crc of arrays u32 · crc of the header before this u32
// arrays: for each: name length u8 · name · type u8 (0 i32, 1 f32) · deflated u8 · elements u32 · stored bytes u32 · data
import { crc32, deflateRawSync, inflateRawSync } from "node:zlib";
import type { Arrays } from "./events.ts";

export const headerBytes = 28;
const formatVersion = 1;
export const jsonDeflated = 1;
/** The events that are nearly all of a journal, as the upper half of `flags`: a reader that wants the others passes over them. 0: any. */
export const bulkKinds = { "group-sampled": 1, graded: 2, "update-done": 3, "turn-sampled": 4 } as const;
/** Smaller parts are stored as they are. */
const deflateFrom = 512;
/** So are larger arrays: deflating one would hold up for seconds whoever waits for it, and holds it twice meanwhile. */
const deflateTo = 8 * 1024 * 1024;

export interface FrameHeader {
  flags: number;
  jsonBytes: number;
  arrayBytes: number;
  jsonLength: number;
  jsonCrc: number;
  arraysCrc: number;
}

/** The bytes of one frame, in pieces to be written one after another: header, JSON, arrays. In a `hurry` arrays stay as they are. */
export function encodeFrame(json: string, arrays: Arrays, hurry = false): [Buffer, Buffer, ...Uint8Array[]] {
  const plain = Buffer.from(json);
  const packed = deflatedIfSmaller(plain);
  // Without empty pieces: zlib takes one for a request to begin anew.
  const sections = Object.entries(arrays)
    .flatMap(([name, array]) => encodeArray(name, array, hurry))
    .filter(({ length }) => length > 0);
  let arraysCrc = 0;
  for (const section of sections) arraysCrc = crc32(section, arraysCrc);
  const header = Buffer.alloc(headerBytes);
  header.write("WJ", 0, "latin1");
  header.writeUInt8(formatVersion, 2);
  header.writeUInt8((packed ? jsonDeflated : 0) | (kindOf(json) << 4), 3);
  header.writeUInt32LE((packed ?? plain).length, 4);
  header.writeUInt32LE(
    sections.reduce((sum, section) => sum + section.length, 0),
    8,
  );
  header.writeUInt32LE(plain.length, 12);
  header.writeUInt32LE(crc32(packed ?? plain), 16);
  header.writeUInt32LE(arraysCrc, 20);
  header.writeUInt32LE(crc32(header.subarray(0, 24)), 24);
  return [header, packed ?? plain, ...sections];
}

/** The kind of an event by how its JSON begins; 0 for those that no reader passes over. */
function kindOf(json: string): number {
  const type = /^\{"type":"([a-z-]+)"/.exec(json)?.[1] ?? "";
  return Object.hasOwn(bulkKinds, type) ? bulkKinds[type as keyof typeof bulkKinds] : 0;
}

function encodeArray(name: string, array: Int32Array | Float32Array, hurry: boolean): Uint8Array[] {
  const plain = Buffer.from(array.buffer, array.byteOffset, array.byteLength);
  const packed = !hurry && plain.length <= deflateTo && worthDeflating(plain) ? deflatedIfSmaller(plain) : undefined;
  const label = Buffer.from(name);
  const head = Buffer.alloc(1 + label.length + 10);
  head.writeUInt8(label.length, 0);
  label.copy(head, 1);
  let offset = 1 + label.length;
  head.writeUInt8(array instanceof Int32Array ? 0 : 1, offset++);
  head.writeUInt8(packed ? 1 : 0, offset++);
  head.writeUInt32LE(array.length, offset);
  head.writeUInt32LE((packed ?? plain).length, offset + 4);
  return [head, packed ?? plain];
}

/** Log-probabilities hardly shrink; a sample of a large array tells. */
function worthDeflating(bytes: Buffer): boolean {
  const sample = bytes.subarray(0, 16_384);
  return bytes.length === sample.length || deflateRawSync(sample, { level: 1 }).length < 0.85 * sample.length;
}

function deflatedIfSmaller(bytes: Buffer): Buffer | undefined {
  if (bytes.length < deflateFrom) return undefined;
  const packed = deflateRawSync(bytes, { level: 1 });
  return packed.length < 0.9 * bytes.length ? packed : undefined;
}

/** Reads a header; undefined where the bytes are none. */
export function decodeHeader(bytes: Buffer): FrameHeader | undefined {
  if (bytes.length < headerBytes || bytes.toString("latin1", 0, 2) !== "WJ") return undefined;
  if (bytes.readUInt8(2) !== formatVersion || bytes.readUInt32LE(24) !== crc32(bytes.subarray(0, 24))) return undefined;
  return {
    flags: bytes.readUInt8(3),
    jsonBytes: bytes.readUInt32LE(4),
    arrayBytes: bytes.readUInt32LE(8),
    jsonLength: bytes.readUInt32LE(12),
    jsonCrc: bytes.readUInt32LE(16),
    arraysCrc: bytes.readUInt32LE(20),
  };
}

/** Whether these are the bytes of the event's JSON. */
export const isIntact = (header: FrameHeader, bytes: Buffer): boolean =>
  bytes.length === header.jsonBytes && crc32(bytes) === header.jsonCrc;

/** The event's JSON text; undefined when the checksum does not fit. */
export function decodeJson(header: FrameHeader, bytes: Buffer): string | undefined {
  if (!isIntact(header, bytes)) return undefined;
  const deflated = (header.flags & jsonDeflated) !== 0;
  return (deflated ? inflateRawSync(bytes, { maxOutputLength: header.jsonLength }) : bytes).toString("utf8");
}

/** The arrays; undefined when the checksum does not fit. */
export function decodeArrays(header: FrameHeader, bytes: Buffer): Arrays | undefined {
  if (bytes.length !== header.arrayBytes || crc32(bytes) !== header.arraysCrc) return undefined;
  const arrays: Record<string, Int32Array | Float32Array> = {};
  for (let offset = 0; offset < bytes.length; ) {
    const nameLength = bytes.readUInt8(offset++);
    const name = bytes.toString("utf8", offset, offset + nameLength);
    offset += nameLength;
    const type = bytes.readUInt8(offset++);
    const deflated = bytes.readUInt8(offset++) === 1;
    const length = bytes.readUInt32LE(offset);
    const stored = bytes.readUInt32LE(offset + 4);
    offset += 8;
    const data = bytes.subarray(offset, offset + stored);
    offset += stored;
    const plain = deflated ? inflateRawSync(data, { maxOutputLength: Math.max(1, 4 * length) }) : data;
    // Copied: a typed array must begin at a multiple of its element's size.
    const aligned = new ArrayBuffer(4 * length);
    new Uint8Array(aligned).set(plain);
    arrays[name] = type === 0 ? new Int32Array(aligned) : new Float32Array(aligned);
  }
  return arrays;
}
