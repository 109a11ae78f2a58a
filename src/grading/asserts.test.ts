import { expect, test } from "vitest";
import { readAsserts } from "./asserts.ts";
import { writeJson } from "./json.ts";
import { normalizeTests } from "./normalize.ts";

const shown = (text: string) =>
  readAsserts(text)?.map(
    ({ name, args, expected }) => `${name}(${args.map(writeJson).join(", ")}) = ${writeJson(expected)}`,
  );

test.each([
  [
    "MultiPL-E in JavaScript",
    "const assert = require('node:assert');\n\nfunction test() {\n  let candidate = has_close;\n  assert.deepEqual(candidate([1.0, 2.0], 0.3),true);\n  assert.deepEqual(candidate(\"a)\", 'b'),[\"x\", null]);\n}\n\ntest();",
    ["has_close([1.0, 2.0], 0.3) = true", 'has_close("a)", "b") = ["x", null]'],
  ],
  [
    "HumanEval in Python",
    "def check(candidate):\n    assert candidate([1, 2], {'k': (1, True)}) == -3\n    assert candidate('it\\'s') == None, \"message\"\n\ncheck(add)",
    ['add([1, 2], {"k": [1, true]}) = -3', 'add("it\'s") = null'],
  ],
  [
    "HumanEval-X in JavaScript",
    "const testAdd = () => {\n  console.assert(add(2, 3) === 5)\n  console.assert(JSON.stringify(add([1], 2)) === JSON.stringify([1, 2]))\n}\ntestAdd()",
    ["add(2, 3) = 5", "add([1], 2) = [1, 2]"],
  ],
])("%s: asserts become calls", (_, text, calls) => {
  expect(shown(text)).toEqual(calls);
});

test.each([
  "assert f(x) == 1",
  "assert abs(f(1) - 0.5) < 1e-6",
  "assert f(1) == 1\nassert isinstance(f(2), int)",
  "assert f(1) == g(1)",
  "console.assert(f(1) === 1 || f(1) === 2)",
  "assert.deepEqual(f(1, 2)",
  "f(1)",
  "",
])("%j is not read in part", (text) => {
  expect(readAsserts(text)).toBeUndefined();
});

test("tests that are asserts are those calls; a wrapped list stays a list", () => {
  const { tests, reason } = normalizeTests("  let candidate = f;\n  assert.deepEqual(candidate(1),[2]);\n");
  expect(reason).toBeNull();
  expect(tests).toEqual([
    { kind: "functional", functionName: "f", args: [expect.anything()], expected: [expect.anything()] },
  ]);
  expect(normalizeTests(["assert f(1) == 2", "assert f(2) == 3"]).tests).toHaveLength(2);
  expect(normalizeTests("assert f(x) == 2").reason).toBe("bad_tests");
  expect(normalizeTests("def check(candidate):\n  assert candidate(1) == 2").reason).toBe("no_function_name");
});
