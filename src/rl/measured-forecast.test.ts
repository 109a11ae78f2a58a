import { expect, test } from "vitest";
import type { JournalEntry } from "../runs/events.ts";
import { forecastRun, measuredIn } from "./measured-forecast.ts";

const entries = (events: object[]) => events.map((event) => ({ event })) as unknown as JournalEntry[];
const step = (number: number, at: number, seconds: number) => ({
  type: "step-done",
  step: number,
  at,
  metrics: { "time/total": seconds },
});
const evaluated = (start: number, end: number) => ({ type: "evaluated", step: 0, start, end });
const problem = { type: "group-sampled", phase: "eval", batch: 0, promptTokens: 10, samples: [{ tokens: 5 }] };

test("an evaluation takes time of its own only where no step ran beside it", () => {
  // From 0 to 4 s beside the first step, which took 5 s for it; from 9 to 12 s alone, after the last one.
  const measured = measuredIn(
    entries([
      problem,
      step(0, 5000, 5),
      evaluated(0, 4000),
      step(1, 7000, 2),
      problem,
      step(2, 9000, 2),
      evaluated(9000, 12_000),
    ]),
  )!;
  expect(measured.step.seconds).toBe(3);
  expect(measured.problem!.seconds).toBe(1.5);
  // The same run again takes as long as it took.
  expect(forecastRun(measured, 3, 2, 1, undefined).seconds).toBe(12);
});

test("a run without a step says nothing", () => {
  expect(measuredIn(entries([problem, evaluated(0, 4000)]))).toBe(undefined);
});

test("what was sampled of a step before a rewind is no part of what the step takes", () => {
  const sampled = { type: "group-sampled", phase: "train", batch: 0, promptTokens: 10, samples: [{ tokens: 5 }] };
  const rewound = { type: "rewound", to: 0, reason: "killed" };
  const once = measuredIn(entries([sampled, step(0, 5000, 5)]))!.step;
  expect(once.sample).toBe(5);
  expect(measuredIn(entries([sampled, rewound, sampled, step(0, 5000, 5)]))!.step).toEqual(once);
});
