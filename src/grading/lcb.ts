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

/** The one string of a pickle: by itself, or as the value of "input_output" in a one-entry dictionary. */
export function readPickledText(bytes: Uint8Array): string | undefined {
  const buffer = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const strings: string[] = [];
  let inDictionary = false;
  let entries = 0;
  let position = 0;
  const text = (lengthBytes: 1 | 4 | 8): boolean => {
    if (position + lengthBytes > buffer.length) return false;
    const length =
      lengthBytes === 1
        ? buffer.readUInt8(position)
        : lengthBytes === 4
          ? buffer.readUInt32LE(position)
          : Number(buffer.readBigUInt64LE(position));
    position += lengthBytes;
    if (position + length > buffer.length) return false;
    strings.push(buffer.toString("utf8", position, position + length));
    position += length;
    return true;
  };
  while (position < buffer.length) {
    const opcode = buffer[position++]!;
    if (opcode === 0x80)
      position += 1; // protocol
    else if (opcode === 0x95)
      position += 8; // frame
    else if (opcode === 0x94)
      continue; // memoize
    else if (opcode === 0x71)
      position += 1; // binput
    else if (opcode === 0x72)
      position += 4; // long binput
    else if (opcode === 0x58 || opcode === 0x8c || opcode === 0x8d) {
      if (!text(opcode === 0x58 ? 4 : opcode === 0x8c ? 1 : 8)) return undefined;
    } else if (opcode === 0x7d && !inDictionary && strings.length === 0) inDictionary = true;
    else if (opcode === 0x73 && inDictionary && strings.length === 2 && entries === 0) entries = 1;
    else if (opcode === 0x2e) {
      if (position !== buffer.length) return undefined;
      if (inDictionary) return entries === 1 && strings[0] === "input_output" ? strings[1] : undefined;
      return strings.length === 1 ? strings[0] : undefined;
    } else return undefined;
  }
  return undefined;
}
