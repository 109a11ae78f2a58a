import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { JsonTextError, jsonProblem, readJsonText } from "./json-text.ts";

test("reads what JSON.parse reads, and refuses what it refuses", () => {
  fc.assert(
    fc.property(fc.json(), fc.nat(), fc.string({ maxLength: 2 }), (text, place, other) => {
      expect(readJsonText(text).value).toEqual(JSON.parse(text));
      const at = place % (text.length + 1);
      const damaged = text.slice(0, at) + other + text.slice(at + 1);
      let valid = true;
      try {
        JSON.parse(damaged);
      } catch {
        valid = false;
      }
      expect(jsonProblem(damaged) === undefined).toBe(valid);
      expect(() => readJsonText(damaged, { comments: true })).not.toThrow(SyntaxError);
    }),
    { numRuns: 500 },
  );
});

describe("places", () => {
  test.each([
    ['{"a": 1,\n "b": }', 2, 7, '"}" is no JSON value'],
    ['{"a": 1,\n "b": \'x\'}', 2, 7, "texts stand in double quotes"],
    ['{"a": "x\ny"}', 1, 9, "a line break stands inside a text"],
    ['{"a": "\\d"}', 1, 8, "is no escape"],
    ['{"a": 1 "b": 2}', 1, 9, '"," or "}" is expected'],
    ['{"a": 1,}', 1, 8, "nothing after this comma"],
    ['{"a": [1, 2', 1, 12, "the text ends"],
    ["{a: 1}", 1, 2, "a key in double quotes"],
    ['{"a" 1}', 1, 6, '":" is expected after "a"'],
    ['{"a": "b', 1, 7, "no closing quote"],
    ["{} {}", 1, 4, "ends before this"],
    ["", 1, 1, "the text ends"],
    [`${"[".repeat(600)}`, 1, 501, "nested too deeply"],
  ])("%j", (text, line, column, message) => {
    const problem = jsonProblem(text)!;
    expect(problem).toBeInstanceOf(JsonTextError);
    expect({ line: problem.line, column: problem.column }).toEqual({ line, column });
    expect(problem.message).toContain(message);
  });
});

test("comments and a last comma, where they are allowed", () => {
  const text = '// settings\n{\n  "a": 1, /* one\n */ "b": "http://x", // two\n  "c": [1, 2,],\n}\n';
  const { value, keyLines } = readJsonText(text, { comments: true });
  expect(value).toEqual({ a: 1, b: "http://x", c: [1, 2] });
  expect(Object.fromEntries(keyLines)).toEqual({ a: 3, b: 4, c: 5 });
  expect(jsonProblem(text)).toMatchObject({ line: 1, column: 1 });
});

test("__proto__ is a key like any other", () => {
  const { value, keyLines } = readJsonText('{"__proto__": {"x": 1}}');
  expect(Object.keys(value as object)).toEqual(["__proto__"]);
  expect(Object.getPrototypeOf(value)).toBe(Object.prototype);
  expect([...keyLines.keys()]).toEqual(["__proto__"]);
});
