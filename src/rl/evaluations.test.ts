// Evaluations beside the loop: what is written down when.
import { expect, test } from "vitest";
import type { NewEvent } from "../runs/events.ts";
import { ControlState } from "./control-state.ts";
import { Evaluations } from "./evaluations.ts";
import type { Policy } from "./policies.ts";
import type { Group } from "./rollout.ts";
import type { Task } from "./tasks.ts";

const recovered = (...begun: number[]) => ({
  controlState: new ControlState(),
  evaluated: new Set<number>(),
  evaluationsBegun: new Set(begun),
});

test("an evaluation is announced when its version is made, also while another one runs, and once", async () => {
  const recorded: string[] = [];
  let answer: () => void = () => {};
  const answered = new Promise<void>((resolve) => (answer = resolve));
  const evaluations = new Evaluations({
    every: 2,
    end: 4,
    tasks: [{ id: "p", source: "s" } as Task],
    rollOut: async (): Promise<Group> => {
      await answered;
      return { problem: "p", source: "s", completions: [] } as unknown as Group;
    },
    recovered: recovered(4),
    record: async (event: NewEvent) => void recorded.push(`${event.type} ${"step" in event ? event.step : ""}`),
    onResult: () => {},
    drain: new AbortController().signal,
    cancel: new AbortController().signal,
  });
  const policy = (version: number): Policy => ({ version, open: () => Promise.reject(new Error("not here")) });
  evaluations.startIfDue(policy(0));
  evaluations.announceIfDue(1);
  evaluations.announceIfDue(2);
  expect(recorded).toEqual(["evaluation-started 0", "evaluation-started 2"]);
  evaluations.startIfDue(policy(2));
  evaluations.announceIfDue(4); // an earlier process did
  answer();
  await evaluations.finish();
  expect(recorded).toEqual(["evaluation-started 0", "evaluation-started 2", "evaluated 0", "evaluated 2"]);
});

test("the policy of an evaluation that was stopped is kept: the next process goes on with it", async () => {
  const drain = new AbortController();
  const evaluations = new Evaluations({
    every: 1,
    end: 4,
    tasks: [{ id: "p", source: "s" } as Task],
    rollOut: (_place, _task, _policy, signal) =>
      new Promise((_resolve, reject) => signal.addEventListener("abort", () => reject(signal.reason as Error))),
    recovered: recovered(),
    record: async () => {},
    onResult: () => {},
    drain: drain.signal,
    cancel: new AbortController().signal,
  });
  evaluations.startIfDue({ version: 0, open: () => Promise.reject(new Error("not here")) });
  await new Promise(setImmediate);
  drain.abort(new Error("a signal"));
  await evaluations.close();
  expect(evaluations.oldest).toBe(0);
});
