// Where a rollback goes back to.
import { expect, test } from "vitest";
import { healthyStep, journal, opened, stepDone } from "../../test/support/synthetic-run.ts";
import { Evidence } from "../diagnosis/evidence.ts";
import { healthBefore } from "./findings.ts";

/** A run whose answers are right at these rates. */
function evidenceOf(...rates: number[]): Evidence {
  const evidence = new Evidence();
  const steps = rates.map((rate, step) => stepDone(step, { ...healthyStep(step), mean_correct: rate }));
  for (const event of journal([...opened, ...steps])) evidence.take(event);
  return evidence;
}

test("a checkpoint is healthy before the evidence, by the lag more, and while answers were as right as before", () => {
  const steady = evidenceOf(0.4, 0.5, 0.5, 0.6, 0.6, 0.6, 0, 0);
  expect([2, 5, 6].map(healthBefore(steady, 6, 0))).toEqual([false, true, false]);
  expect([4, 5].map(healthBefore(steady, 6, 1))).toEqual([true, false]);
  const sinking = evidenceOf(0.5, 0.8, 0.8, 0.8, 0.6, 0.4, 0.3, 0.2, 0, 0);
  expect([3, 4, 6, 7].map(healthBefore(sinking, 8, 0))).toEqual([true, true, false, false]);
  expect(healthBefore(evidenceOf(0.4, 0, 0), 1, 0)(0)).toBe(true);
});
