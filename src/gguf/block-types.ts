// How GGML's types store numbers: blocks of some numbers in some bytes, most of them with a scale (and a minimum) of the block and small
// whole numbers. Each is widened in float32 with the roundings of llama.cpp's Python package (gguf), in its order of operations.
import { float16Values, widenBfloat16, widenFloat16 } from "../core/float16.ts";

export interface BlockType {
  name: string;
  /** Numbers in a block, and the bytes they take. */
  blockSize: number;
  blockBytes: number;
  /** Widens whole blocks. */
  unpack(bytes: Uint8Array, out: Float32Array): void;
}

const { fround } = Math;

/** A type that is widened block by block. */
function blocks(name: string, blockSize: number, blockBytes: number, unpackBlock: UnpackBlock): BlockType {
  const unpack = (bytes: Uint8Array, out: Float32Array) => {
    const half = float16Values();
    const float16 = (at: number) => half[bytes[at]! | (bytes[at + 1]! << 8)]!;
    for (let at = 0, to = 0; at < bytes.length; at += blockBytes, to += blockSize)
      unpackBlock({ bytes, at, float16, out, to });
  };
  return { name, blockSize, blockBytes, unpack };
}

interface Block {
  bytes: Uint8Array;
  /** Where the block begins, in the bytes and among the numbers. */
  at: number;
  to: number;
  out: Float32Array;
  /** The 16-bit float at a byte. */
  float16(at: number): number;
}
type UnpackBlock = (block: Block) => void;

/** 32 numbers of four bits, the low halves of 16 bytes and then the high ones; `fifth`: where their fifth bits are. */
function nibble(bytes: Uint8Array, at: number, index: number, fifth?: number): number {
  const low = index < 16 ? bytes[at + index]! & 15 : bytes[at + index - 16]! >> 4;
  return fifth === undefined ? low : low | (((bytes[fifth + (index >> 3)]! >> (index & 7)) & 1) << 4);
}

/** scale × (number - offset) */
const scaled =
  (data: number, offset: number, fifth?: number): UnpackBlock =>
  ({ bytes, at, to, out, float16 }) => {
    const scale = float16(at);
    for (let index = 0; index < 32; index++)
      out[to + index] =
        scale * (nibble(bytes, at + data, index, fifth === undefined ? undefined : at + fifth) - offset);
  };

/** scale × number + minimum */
const shifted =
  (data: number, fifth?: number): UnpackBlock =>
  ({ bytes, at, to, out, float16 }) => {
    const [scale, minimum] = [float16(at), float16(at + 2)];
    for (let index = 0; index < 32; index++)
      out[to + index] =
        fround(scale * nibble(bytes, at + data, index, fifth === undefined ? undefined : at + fifth)) + minimum;
  };

const q8_0: UnpackBlock = ({ bytes, at, to, out, float16 }) => {
  const scale = float16(at);
  for (let index = 0; index < 32; index++) out[to + index] = signed(bytes[at + 2 + index]!) * scale;
};

/** 16 groups of 16, each with four bits of scale and of minimum. */
const q2K: UnpackBlock = ({ bytes, at, to, out, float16 }) => {
  const [scale, minimum] = [float16(at + 80), float16(at + 82)];
  for (let index = 0; index < 256; index++) {
    const group = bytes[at + (index >> 4)]!;
    const number = (bytes[at + 16 + (index >> 7) * 32 + (index & 31)]! >> (2 * ((index >> 5) & 3))) & 3;
    out[to + index] = fround(fround(scale * (group & 15)) * number) - fround(minimum * (group >> 4));
  }
};

/** 16 groups of 16 with a scale of six bits; a number's third bit, inverted, is in the mask. */
const q3K: UnpackBlock = ({ bytes, at, to, out, float16 }) => {
  const scale = float16(at + 108);
  for (let index = 0; index < 256; index++) {
    const group = index >> 4;
    const low = (bytes[at + 96 + (group & 7)]! >> (4 * (group >> 3))) & 15;
    const high = (bytes[at + 104 + (group & 3)]! >> (2 * (group >> 2))) & 3;
    const number = (bytes[at + 32 + (index >> 7) * 32 + (index & 31)]! >> (2 * ((index >> 5) & 3))) & 3;
    const negative = ((bytes[at + (index & 31)]! >> (index >> 5)) & 1) ^ 1;
    out[to + index] = fround(scale * ((low | (high << 4)) - 32)) * (number - (negative << 2));
  }
};

