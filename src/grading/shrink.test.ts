import fc from "fast-check";
import { expect, test } from "vitest";
import { type Comparator, decodeOutput, outputsMatch } from "./compare.ts";
import { shrinkOutput } from "./shrink.ts";

const comparators: readonly Comparator[] = [
  "tolerant",
  "lcb",
  "tokens",
  { kind: "tokens", spaceSensitive: true },
  { kind: "tokens", caseSensitive: true, absolute: 0.5 },
];
const shrunk = (bytes: Uint8Array, comparator: Comparator) => shrinkOutput(Uint8Array.from(bytes), comparator);

/** Few words and every kind of blank, and bytes that are no text at all. */
const blanks = [
  9, 10, 11, 12, 13, 28, 29, 30, 31, 32, 0x85, 0xa0, 0x1680, 0x2000, 0x200a, 0x2028, 0x2029, 0x202f, 0x205f,
];
const piece = fc.oneof(
  { weight: 4, arbitrary: fc.constantFrom("1", "1.50", "a", "B", "\n", " ", "\u3000", "\ufeff", "\u200b", "é") },
  { weight: 2, arbitrary: fc.constantFrom(...blanks.map((code) => String.fromCodePoint(code))) },
);
const text = fc.array(piece, { maxLength: 12 }).map((pieces) => pieces.join(""));
const bytes = fc.oneof(
  text.map((value) => Buffer.from(value)),
  fc
    .array(fc.constantFrom(0x20, 0x0a, 0x31, 0xc2, 0x85, 0xe2, 0x80, 0xa8, 0xe3, 0xf0, 0xff), { maxLength: 12 })
    .map(Buffer.from),
);

test("what is left of an output matches exactly what the output matches", () => {
  fc.assert(
    fc.property(bytes, text, fc.constantFrom(...comparators), (output, other, comparator) => {
      for (const expected of [other, decodeOutput(output)])
        expect(outputsMatch(decodeOutput(shrunk(output, comparator)), expected, comparator)).toBe(
          outputsMatch(decodeOutput(output), expected, comparator),
        );
    }),
    { numRuns: 3000 },
  );
});

test("padding goes, whatever it is made of", () => {
  const padding = Buffer.from(` \n\t\u3000\u00a0\u2003`.repeat(1000));
  const output = Buffer.concat([padding, Buffer.from("1"), padding, Buffer.from("2"), padding]);
  expect(Buffer.from(shrunk(output, "tolerant")).toString()).toBe("1\n2");
  expect(Buffer.from(shrunk(output, "lcb")).toString()).toBe(`1${"\n".repeat(1000)}2`);
  expect(shrunk(output, { kind: "tokens", spaceSensitive: true })).toHaveLength(output.length);
});
