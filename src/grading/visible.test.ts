// Which tests are a statement's examples: they alone may be shown to whoever answers.
import { expect, test } from "vitest";
import { normalizeTests } from "./normalize.ts";
import { visibleTests } from "./visible.ts";

const stdin = (input: string, output: string) => ({ input, output, testtype: "stdin" });
const call = (input: string, output: string) => ({ input, output, testtype: "functional" });
const visible = (statement: string, tests: object[]) => {
  const { tests: all } = normalizeTests(tests, { metadata: { func_name: "f" } });
  return visibleTests(statement, all).map((test) => all.indexOf(test));
};

test.each([
  [
    "-----Input-----\nThe line has n.\n\n-----Output-----\nPrint n.\n\n-----Examples-----\nInput\n3\n1 2 3\n\nOutput\n6\n\nInput\n1\n7\n\nOutput\n7\n",
    [0, 1],
  ],
  ["Add them.\n\nSample Input 1:\n```\n3\n1 2 3\n```\nSample Output 1:\n```\n6\n```\nExplanation: 1+2+3", [0]],
  ["Add them.\n\n### Input\n1\n7\n\n### Output\n7\n\nNote\n\nInput and output are short.", [1]],
  ["Add the numbers 3 1 2 3 and you get 6; for 1 7 it is 7.", []],
  ["Input\n3\n1 2 3\nOutput\n60", []],
  ["Input\n3\n1 2 3 4\nOutput\n6", []],
  ["", []],
])("programs: %j", (statement, expected) => {
  expect(visible(statement, [stdin("3\n1 2 3\n", "6\n"), stdin("1\n7\n", "7\n"), stdin("2\n5 5\n", "10\n")])).toEqual(
    expected,
  );
});

test.each([
  ["**Example 1:**\n\n**Input:** nums = [2, 7], k = 9\n**Output:** [0, 1]\n**Explanation:** they add up.", [0]],
  ["Input: [2,7]\n9\nOutput: [0,1]", [0]],
  ["Example 2:\nInput: nums = [-3], k = -3\nOutput: []\n\nConstraints:\nInput is short.", [1]],
  ["Input: nums = [2,7], k = 9\nOutput: [0,10]", []],
  ["Input: -1\nOutput: -1", [2]],
  ["Input: 1\nOutput: -1", []],
])("functions: %j", (statement, expected) => {
  expect(visible(statement, [call("[2, 7]\n9", "[0, 1]"), call("[-3]\n-3", "[]"), call("-1", "-1")])).toEqual(expected);
});

test("a test without input and output is no example of anything", () => {
  expect(visible("Input\n\nOutput\n\n", [stdin("", "")])).toEqual([]);
});
