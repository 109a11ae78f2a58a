import fc from "fast-check";
import { expect, test } from "vitest";
import { decodeOutput, outputsMatch } from "./compare.ts";

test.each<[actual: string, expected: string, tolerant: boolean, lcb: boolean]>([
  ["5\n", "5", true, true],
  ["1  2\t3", "1 2 3", true, true],
  ["1\n\n2", "1\n2", true, false],
  ["1 2 3", "1\n2\n3", false, false],
  ["YES", "Yes", false, false],
  ["0.33333333", "0.3333333333", true, false],
  ["1.0", "1", true, true],
  ["1e3", "1000", true, true],
  ["-0", "0", true, true],
  ["1000000001.0", "1000000000", false, false],
  ["-100000001", "-100000000", false, false],
  ["123457", "123456.0", false, false],
  ["123457.0", "123456.00", false, false],
  ["123456", "123456.0", true, true],
  ["123456.5", "123456.0", false, false],
  ["123456.00000000001", "123456.0", true, false],
  ["2.9999999999999996", "3.0", true, false],
  ["100001", "1e5", false, false],
  ["1e5", "100000.", true, true],
  ["100000000000000001", "1e17", false, false],
  ["100000000000000001.5", "1e17", false, false],
  ["2.50001", "2.50", true, false],
  ["3", "2.50", false, false],
  ["1e-9", "-0.0", true, false],
  ["1", "-0.0", false, false],
  ["007", "7", false, true],
  ["1_000", "1000", false, false],
  ["５", "5", false, false],
  ["nan", "nan", true, true],
  ["nan", "1.0", false, false],
  ["inf", "1e300", false, false],
  ["1e999999999", "1e999999998", false, false],
  ["\ufeff5", "5", false, false],
  ["5\0", "5", false, false],
  ["", "\n", true, true],
  ["x", "", false, false],
  ["a\r\nb\r\n", "a\nb", true, true],
])("%j against %j", (actual, expected, tolerant, lcb) => {
  expect(outputsMatch(actual, expected, "tolerant")).toBe(tolerant);
  expect(outputsMatch(actual, expected, "lcb")).toBe(lcb);
});

test("spaces inside a line do not matter to lcb when every token is a number", () => {
  expect(outputsMatch("1  2.50", "1 2.5", "lcb")).toBe(true);
  expect(outputsMatch("a  b", "a b", "lcb")).toBe(false);
});

test("tokens: lines and case do not matter, tolerances are the declared ones", () => {
  expect(outputsMatch("a B\nc", "A b C", "tokens")).toBe(true);
  expect(outputsMatch("a", "A", { kind: "tokens", caseSensitive: true })).toBe(false);
  expect(outputsMatch("1.01", "1.0", "tokens")).toBe(false);
  expect(outputsMatch("1.01", "1.0", { kind: "tokens", absolute: 0.02 })).toBe(true);
  expect(outputsMatch("101", "100", { kind: "tokens", relative: 0.02 })).toBe(true);
  expect(outputsMatch("103", "100", { kind: "tokens", relative: 0.02 })).toBe(false);
  expect(outputsMatch("a  b", "a b", { kind: "tokens", spaceSensitive: true })).toBe(false);
});

test("bytes that are not UTF-8 never become the expected text", () => {
  expect(outputsMatch(decodeOutput(Uint8Array.of(0xff, 0x35)), "5")).toBe(false);
});

const token = fc.oneof(
  fc.stringMatching(/^[a-zA-Z0-9.+-]{1,8}$/),
  fc.integer().map(String),
  fc.double({ noNaN: true, noDefaultInfinity: true }).map(String),
);
const lines = fc.array(fc.array(token, { minLength: 1, maxLength: 5 }), { maxLength: 6 });
const text = lines.map((all) => all.map((line) => line.join(" ")).join("\n"));

test("every comparator accepts the expected text itself, and ignores whitespace at both ends", () => {
  const space = fc.string({ unit: fc.constantFrom(" ", "\n", "\t", "\r"), maxLength: 5 });
  fc.assert(
    fc.property(
      text,
      space,
      space,
      fc.constantFrom("tolerant", "lcb", "tokens" as const),
      (expected, a, b, comparator) => {
        expect(outputsMatch(expected, expected, comparator)).toBe(true);
        expect(outputsMatch(a + expected + b, expected, comparator)).toBe(true);
        expect(outputsMatch(expected, a + expected + b, comparator)).toBe(true);
      },
    ),
  );
});

test("tolerant never forgives an integer", () => {
  const number = fc.oneof(
    fc.integer(),
    fc.bigInt(),
    fc.integer().map((value) => `${value}.0`),
  );
  fc.assert(
    fc.property(number, fc.bigInt(), (actual, expected) => {
      const matches = outputsMatch(String(actual), String(expected));
      expect(matches).toBe(BigInt(String(actual).replace(".0", "")) === expected);
    }),
  );
  // However the expected one is written: its fraction is zero.
  const written = fc.constantFrom("", ".0", ".", ".000", "e0", "0e-1", "00.0e-2");
  const digits = fc.oneof(fc.bigInt({ min: -(10n ** 7n), max: 10n ** 7n }), fc.bigInt());
  fc.assert(
    fc.property(digits, fc.bigInt({ min: 1n, max: 9n }), written, written, (expected, distance, as, other) => {
      fc.pre(expected !== 0n || !/^0/.test(as + other));
      fc.pre(expected + distance !== 0n || !/^0/.test(other));
      expect(outputsMatch(`${expected + distance}${other}`, `${expected}${as}`)).toBe(false);
      expect(outputsMatch(`${expected}`, `${expected}${as}`)).toBe(true);
    }),
  );
});

test("a difference counts wherever it stands, however long the rest", () => {
  const rows = Array.from({ length: 2_000 }, (_, index) => `${index} ${index / 8}`);
  const expected = rows.join("\n");
  for (const comparator of ["tolerant", "lcb", "tokens"] as const) {
    expect(outputsMatch(rows.map((row) => ` ${row}  `).join("\n"), expected, comparator)).toBe(true);
    for (const at of [0, 1_000, 1_999])
      expect(outputsMatch(rows.with(at, "x y").join("\n"), expected, comparator)).toBe(false);
    for (const other of [`${expected}\n1`, `1\n${expected}`, rows.slice(1).join("\n")])
      expect(outputsMatch(other, expected, comparator)).toBe(false);
  }
});
