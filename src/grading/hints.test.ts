import { expect, test } from "vitest";
import { testsHint } from "./hints.ts";
import { normalizeTests } from "./normalize.ts";

const columns = ["id", "question", "tests"];

test.each([
  [
    [{ stdin: "1\n", expected_output: "2\n" }],
    '"stdin" is not read: call it "input"; "expected_output" is not read: call it "output"',
  ],
  [[{ input: "1\n", expected: "2\n" }], '"expected" is not read: call it "output"'],
  [
    { stdin: ["1\n"], expected_output: ["2\n"] },
    '"stdin" is not read: call it "inputs"; "expected_output" is not read: call it "outputs"',
  ],
  [
    ["assert add(1, [2, 'b']) == (3, True)", "assert add(one, two) == 3"],
    'write the calls and their results as data, here "tests": {"fn_name": "add", "inputs": [[1, [2, "b"]]], "outputs": [[3, true]]}',
  ],
  ["assert f(x) == 1\nassert f(2) == 1", 'such as "tests": {"fn_name": "add"'],
  ["def check(candidate):\n    assert candidate(1, 2) == 3", "asserts are not run"],
  [{ fn_name: "inc", inputs: [1, 2], outputs: [2, 3] }, 'write [[1], [2]] for "inputs", not [1, 2]'],
])("%j", (tests, hint) => {
  expect(normalizeTests(tests).reason).not.toBeNull();
  expect(testsHint(tests, columns)).toContain(hint);
  expect(testsHint(JSON.stringify(tests), columns)).toContain(hint);
});

test.each([
  [
    ["id", "question", "stdin", "expected_output"],
    'put stdin and expected_output into one column: "tests": [{"input": …, "output": …}]',
  ],
  [["text", "code", "test_list"], "asserts are not run"],
])("columns %j", (names, hint) => {
  expect(testsHint(undefined, names)).toContain(hint);
});

test("what is not recognized gets no hint", () => {
  expect(testsHint([], columns)).toBeUndefined();
  expect(testsHint("{broken", columns)).toBeUndefined();
  expect(testsHint([{ input: "1" }], columns)).toBeUndefined();
  expect(testsHint(undefined, ["id", "question"])).toBeUndefined();
});
