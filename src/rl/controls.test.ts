// Controls without a server: batches that come and go, requests in a folder, and what the loop is given when.
import { setTimeout as sleep } from "node:timers/promises";
import { expect, test } from "vitest";
import { foldersInMemory } from "../../test/support/folders.ts";
import { type Control, requestControl } from "../runs/controls.ts";
import { lockRunDirectory } from "../runs/directory.ts";
import type { NewEvent } from "../runs/events.ts";
import { ControlState } from "./control-state.ts";
import { Controls } from "./controls.ts";

const newFolder = foldersInMemory();
const silent = { info() {}, warn() {}, error() {}, detail() {} };

/** Steps that come by themselves, five of them; `done` has those that the loop was given. */
function rig({ frontier = 0, controlState = new ControlState() } = {}) {
  const path = newFolder();
  const release = lockRunDirectory(path);
  const drain = new AbortController();
  const at = { position: { step: 0, datasetOffset: 0 } };
  const recorded: NewEvent[] = [];
  const acts: string[] = [];
  const controls = new Controls({
    run: { path, logger: silent, openedAt: Date.now() },
    controlState,
    learningRate: 1,
    frontier,
    record: async (event) => void recorded.push(event),
    save: ({ step }) => acts.push(`save ${step}`),
    evaluate: async (version) => acts.push(`evaluate ${version}`) > 0,
    stop: () => drain.abort(new Error("stop")),
    onPause: (step, paused) => acts.push(`${paused ? "pause" : "go on"} ${step}`),
    drain: drain.signal,
    cancel: new AbortController().signal,
  });
  const done: number[] = [];
  const run = async (batches: AsyncIterator<number, void, undefined> = counted(), ask?: (step: number) => void) => {
    for await (const step of controls.apply(batches, () => at.position)) {
      done.push(step);
      at.position = { step: step + 1, datasetOffset: 0 };
      ask?.(step);
    }
    release();
  };
  const ask = (control: Control) => requestControl(path, control, "test");
  const taken = () =>
    recorded.map((event) => (event.type === "control" ? `${event.control.kind} ${event.step}` : event.type));
  return { path, run, ask, taken, acts, done, drain, controls, at };
}

async function* counted() {
  for (let step = 0; step < 5; step++) yield step;
}

test("what is asked after a step holds for the next one, and is written down before it is done", async () => {
  const { run, ask, taken, acts, done, controls } = rig();
  await run(counted(), (step) => {
    if (step !== 1) return;
    ask({ kind: "save" });
    ask({ kind: "evaluate" });
    ask({ kind: "learning-rate", value: 0.5 });
  });
  expect(taken()).toEqual(["save 2", "evaluate 2", "learning-rate 2"]);
  expect(acts).toEqual(["save 2", "evaluate 2"]);
  expect(controls.learningRate).toBe(0.5);
  expect(done).toEqual([0, 1, 2, 3, 4]);
});

test("a pause holds the next step back until it is let go on; what is asked meanwhile is done", async () => {
  const { run, ask, taken, acts, done } = rig();
  const running = run(counted(), (step) => step === 1 && ask({ kind: "pause" }));
  await sleep(500);
  expect(done).toEqual([0, 1]);
  ask({ kind: "save" });
  await sleep(500);
  expect(acts).toEqual(["pause 2", "save 2"]);
  ask({ kind: "go-on" });
  await running;
  expect(done).toEqual([0, 1, 2, 3, 4]);
  expect(taken()).toEqual(["pause 2", "save 2", "go-on 2"]);
});

test("a signal or a stop ends a paused run without another step; a failure shows through", async () => {
  const drained = rig();
  const running = drained.run(counted(), (step) => step === 1 && drained.ask({ kind: "pause" }));
  await sleep(400);
  drained.drain.abort(new Error("ctrl-c"));
  await running;
  expect(drained.done).toEqual([0, 1]);

  const stopped = rig();
  await stopped.run(counted(), (step) => step === 1 && stopped.ask({ kind: "stop" }));
  expect(stopped.done).toEqual([0, 1]);

  const controlState = new ControlState();
  controlState.pausedBy = "test";
  const failing = { next: () => Promise.reject(new Error("the sandbox is gone")) };
  await expect(rig({ controlState }).run(failing)).rejects.toThrow("the sandbox is gone");
});

test("steps that are repeated are not held back and take nothing; the first new one does", async () => {
  const controlState = new ControlState();
  controlState.pausedBy = "test";
  controlState.saves.add(1);
  const { run, ask, taken, acts, done } = rig({ frontier: 3, controlState });
  ask({ kind: "learning-rate", value: 0.1 });
  const running = run();
  await sleep(500);
  expect(done).toEqual([0, 1, 2]);
  expect(acts).toEqual(["save 1", "pause 3"]);
  expect(taken()).toEqual(["learning-rate 3"]);
  ask({ kind: "go-on" });
  await running;
  expect(done).toEqual([0, 1, 2, 3, 4]);
});

test("what is asked after the last step is left alone, and a paused run ends there", async () => {
  const { run, ask, taken, done } = rig();
  await run(counted(), (step) => step === 4 && ask({ kind: "pause" }));
  expect(done).toEqual([0, 1, 2, 3, 4]);
  expect(taken()).toEqual([]);
});

test("a request that was written down before a kill is not taken twice, and a stop from before a start is dropped", async () => {
  const controlState = new ControlState();
  const { run, ask, taken, done } = rig({ controlState });
  controlState.taken.add(ask({ kind: "pause" }));
  await run();
  expect(taken()).toEqual([]);
  expect(done).toEqual([0, 1, 2, 3, 4]);
});
