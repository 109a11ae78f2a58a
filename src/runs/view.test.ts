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
  expect(view.savingSeconds).toBe(0.5);
  expect(view.sessions.map(({ outcome }) => outcome)).toEqual([undefined, "finished", undefined]);
});

test("evaluations of steps that were run anew no longer count", () => {
  const view = viewOf(started(0, 0), evaluated(1, 0), evaluated(2, 10), { type: "rewound", at: 3, to: 5, reason: "x" });
  expect([...view.evaluations.keys()]).toEqual([0]);
});
