// Decodes LiveCodeBench's private tests: base64, then zlib, then a Python pickle. Only the few opcodes that build one string, or
// one dictionary with a single string in it, are understood; there is no general unpickler here, and nothing is executed.
import { inflateSync } from "node:zlib";

/** Decompressed tests beyond this are refused: a small file must not become gigabytes. */
const maxBytes = 512 * 1024 ** 2;

/** The JSON text inside encoded private tests, or undefined when the text is not such an encoding. Never throws. */
export function decodePrivateTests(encoded: string): string | undefined {
  const compact = encoded.trim();
  if (compact.length < 8 || !/^[A-Za-z0-9+/]+={0,2}$/.test(compact)) return undefined;
  try {
    return readPickledText(inflateSync(Buffer.from(compact, "base64"), { maxOutputLength: maxBytes }));
  } catch {
    return undefined;
  }
}

/** Opcodes that say nothing of the value, and the bytes that follow them: protocol, frame, memoize, binput, long binput. */
const skipped: Readonly<Record<number, number>> = { 128: 1, 149: 8, 148: 0, 113: 1, 114: 4 };
/** Those of strings, and the bytes of the length in front of the text. */
const strings: Readonly<Record<number, 1 | 4 | 8>> = { 140: 1, 88: 4, 141: 8 };
const emptyDictionary = 0x7d;
const setItem = 0x73;
const stop = 0x2e;

/** The one string of a pickle: by itself, or as the value of "input_output" in a one-entry dictionary. */
export function readPickledText(bytes: Uint8Array): string | undefined {
  const buffer = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const found: string[] = [];
  let inDictionary = false;
  let isSet = false;
  let position = 0;
  const text = (lengthBytes: 1 | 4 | 8): boolean => {
    if (position + lengthBytes > buffer.length) return false;
    const length =
      lengthBytes === 8 ? Number(buffer.readBigUInt64LE(position)) : buffer.readUIntLE(position, lengthBytes);
    position += lengthBytes;
    if (position + length > buffer.length) return false;
    found.push(buffer.toString("utf8", position, position + length));
    position += length;
    return true;
  };
  while (position < buffer.length) {
    const opcode = buffer[position++]!;
    const lengthBytes = strings[opcode];
    if (lengthBytes !== undefined) {
      if (!text(lengthBytes)) return undefined;
    } else if (opcode in skipped) position += skipped[opcode]!;
    else if (opcode === emptyDictionary && !inDictionary && found.length === 0) inDictionary = true;
    else if (opcode === setItem && inDictionary && found.length === 2 && !isSet) isSet = true;
    else if (opcode === stop && position === buffer.length) {
      if (inDictionary) return isSet && found[0] === "input_output" ? found[1] : undefined;
      return found.length === 1 ? found[0] : undefined;
    } else return undefined;
  }
  return undefined;
}
