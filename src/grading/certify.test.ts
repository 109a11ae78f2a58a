// What know-nothing programs would do, without running them; test/grading runs them in the jail.
import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";
import { wouldFool } from "./certify.ts";
import { normalizeTests } from "./normalize.ts";

const stdin = (...pairs: [input: string, output: string][]) => ({
  id: "p",
  tests: pairs.map(([input, expected]) => ({ kind: "stdin" as const, input, expected })),
});
const functional = (...pairs: [args: unknown[], expected: unknown][]) => ({
  id: "p",
  tests: normalizeTests(
    JSON.stringify(
      pairs.map(([args, expected]) => ({
        input: args.map((value) => JSON.stringify(value)).join("\n"),
        output: JSON.stringify(expected),
        testtype: "functional",
      })),
    ),
    { source: "own", metadata: { func_name: "f" } },
  ).tests,
});

test("echo, empty and constant programs are known by the tests they would pass", () => {
  expect(wouldFool(stdin(["1 2\n", "1 2"], ["3\n", "3"]))).toEqual(["echo"]);
  expect(wouldFool(stdin(["1\n", ""], ["2\n", ""]))).toEqual(["empty", "constant"]);
  expect(wouldFool(stdin(["1\n", "YES"], ["2\n", "YES"]))).toEqual(["constant"]);
  expect(wouldFool(stdin(["1\n", "2"], ["2\n", "3"]))).toEqual([]);
  expect(wouldFool(functional([[[1, 2]], [1, 2]], [[[3]], [3]]))).toEqual(["echo"]);
  expect(wouldFool(functional([[1], 0], [[2], 0]))).toEqual(["constant"]);
  expect(wouldFool(functional([[1], 2], [[2], 3]))).toEqual([]);
  expect(wouldFool({ id: "none", tests: [] })).toEqual([]);
});

test("no problem of the bundled set is fooled", () => {
  const file = fileURLToPath(new URL("../../data/starter/train.jsonl", import.meta.url));
  const fooled = readFileSync(file, "utf8")
    .trim()
    .split("\n")
    .map((line) => JSON.parse(line) as { id: string; tests: string; source: string; metadata: Record<string, unknown> })
    .filter(({ id, tests, source, metadata }) => {
      const normalized = normalizeTests(tests, { source, metadata }).tests;
      return wouldFool({ id, tests: normalized }).length > 0;
    });
  expect(fooled).toEqual([]);
});
