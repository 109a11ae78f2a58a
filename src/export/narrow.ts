// Float32 numbers as the bytes of a narrower type, rounded to nearest, ties to even.
import type { Dtype } from "../engine/safetensors.ts";

export type FloatType = Extract<Dtype, "F32" | "F16" | "BF16">;

export const isFloat = (dtype: Dtype): dtype is FloatType => dtype === "F32" || dtype === "F16" || dtype === "BF16";

/** The values as bytes of `dtype`, little-endian. */
export function narrow(values: Float32Array, dtype: FloatType): Uint8Array {
  if (dtype === "F32") return new Uint8Array(values.buffer, values.byteOffset, values.byteLength);
  const bits = new Uint32Array(values.buffer, values.byteOffset, values.length);
  const out = new Uint16Array(values.length);
  const convert = dtype === "BF16" ? bfloat16 : float16;
  for (let index = 0; index < bits.length; index++) out[index] = convert(bits[index]!);
  return new Uint8Array(out.buffer);
}

function bfloat16(bits: number): number {
  if ((bits & 0x7fffffff) > 0x7f800000) return (bits >>> 16) | 0x40; // not a number stays one
  return (bits + 0x7fff + ((bits >>> 16) & 1)) >>> 16;
}

function float16(bits: number): number {
  const sign = (bits >>> 16) & 0x8000;
  const magnitude = bits & 0x7fffffff;
  if (magnitude > 0x7f800000) return sign | 0x7e00;
  if (magnitude >= 0x477ff000) return sign | 0x7c00; // rounds beyond 65504
  if (magnitude < 0x33000001) return sign; // rounds to zero: at most half of the smallest
  const exponent = magnitude >>> 23;
  // Below 2^-14 the number is subnormal: its whole significand moves to the right.
  const shift = exponent < 113 ? 126 - exponent : 13;
  const significand = exponent < 113 ? (magnitude & 0x7fffff) | 0x800000 : magnitude - (112 << 23);
  const half = 1 << (shift - 1);
  const kept = significand >>> shift;
  const rest = significand & ((1 << shift) - 1);
  return sign | (kept + (rest > half || (rest === half && (kept & 1) === 1) ? 1 : 0));
}
