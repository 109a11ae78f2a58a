import fc from "fast-check";
import { expect, test } from "vitest";
import { type Json, JsonNumber, readJson } from "./json.ts";
import { longestFrame, readFrame, valuesMatch } from "./values.ts";

const matches = (frame: unknown, expected: string) =>
  valuesMatch(readFrame(JSON.stringify(frame))!, readJson(expected)!);

test.each<[frame: unknown, expected: string, matches: boolean]>([
  [["i", "12345678901234567890"], "12345678901234567890", true],
  [["i", "12345678901234567891"], "12345678901234567890", false],
  [["f", "1.0"], "1", true],
  [["b", true], "1", true],
  [["i", "1"], "true", true],
  [["i", "0"], "null", false],
  [["f", "0.3333333333333333"], "0.3333333333", true],
  [["f", "0.34"], "0.3333333333", false],
  [["i", "1000000001"], "1000000000", false],
  [["i", "123457"], "123456.0", false],
  [["f", "123457.0"], "123456.0", false],
  [["f", "123456.00000000001"], "123456.0", true],
  [["i", "100001"], "1e5", false],
  [["f", "2.500001"], "2.50", true],
  [["f", "nan"], "NaN", true],
  [["f", "inf"], "Infinity", true],
  [["f", "-inf"], "Infinity", false],
  [["s", "5"], "5", false],
  [["i", "5"], '"5"', false],
  [
    [
      "l",
      [
        ["i", "1"],
        ["l", [["s", "a"]]],
      ],
    ],
    '[1, ["a"]]',
    true,
  ],
  [["l", [["i", "1"]]], "[1, 2]", false],
  [
    [
      "d",
      [
        [
          ["i", "1"],
          ["i", "2"],
        ],
      ],
    ],
    '{"1": 2}',
    true,
  ],
  [
    [
      "d",
      [
        [
          ["s", "b"],
          ["i", "1"],
        ],
        [
          ["s", "a"],
          ["i", "2"],
        ],
      ],
    ],
    '{"a": 2, "b": 1}',
    true,
  ],
  [
    [
      "d",
      [
        [
          ["i", "1"],
          ["i", "2"],
        ],
        [
          ["s", "1"],
          ["i", "2"],
        ],
      ],
    ],
    '{"1": 2, "x": 2}',
    false,
  ],
  [["n"], "null", true],
])("%j against %s", (frame, expected, answer) => {
  expect(matches(frame, expected)).toBe(answer);
});

test.each([
  "",
  "5",
  '["x", 1]',
  '["i", 5]',
  '["i", "5x"]',
  '["l", [1]]',
  '["d", [["i", "1"]]]',
  '["n", 1]',
  "{}",
  "[[]]",
])("%j is no frame", (frame) => {
  expect(readFrame(frame)).toBeUndefined();
});

test("a deep frame is refused", () => {
  expect(readFrame(`${'["l",['.repeat(5_000)}${"]]".repeat(5_000)}`)).toBeUndefined();
});

/** What the sandbox would send for a value. */
function tagged(value: Json): unknown {
  if (value === null) return ["n"];
  if (typeof value === "boolean") return ["b", value];
  if (typeof value === "string") return ["s", value];
  if (value instanceof JsonNumber) return [/[.eE]/.test(value.text) ? "f" : "i", value.text];
  if (Array.isArray(value)) return ["l", value.map(tagged)];
  return ["d", [...value].map(([key, field]) => [["s", key], tagged(field)])];
}

test("every value matches itself", () => {
  fc.assert(
    fc.property(fc.jsonValue({ maxDepth: 4 }), (value) => {
      const json = readJson(JSON.stringify(value))!;
      expect(valuesMatch(readFrame(JSON.stringify(tagged(json)))!, json)).toBe(true);
    }),
  );
});

test("the longest frame of a value is never shorter than its frame", () => {
  const numbers = ["1", "-0.5", "1e300", "12345678901234567891", "NaN"].map((text) => new JsonNumber(text));
  const value = fc.letrec<{ value: Json }>((tie) => ({
    value: fc.oneof(
      { maxDepth: 4 },
      fc.constant(null),
      fc.boolean(),
      fc.string({ unit: "binary" }),
      fc.constantFrom(...numbers),
      fc.array(tie("value") as fc.Arbitrary<Json>),
      fc.array(fc.tuple(fc.string(), tie("value") as fc.Arbitrary<Json>)).map((pairs) => new Map(pairs)),
    ) as fc.Arbitrary<Json>,
  })).value;
  const ascii = (text: string) =>
    JSON.stringify(text).replaceAll(/[\u007f-\uffff]/g, (c) => `\\u${c.charCodeAt(0).toString(16).padStart(4, "0")}`);
  const encode = (json: Json): string => {
    if (json === null) return '["n"]';
    if (typeof json === "boolean") return `["b",${json}]`;
    if (typeof json === "string") return `["s",${ascii(json)}]`;
    // An integer may be spelled with all its digits where the expected text has an exponent.
    if (json instanceof JsonNumber) return `["i","${json.text === "1e300" ? `1${"0".repeat(300)}` : json.text}"]`;
    if (Array.isArray(json)) return `["l",[${json.map(encode).join(",")}]]`;
    return `["d",[${[...json].map(([key, field]) => `[${encode(key)},${encode(field)}]`).join(",")}]]`;
  };
  fc.assert(
    fc.property(value, (json) => {
      expect(encode(json).length).toBeLessThanOrEqual(longestFrame(json));
    }),
  );
});
