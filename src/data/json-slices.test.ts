import fc from "fast-check";
import { expect, test } from "vitest";
import { topLevelSlices } from "./json-slices.ts";

fc.configureGlobal({ seed: 1 });

const slicesOf = (text: string) =>
  Object.fromEntries([...topLevelSlices(Buffer.from(text))].map(([key, slice]) => [key, slice.toString()]));

test("each slice is the text of its value, whatever the spacing", () => {
  const objects = fc.dictionary(fc.string({ unit: "binary" }), fc.jsonValue());
  fc.assert(
    fc.property(objects, fc.constantFrom(undefined, 1, "\t"), (object, indent) => {
      const text = JSON.stringify(object, null, indent);
      const plain = JSON.parse(text) as Record<string, unknown>;
      const slices = topLevelSlices(Buffer.from(` ${text}\r\n`));
      expect([...slices.keys()]).toEqual(Object.keys(plain));
      for (const [key, slice] of slices) expect(JSON.parse(slice.toString())).toEqual(plain[key]);
    }),
  );
});

test("values keep their spelling; quotes and brackets in strings do not end them", () => {
  expect(slicesOf('{"a": 1.50e+3, "b" : [{"x": "]}\\\\\\""}, 2], "c":"\\"}", "d":null}')).toEqual({
    a: "1.50e+3",
    b: '[{"x": "]}\\\\\\""}, 2]',
    c: '"\\"}"',
    d: "null",
  });
});

test("the last of two equal keys counts, as in JSON.parse", () => {
  expect(slicesOf('{"a": 1, "a": 2}')).toEqual({ a: "2" });
});

test.each([
  "",
  "[1]",
  "{",
  '{"a"',
  '{"a":',
  '{"a": }',
  '{"a": "x',
  '{"a": [1',
  '{"a": 1,}',
  '{"a": 1} x',
  "{a: 1}",
  '{"a" 1}',
])("%j is refused", (text) => {
  expect(() => topLevelSlices(Buffer.from(text))).toThrow(SyntaxError);
});

test("never returns for a prefix of an object, and never throws anything else", () => {
  const text = JSON.stringify({
    id: "a",
    tests: '[{"input": "\\"", "output": "]"}]',
    list: [[{ deep: "\\" }]],
    n: -1.5,
  });
  for (let length = 0; length < text.length; length++) {
    expect(() => topLevelSlices(Buffer.from(text.slice(0, length)))).toThrow(SyntaxError);
  }
});
