import { expect, test } from "vitest";
import type { ProblemOutcome } from "../runs/events.ts";
import type { MetricsRecord } from "../runs/records.ts";
import { summarizeOutcomes } from "./evaluate.ts";
import { Meter } from "./meter.ts";
import { renderReport, smokeTest } from "./report.ts";

const history: MetricsRecord[] = Array.from({ length: 50 }, (_, step) => ({
  step,
  mean_reward: step / 60,
  mean_correct: step / 55,
  format_rate: Math.min(1, 0.7 + step / 10),
  groups_total: 8,
  groups_skipped: 2,
  groups_all_fail: 1,
  groups_all_pass: 2,
  // One of them is all wrong, some of its answers without a program: it teaches.
  groups_mixed: 5,
}));

const evaluation = (passed: number) =>
  summarizeOutcomes(
    Array.from({ length: 100 }, (_, index): ProblemOutcome => {
      const right = index < passed ? 1 : 0;
      const base = { id: String(index), source: index % 2 ? "odd" : "even", samples: 1, passed: right, ungraded: 0 };
      return { ...base, well_formed: 1, truncated: 0, statuses: {} };
    }),
  );

test("a healthy run shows every pattern", () => {
  const rows = smokeTest({ history, before: evaluation(30), after: evaluation(60) });
  expect(rows.map(({ holds }) => holds)).toEqual([true, true, true, true]);
});

test("a run that does not learn shows none, and a short one is not judged", () => {
  const flat = history.map((record) => ({ ...record, mean_reward: 0, mean_correct: 0.5, format_rate: 0.5 }));
  const rows = smokeTest({ history: flat, before: evaluation(30), after: evaluation(30) });
  expect(rows.map(({ holds }) => holds)).toEqual([false, false, false, false]);
  const short = smokeTest({ history: history.slice(0, 2), before: evaluation(30), after: evaluation(60) });
  expect(short.map(({ holds }) => holds)).toEqual([undefined, undefined, undefined, undefined]);
});

test("the report says what changed, where the time went and where the files are", () => {
  const text = renderReport({
    history,
    before: evaluation(30),
    after: evaluation(60),
    runPath: "/runs/x",
    seconds: 200,
    sessions: 1,
    meter: new Meter(),
    secondsOf: { sample: 100, evaluate: 120, other: 10 },
  });
  expect(text).toContain("50 steps in 3:20");
  expect(text).toMatch(/Pass@1, 100 problems\s+30\.0% \[21\.9, 39\.6\] → 60\.0% \[50\.2, 69\.1\]\s+\+30\.0 points/);
  expect(text).toContain("250 mixed (63%), 100 all right (25%), 50 all wrong (13%); 300 of 400 taught something");
  expect(text).toMatch(/sampling\s+█+░+\s+50\.0%/);
  expect(text).toMatch(/evaluation\s+█+░+\s+60\.0% .*\n.* 5\.0% .*\n.*stages run beside each other/);
  expect(text).toContain("/runs/x");
});
