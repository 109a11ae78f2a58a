// What on_error makes of findings, and where a rollback goes back to.
import { expect, test } from "vitest";
import { collapsedRuns } from "../../test/support/collapsed-runs.ts";
import { foldersInMemory } from "../../test/support/folders.ts";
import { healthyStep, journal, opened, stepDone } from "../../test/support/synthetic-run.ts";
import { Evidence } from "../diagnosis/evidence.ts";
import { Display } from "../runs/display.ts";
import type { NewEvent } from "../runs/events.ts";
import { Run } from "../runs/run.ts";
import { presetConfig } from "./config.ts";
import { Findings, healthBefore, RollBack } from "./findings.ts";
import type { TrainSession } from "./session.ts";

const folder = foldersInMemory();

/** Takes a run's events through its findings: what was done, what was written down, what was said. */
async function follow(events: readonly NewEvent[], policy: "warn" | "pause" | "stop" | "rollback") {
  const done: string[] = [];
  const said: string[] = [];
  const session = {
    controls: { hold: (by: string) => done.push(`hold: ${by}`) },
    stop: (error: Error) => done.push(`stop: ${error.message}`),
    saved: async () => {},
  } as unknown as TrainSession;
  const run = await Run.open(folder(), new Display({ write: (text) => said.push(text) }), () => {});
  const findings = new Findings(run, { ...presetConfig("nano"), on_error: policy });
  run.journal.follow([findings]);
  for (const event of events) {
    await run.journal.append(event);
    if (event.type !== "step-done") continue;
    try {
      await findings.act(event.step, session);
    } catch (error) {
      if (!(error instanceof RollBack)) throw error;
      done.push("rollback");
      break;
    }
  }
  await findings.say();
  const written = [...run.journal.entries()].flatMap(({ event }) => (event.type === "finding" ? [event] : []));
  await run.close("finished");
  return { done, written, said: said.join("") };
}

test.each(collapsedRuns)("%s: on_error acts on causes alone, and what follows gets a line each", async (_, events) => {
  const { done, written, said } = await follow(events, "pause");
  const acted = written.flatMap(({ finding, action }) => (action === "none" ? [] : [finding.id]));
  expect(done).toEqual(acted.map((id) => `hold: on_error, ${id}`));
  // With a lag the ratios run away some steps before the answers do.
  expect(acted.filter((id) => id !== "lag-too-large" && id !== "format-dropping")).toEqual(
    acted.includes("format-dropping") ? [] : ["collapse"],
  );
  expect(acted.length).toBeLessThanOrEqual(2);
  // What shows before the cause does is told at length; from then on, one line each.
  expect(said.match(/^(error|warning): /gm)!.length).toBeLessThanOrEqual(4);
  expect(said).toMatch(/^reward-flat-zero: not one of .* \(because of collapse\)$/m);
  expect(said).not.toMatch(/max_tokens=224|completions_per_prompt=/);
});

test("stop names the cause, rollback goes back for it, and warn says it alone", async () => {
  const [[, events]] = collapsedRuns as [(typeof collapsedRuns)[number]];
  const [stop, rollback, warn] = await Promise.all(
    (["stop", "rollback", "warn"] as const).map((policy) => follow(events, policy)),
  );
  expect(stop!.done[0]).toMatch(/^stop: Training was stopped after step 3: right answers came for .* \(collapse\)/);
  expect(rollback!.done).toEqual(["rollback"]);
  expect(warn!.done).toEqual([]);
});

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
