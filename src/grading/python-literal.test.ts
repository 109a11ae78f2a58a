import { expect, test } from "vitest";
import { writeJson } from "./json.ts";
import { readPythonLiteral } from "./python-literal.ts";

test.each([
  ["['a', \"b'c\"]", '["a", "b\'c"]'],
  ["(1, 2)", "[1, 2]"],
  ["(1)", "1"],
  ["(1,)", "[1]"],
  ["()", "[]"],
  ["[True, False, None]", "[true, false, null]"],
  ["{1: 'x', 'k': [2.5]}", '{"1": "x", "k": [2.5]}'],
  ["'\\x41\\u00e9\\n\\\\\\q'", JSON.stringify("Aé\n\\\\q")],
  ["-12345678901234567890", "-12345678901234567890"],
  ["1_000", "1000"],
  ["[.5, 1., 1e3, -0.5e-2]", "[0.5, 1.0, 1.0e3, -0.5e-2]"],
  ["[1, 2,]", "[1, 2]"],
])("%s", (text, json) => {
  const value = readPythonLiteral(text);
  expect(value === undefined ? undefined : writeJson(value)).toBe(json);
});

test.each(["", "x", "f(1)", "1 + 1", "[1 2]", "{1, 2}", "b'a'", "'''a'''", "[1", "'a", "0123", "Truex", "{1: 2 3: 4}"])(
  "%j is refused",
  (text) => {
    expect(readPythonLiteral(text)).toBeUndefined();
  },
);
