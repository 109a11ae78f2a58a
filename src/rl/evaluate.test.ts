import fc from "fast-check";
import { expect, test } from "vitest";
import type { ProblemOutcome } from "../runs/events.ts";
import { compareEvaluations, evaluate, evaluationMetrics, stratifiedSubset, summarizeOutcomes } from "./evaluate.ts";
import type { Policy } from "./policies.ts";
import type { RollOut } from "./rollout.ts";
import type { Task } from "./tasks.ts";

const outcome = (
  id: string,
  passed: number,
  samples = 1,
  source = "a",
  extra: Partial<ProblemOutcome> = {},
): ProblemOutcome => ({
  id,
  source,
  samples,
  passed,
  ungraded: 0,
  well_formed: samples,
  truncated: 0,
  statuses: { pass: passed, wrong_answer: samples - passed },
  ...extra,
});

test("rates are per problem and per source, and an ungraded problem is counted apart", () => {
  const evaluation = summarizeOutcomes([
    outcome("1", 1),
    outcome("2", 0),
    outcome("3", 1, 1, "b"),
    outcome("4", 0, 0, "b", { ungraded: 1, well_formed: 1, statuses: { sandbox_error: 1 } }),
  ]);
  expect(evaluation.pass1).toMatchObject({ rate: 2 / 3, problems: 3 });
  expect(evaluation.bySource["b"]).toMatchObject({ rate: 1, problems: 1 });
  expect(evaluation.ungradedProblems).toBe(1);
  expect(evaluation.formatRate).toBe(1);
  expect(evaluation.statuses).toEqual({ pass: 2, wrong_answer: 1, sandbox_error: 1 });
});

test("pass@k is reported for every k that all problems allow", () => {
  const evaluation = summarizeOutcomes([outcome("1", 4, 16), outcome("2", 0, 8)]);
  expect(Object.keys(evaluation.passAtK)).toEqual(["1", "2", "4", "8"]);
  expect(evaluation.passAtK[8]).toBeCloseTo((1 - 495 / 12870) / 2, 12);
});

test("nothing graded gives no Pass@1, rather than 0", () => {
  const ungraded = outcome("1", 0, 0, "a", { ungraded: 1, statuses: { sandbox_error: 1 } });
  for (const outcomes of [[], [ungraded]]) {
    const evaluation = summarizeOutcomes(outcomes);
    expect(evaluation).toMatchObject({ pass1: undefined, passAtK: {}, bySource: {} });
    const metrics = evaluationMetrics(evaluation);
    expect(Object.keys(metrics).filter((name) => name.includes("pass@"))).toEqual([]);
    expect(metrics["eval/n"]).toBe(0);
  }
});

test("with several samples a problem, a comparison gives Pass@1 and not the share of problems most samples solve", () => {
  const before = [outcome("1", 1, 4), outcome("2", 1, 4)];
  const after = [outcome("1", 2, 4), outcome("2", 1, 4)];
  expect(compareEvaluations(before, after)).toMatchObject({ before: 0.25, after: 0.375, gained: 1, lost: 0 });
});

test("two evaluations are compared on the problems they share", () => {
  const before = [outcome("1", 0), outcome("2", 0), outcome("3", 1), outcome("4", 1), outcome("only-before", 1)];
  const after = [outcome("1", 1), outcome("2", 1), outcome("3", 0), outcome("4", 1), outcome("only-after", 1)];
  expect(compareEvaluations(before, after)).toMatchObject({
    problems: 4,
    gained: 2,
    lost: 1,
    before: 0.5,
    after: 0.75,
    pValue: 1,
  });
});

test("a subset is stable, has the size asked for and keeps each source's share", () => {
  const items = fc.array(fc.constantFrom("a", "b", "c"), { minLength: 1, maxLength: 200 });
  fc.assert(
    fc.property(items, fc.integer({ min: 1, max: 100 }), fc.nat(5), (sources, most, seed) => {
      const problems = sources.map((source, index) => ({ id: String(index), source }));
      const subset = stratifiedSubset(problems, most, seed);
      expect(subset).toEqual(stratifiedSubset(problems, most, seed));
      expect(subset).toHaveLength(Math.min(most, problems.length));
      for (const source of ["a", "b", "c"]) {
        const share = (list: { source: string }[]) => list.filter((item) => item.source === source).length;
        const exact = (Math.min(most, problems.length) * share(problems)) / problems.length;
        expect(Math.abs(share(subset) - exact)).toBeLessThan(1 + 1e-9);
      }
    }),
  );
});

test("the first failure stops the other problems, and they have stopped when it is told", async () => {
  const tasks = ["bad", "slow", "slower"].map((id) => ({ id }) as Task);
  const stopped: string[] = [];
  const rollOut: RollOut = async (_, { id }, __, signal) => {
    if (id === "bad") throw new Error("no sampler");
    await new Promise((resolve) => signal.addEventListener("abort", resolve, { once: true }));
    await new Promise((resolve) => setImmediate(resolve)); // as whoever lets go of what it holds
    stopped.push(id);
    throw signal.reason;
  };
  const evaluation = evaluate(tasks, { version: 0 } as Policy, rollOut, new AbortController().signal);
  await expect(evaluation).rejects.toThrow("no sampler");
  expect(stopped).toEqual(["slow", "slower"]);
});
