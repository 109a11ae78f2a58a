import fc from "fast-check";
import { expect, test } from "vitest";
import { JsonNumber, readJson, toJson, writeJson } from "./json.ts";

test("numbers keep every digit", () => {
  const value = readJson('{"n": [12345678901234567891, 1.10, -0, 1E+5]}');
  expect(writeJson(value!)).toBe('{"n": [12345678901234567891, 1.10, -0, 1E+5]}');
});

test("Python's NaN and infinities are numbers", () => {
  expect(readJson("[NaN, Infinity, -Infinity]")).toEqual(
    ["NaN", "Infinity", "-Infinity"].map((t) => new JsonNumber(t)),
  );
});

test("a key named __proto__ is a key", () => {
  const value = readJson('{"__proto__": 1}') as Map<string, unknown>;
  expect([...value.keys()]).toEqual(["__proto__"]);
});

test.each([
  "",
  "[1,]",
  "{'a': 1}",
  "01",
  "+1",
  ".5",
  "1.",
  "tru",
  '"\n"',
  '"\\x"',
  '"',
  "[1 2]",
  '{"a"}',
  "nan",
  "1 1",
])("%j is not JSON", (text) => {
  expect(readJson(text)).toBeUndefined();
});

test("absurd depth is refused instead of overflowing the stack", () => {
  expect(readJson("[".repeat(200_000))).toBeUndefined();
  expect(readJson(`${"[".repeat(100_000)}${"]".repeat(100_000)}`)).toBeUndefined();
  expect(readJson(`${"[".repeat(400)}${"]".repeat(400)}`)).toBeDefined();
});

test("agrees with JSON.parse on everything JSON.stringify writes", () => {
  fc.assert(
    fc.property(fc.jsonValue(), (value) => {
      const text = JSON.stringify(value);
      const read = readJson(text);
      expect(read).toBeDefined();
      expect(JSON.parse(writeJson(read!))).toEqual(JSON.parse(text));
      expect(JSON.parse(writeJson(toJson(JSON.parse(text))!))).toEqual(JSON.parse(text));
    }),
  );
});

test("accepts exactly what JSON.parse accepts, but for NaN and infinities", () => {
  const piece = fc.constantFrom(
    '"',
    "\\",
    "u0041",
    "[",
    "]",
    "{",
    "}",
    ",",
    ":",
    "1",
    "-",
    ".",
    "e",
    "true",
    "null",
    " ",
  );
  fc.assert(
    fc.property(fc.array(piece, { maxLength: 12 }), (pieces) => {
      const text = pieces.join("");
      let valid = true;
      try {
        JSON.parse(text);
      } catch {
        valid = false;
      }
      expect(readJson(text) !== undefined).toBe(valid);
    }),
    { numRuns: 2_000 },
  );
});
