import fc from "fast-check";
import { expect, test } from "vitest";
import type { RunEvent } from "./events.ts";
import { RunView } from "./view.ts";

const started = (at: number, session: number): RunEvent => ({
  type: "started",
  at,
  session,
  config: { a: 1 },
  changes: [],
});
const saved = (at: number, name: string, path: string): RunEvent => ({
  type: "saved",
  at,
  record: { name, step: 1, dataset_offset: 8, sampler_path: path },
  start: at - 500,
  end: at,
});
const evaluated = (at: number, step: number): RunEvent => ({
  type: "evaluated",
  at,
  step,
  final: false,
  outcomes: [],
  metrics: {},
  start: at,
  end: at,
});

function viewOf(...events: RunEvent[]): RunView {
  const view = new RunView();
  for (const event of events) view.take(event);
  return view;
}

test("the run's seconds are those of all its processes, without the time between them", () => {
  const view = viewOf(
    { type: "opened", at: 0, pid: 1 },
    started(100, 0),
    { type: "log", at: 10_000, level: "INFO", message: "killed after this" },
    { type: "opened", at: 1_000_000, pid: 2 },
    { type: "log", at: 1_001_000, level: "INFO", message: "loading" },
    started(1_002_000, 1),
    saved(1_003_000, "final", "p"),
    { type: "stopped", at: 1_005_000, outcome: "finished" },
    { type: "opened", at: 2_000_000, pid: 3 },
    { type: "log", at: 2_004_000, level: "INFO", message: "this run is finished" },
  );
  expect(view.seconds).toBe(15);
  expect(view.secondsOf).toEqual({ save: 0.5, other: 14.5 });
  expect(view.sessions.map(({ outcome }) => outcome)).toEqual([undefined, "finished", undefined]);
});

test("evaluations of steps that were run anew no longer count", () => {
  const view = viewOf(started(0, 0), evaluated(1, 0), evaluated(2, 10), { type: "rewound", at: 3, to: 5, reason: "x" });
  expect([...view.evaluations.keys()]).toEqual([0]);
});

test("what ran beside itself or in two processes counts once, and never for more than the run took", () => {
  const period = fc.tuple(fc.integer({ min: -5000, max: 20_000 }), fc.nat(15_000));
  const spans = fc.array(fc.tuple(fc.constantFrom("sample", "train", "weights"), period), { maxLength: 12 });
  fc.assert(
    fc.property(spans, fc.array(period, { maxLength: 4 }), (worked, measured) => {
      const step = worked.map(([name, [start, length]]) => ({ name, start, end: start + length }));
      const view = viewOf(
        { type: "opened", at: 0, pid: 1 },
        started(0, 0),
        { type: "log", at: 5000, level: "INFO", message: "killed after this" },
        { type: "opened", at: 9000, pid: 2 },
        started(9000, 1),
        ...measured.map(([start, length]) => ({ ...evaluated(9000, 0), start, end: start + length }) as RunEvent),
        { type: "step-done", at: 9000, step: 0, datasetOffset: 0, spans: step, observed: {}, metrics: {} },
        { type: "stopped", at: 12_000, outcome: "finished" },
      );
      const { other, ...parts } = view.secondsOf;
      const longest = Math.max(0, ...Object.values(parts));
      expect(Math.min(0, ...Object.values(view.secondsOf))).toBe(0);
      expect(longest).toBeLessThanOrEqual(view.seconds);
      expect(longest + other!).toBeLessThanOrEqual(view.seconds + 1e-9);
      expect(Object.values(parts).reduce((sum, part) => sum + part, other!)).toBeGreaterThanOrEqual(
        view.seconds - 1e-9,
      );
    }),
  );
});

test("what was sampled and judged since the last step is counted anew after a rewind", () => {
  const graded = { type: "graded", at: 1, phase: "train", batch: 0, group: 0, sample: 0 } as unknown as RunEvent;
  const view = viewOf(started(0, 0), graded, graded);
  expect(view.sinceStep).toEqual({ groups: 0, graded: 2 });
  view.take({ type: "rewound", at: 2, to: 0, reason: "x" });
  expect(view.sinceStep).toEqual({ groups: 0, graded: 0 });
});
