// What is asked of a live run is done, written down, and survives `kill -9`: the run ends with the adapter of one that was asked the same
// at the same steps and never killed.
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { beforeAll, expect, test } from "vitest";
import { type Control, requestControl } from "../../src/runs/controls.ts";
import { readJournal } from "../../src/runs/read-journal.ts";
import { RunView } from "../../src/runs/view.ts";
import { runCommand } from "../support/command-process.ts";
import { foldersInMemory } from "../support/folders.ts";
import { ControlledRuns } from "./controlled-runs.ts";
import { finalAdapter, mergedMetrics } from "./killing.ts";

const newFolder = foldersInMemory();

let runs: ControlledRuns;
beforeAll(async () => {
  runs = await ControlledRuns.open();
}, 60_000);

const plan = { steps: 6, prompts: 3 };

const controlsOf = (path: string) =>
  RunView.read(path).controls.map(({ step, by, control }) => ({ step, by, control }));

async function until(holds: () => boolean): Promise<void> {
  for (let tries = 0; !holds(); tries++) {
    if (tries > 600) throw new Error("it did not happen within a minute");
    await sleep(100);
  }
}

const asked: Control[] = [{ kind: "learning-rate", value: 1e-4 }, { kind: "save" }, { kind: "evaluate" }];

// All of them with WHET_KILLS set, as for test/system/resume.
const lags = process.env["WHET_KILLS"] ? [0, 1, 2] : [1];

test.each(lags)(
  "max_lag=%i: another learning rate, a save and an evaluation survive two kills",
  { timeout: 240_000 },
  async (lag) => {
    const calm = join(newFolder(), "calm");
    const ask = { 0: asked };
    expect(await runs.start({ ...plan, path: calm, lag, ask }).ended).toMatchObject({ code: 0 });
    const path = join(newFolder(), "killed");
    // Killed when the first of the three was written down, and when the step after the first that they hold for was done.
    expect((await runs.start({ ...plan, path, lag, ask, killAt: "control 1" }).ended).code).toBe(null);
    expect((await runs.start({ ...plan, path, lag, ask: {}, killAt: "step-done 2" }).ended).code).toBe(null);
    expect(await runs.start({ ...plan, path, lag, ask: {} }).ended).toMatchObject({ code: 0 });

    for (const run of [calm, path]) {
      expect(controlsOf(run)).toEqual(asked.map((control) => ({ step: 1, by: "test", control })));
      const view = RunView.read(run);
      expect(view.records.filter(({ step }) => step < 6).map((record) => record["optim/lr"])).toEqual([
        2.5e-3,
        ...Array<number>(5).fill(1e-4),
      ]);
      expect(view.records.filter((record) => record["loss"] !== undefined).length).toBeGreaterThan(3);
      expect([...view.evaluations.keys()].sort()).toEqual([1, 0, 6].sort());
      expect(new Set(view.checkpoints.map(({ name }) => name))).toEqual(new Set(["000001", "000003", "final"]));
    }
    expect(mergedMetrics(path)).toEqual(mergedMetrics(calm));
    expect(finalAdapter(path, runs.stateDir)).toBe(finalAdapter(calm, runs.stateDir));
    const replayed = await runCommand(["replay", `run=${path}`]);
    expect(replayed.stdout).toContain("every recorded one is reproduced exactly");
  },
);

test("a paused run waits, a killed one resumes paused and says so, and stop saves", { timeout: 240_000 }, async () => {
  const path = join(newFolder(), "run");
  const first = runs.start({ ...plan, path, lag: 0, ask: { 1: [{ kind: "pause" }] } });
  await until(() => first.stderr().includes("paused before the update of step 2"));
  expect(RunView.read(path).paused).toBe(true);
  // Nothing is trained while it is paused; what is asked meanwhile is done.
  const command = await runCommand(["control", `run=${path}`, "save", "wait=30"]);
  expect(command).toMatchObject({ code: 0, stdout: expect.stringContaining("taken") });
  await until(() => RunView.read(path).checkpoints.some(({ name }) => name === "000002"));
  const pid = [...readJournal(path)].flatMap(({ event }) => (event.type === "opened" ? [event.pid] : [])).at(-1)!;
  process.kill(pid, "SIGKILL");
  expect((await first.ended).code).toBe(null);
  expect(() => requestControl(path, { kind: "go-on" })).toThrow(/No process trains/);

  const second = runs.start({ ...plan, path, lag: 0, ask: { 3: [{ kind: "stop" }] } });
  await until(() => second.stderr().includes("paused before the update of step 2"));
  await sleep(500);
  expect(RunView.read(path).records.at(-1)!.step).toBe(1);
  requestControl(path, { kind: "go-on" }, "test");
  expect(await second.ended).toMatchObject({ code: 0 });
  const view = RunView.read(path);
  expect(view.paused).toBe(false);
  expect(view.newest).toMatchObject({ name: "interrupted-000004", step: 4 });
  expect(view.sessions.at(-1)!.outcome).toBe("interrupted");
});