/** Eight groups of 32 with a scale and a minimum of six bits each, in 12 bytes. */
function sixBits(bytes: Uint8Array, at: number, group: number): [scale: number, minimum: number] {
  const low = bytes[at + (group & 3)]!;
  const middle = bytes[at + 4 + (group & 3)]!;
  if (group < 4) return [low & 63, middle & 63];
  const high = bytes[at + 4 + group]!;
  return [(high & 15) | ((low >> 2) & 48), (high >> 4) | ((middle >> 2) & 48)];
}

/** Of Q4_K, and of Q5_K, whose fifth bits stand before its nibbles. */
const fourBitsK =
  (fifthBits: boolean): UnpackBlock =>
  ({ bytes, at, to, out, float16 }) => {
    const data = at + (fifthBits ? 48 : 16);
    for (let group = 0; group < 8; group++) {
      const [scale, minimum] = sixBits(bytes, at + 4, group);
      const [by, less] = [fround(float16(at) * scale), fround(float16(at + 2) * minimum)];
      for (let index = 0; index < 32; index++) {
        const low = (bytes[data + (group >> 1) * 32 + index]! >> (4 * (group & 1))) & 15;
        const number = fifthBits ? low | (((bytes[at + 16 + index]! >> group) & 1) << 4) : low;
        out[to + group * 32 + index] = fround(by * number) - less;
      }
    }
  };

/** 16 groups of 16 with a scale of eight bits; four low bits of a number and two high ones. */
const q6K: UnpackBlock = ({ bytes, at, to, out, float16 }) => {
  const scale = float16(at + 208);
  for (let index = 0; index < 256; index++) {
    const [half, within] = [index >> 7, index & 127];
    const low = (bytes[at + half * 64 + (within & 63)]! >> (within < 64 ? 0 : 4)) & 15;
    const high = (bytes[at + 128 + half * 32 + (within & 31)]! >> (2 * (within >> 5))) & 3;
    out[to + index] = fround(scale * signed(bytes[at + 192 + (index >> 4)]!)) * ((low | (high << 4)) - 32);
  }
};

/** The 16 values that IQ4_NL and IQ4_XS know, dense around zero. */
const uneven = [-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113];

const iq4NL: UnpackBlock = ({ bytes, at, to, out, float16 }) => {
  const scale = float16(at);
  for (let index = 0; index < 32; index++) out[to + index] = scale * uneven[nibble(bytes, at + 2, index)]!;
};

/** Eight groups of 32 with a scale of six bits. */
const iq4XS: UnpackBlock = ({ bytes, at, to, out, float16 }) => {
  for (let group = 0; group < 8; group++) {
    const low = (bytes[at + 4 + (group >> 1)]! >> (4 * (group & 1))) & 15;
    const high = ((bytes[at + 2]! | (bytes[at + 3]! << 8)) >> (2 * group)) & 3;
    const scale = fround(float16(at) * ((low | (high << 4)) - 32));
    for (let index = 0; index < 32; index++)
      out[to + group * 32 + index] = scale * uneven[nibble(bytes, at + 8 + group * 16, index)]!;
  }
};

const signed = (byte: number) => (byte << 24) >> 24;

const float32: BlockType["unpack"] = (bytes, out) =>
  new Uint8Array(out.buffer, out.byteOffset, bytes.length).set(bytes);
/** A type of 16-bit floats. */
const half =
  (widen: (from: Uint16Array, to: Float32Array) => void): BlockType["unpack"] =>
  (bytes, out) =>
    widen(new Uint16Array(bytes.buffer, bytes.byteOffset, bytes.length / 2), out);

/** By GGML's number of the type. */
export const blockTypes: Readonly<Record<number, BlockType>> = {
  0: { name: "F32", blockSize: 1, blockBytes: 4, unpack: float32 },
  1: { name: "F16", blockSize: 1, blockBytes: 2, unpack: half(widenFloat16) },
  2: blocks("Q4_0", 32, 18, scaled(2, 8)),
  3: blocks("Q4_1", 32, 20, shifted(4)),
  6: blocks("Q5_0", 32, 22, scaled(6, 16, 2)),
  7: blocks("Q5_1", 32, 24, shifted(8, 4)),
  8: blocks("Q8_0", 32, 34, q8_0),
  10: blocks("Q2_K", 256, 84, q2K),
  11: blocks("Q3_K", 256, 110, q3K),
  12: blocks("Q4_K", 256, 144, fourBitsK(false)),
  13: blocks("Q5_K", 256, 176, fourBitsK(true)),
  14: blocks("Q6_K", 256, 210, q6K),
  20: blocks("IQ4_NL", 32, 18, iq4NL),
  23: blocks("IQ4_XS", 256, 136, iq4XS),
  30: { name: "BF16", blockSize: 1, blockBytes: 2, unpack: half(widenBfloat16) },
};
