// Number arrays: plain JSON lists on the wire, typed arrays in the code. Each list is checked in one tight loop, because a
// training batch holds millions of numbers.
import { z } from "zod";

function indexOfNonInteger(list: readonly unknown[], low: number, high: number): number {
  for (let index = 0; index < list.length; index++) {
    const value = list[index];
    if (typeof value !== "number" || !Number.isInteger(value) || value < low || value > high) return index;
  }
  return -1;
}

const describe = (value: unknown) => (typeof value === "string" ? `"${value.slice(0, 40)}"` : String(value));

/** A list of 32-bit integers (token ids, indices) ↔ Int32Array. */
export const int32Array = z.codec(
  z.custom<readonly number[]>((value) => Array.isArray(value), "expected a list of integers"),
  z.custom<Int32Array>((value) => value instanceof Int32Array),
  {
    decode(list, context) {
      const bad = indexOfNonInteger(list, -0x80000000, 0x7fffffff);
      if (bad < 0) return new Int32Array(list);
      context.issues.push({
        code: "custom",
        input: list,
        message: `expected 32-bit integers, got ${describe(list[bad])} at index ${bad}`,
      });
      return z.NEVER;
    },
    encode: (array) => Array.from(array),
  },
);

/** A list of numbers where null stands for "none" ↔ Float32Array where NaN does. */
export const float32Array = z.codec(
  z.custom<readonly (number | null)[]>((value) => Array.isArray(value), "expected a list of numbers"),
  z.custom<Float32Array>((value) => value instanceof Float32Array),
  {
    decode(list, context) {
      const array = new Float32Array(list.length);
      for (let index = 0; index < list.length; index++) {
        const value = list[index];
        if (typeof value === "number") array[index] = value;
        else if (value === null) array[index] = Number.NaN;
        else {
          context.issues.push({
            code: "custom",
            input: list,
            message: `expected numbers, got ${describe(value)} at index ${index}`,
          });
          return z.NEVER;
        }
      }
      return array;
    },
    encode: (array) => Array.from(array, (value) => (Number.isNaN(value) ? null : value)),
  },
);

/** Up to k [token, logprob] pairs for each token, null where there is none (the first of a prompt). */
export type TopkLogprobs = ([token: number, logprob: number][] | null)[];
export const topkRows: z.ZodType<TopkLogprobs> = z.array(z.array(z.tuple([z.int(), z.number()])).nullable());

/** Base64 text ↔ bytes. */
export const base64Bytes = z.codec(
  z.base64(),
  z.custom<Uint8Array>((value) => value instanceof Uint8Array),
  {
    decode: (text) => new Uint8Array(Buffer.from(text, "base64")),
    encode: (bytes) => Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString("base64"),
  },
);

/** 64-bit integers as they are read: an Int32Array where every value fits (token ids always do), else a BigInt64Array. */
export function narrowInt64(values: readonly number[]): Int32Array | BigInt64Array {
  return indexOfNonInteger(values, -0x80000000, 0x7fffffff) < 0
    ? new Int32Array(values)
    : BigInt64Array.from(values, (value) => BigInt(value));
}

/** The index of the first value that is no whole number JSON can carry exactly, or -1. */
export const indexOfNonInt64 = (values: readonly unknown[]) =>
  indexOfNonInteger(values, Number.MIN_SAFE_INTEGER, Number.MAX_SAFE_INTEGER);
