// Chooses which tests of a problem are run when there are more than `max_tests`.
import { createHash } from "node:crypto";
import { writeJson } from "./json.ts";
import type { NormalizedTest } from "./normalize.ts";

/** Every way of choosing tests. */
export const testSelections = ["first", "longest_input", "random"] as const;
/** A way of choosing tests. */
export type TestSelection = (typeof testSelections)[number];

/** How tests are chosen among many. */
export interface SelectionRules {
  /** 0 runs every test. */
  maxTests: number;
  /** The way of choosing. */
  selection: TestSelection;
  /** For "random": the choice depends on the seed and the problem, not on the order of grading. */
  seed: number;
}

/** At most `maxTests` tests, in data order. */
export function selectTests(
  tests: readonly NormalizedTest[],
  rules: SelectionRules,
  problemId: string,
): readonly NormalizedTest[] {
  if (rules.maxTests <= 0 || tests.length <= rules.maxTests) return tests;
  if (rules.selection === "first") return tests.slice(0, rules.maxTests);
  const score =
    rules.selection === "longest_input"
      ? (test: NormalizedTest) => inputLength(test)
      : (_: NormalizedTest, index: number) =>
          createHash("sha256").update(`${rules.seed}\0${problemId}\0${index}`).digest().readUIntBE(0, 6);
  const scores = tests.map((test, index) => ({ index, score: score(test, index) }));
  scores.sort((a, b) => b.score - a.score || a.index - b.index);
  const chosen = scores.slice(0, rules.maxTests).map(({ index }) => index);
  return chosen.sort((a, b) => a - b).map((index) => tests[index]!);
}

function inputLength(test: NormalizedTest): number {
  if (test.kind === "stdin") return test.input.length;
  return test.args.reduce((sum, argument) => sum + writeJson(argument).length, 0);
}
