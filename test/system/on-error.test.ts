// on_error: a learning rate that breaks the policy within a few steps, and what each setting makes of it. The long run that is rescued is
// in docs/diagnosis.md. With kills on the way: WHET_KILLS=1 ./whet test test/system/on-error
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { beforeAll, expect, test } from "vitest";
import { requestControl } from "../../src/runs/controls.ts";
import { readJournal } from "../../src/runs/read-journal.ts";
import { RunView } from "../../src/runs/view.ts";
import { runCommand } from "../support/command-process.ts";
import { foldersInMemory } from "../support/folders.ts";
import { ControlledRuns } from "./controlled-runs.ts";
import { finalAdapter } from "./killing.ts";

const newFolder = foldersInMemory();
let runs: ControlledRuns;
beforeAll(async () => {
  runs = await ControlledRuns.open();
}, 60_000);

const plan = { lag: 0, ask: {}, steps: 5, learningRate: 0.06 };
const eventsOf = (path: string) => [...readJournal(path)].map(({ event }) => event);
const turns = (path: string) =>
  eventsOf(path).flatMap((event) =>
    event.type === "finding" && event.action !== "none"
      ? [`${event.step} ${event.finding.id} ${event.action}`]
      : event.type === "rewound"
        ? [`to ${event.to} at ${event.rollback?.learningRate}`]
        : [],
  );

const rollback = { ...plan, onError: "rollback" as const };
let undisturbed: Promise<string> | undefined;
/** A run that was rolled back and never killed. */
const calmRun = () =>
  (undisturbed ??= (async () => {
    const path = join(newFolder(), "calm");
    const { code, stderr } = await runs.start({ ...rollback, path }).ended;
    expect({ code, stderr: code === 0 ? "" : stderr }).toEqual({ code: 0, stderr: "" });
    return path;
  })());

test("rollback goes back with half the learning rate, at most twice", { timeout: 240_000 }, async () => {
  const calm = await calmRun();
  const broken = turns(calm).filter((turn) => turn.endsWith(" rollback"));
  expect(broken[0]).toMatch(/ collapse rollback$/);
  expect(turns(calm)).toEqual([broken[0], "to 0 at 0.03", broken[1], "to 0 at 0.015"]);
  const view = RunView.read(calm);
  expect(view.records.filter(({ step }) => step < 5).map((record) => record["optim/lr"])).toEqual(Array(5).fill(0.015));
  // Undone, so it is told but no longer an error of the run.
  expect((await runCommand(["runs", calm, "json=true"])).stdout).not.toContain('"problem"');
  expect((await runCommand(["diagnose", calm])).stdout).toContain("these steps were run anew since");
  const replayed = await runCommand(["replay", `run=${calm}`]);
  expect(replayed.stdout).toContain("every recorded one is reproduced exactly");
});

test.skipIf(!process.env["WHET_KILLS"])("exactly so after kills", { timeout: 240_000 }, async () => {
  const calm = await calmRun();
  const path = join(newFolder(), "killed");
  // Killed between the first finding and going back, and before the second finding was written down.
  const [first, second] = turns(calm).flatMap((turn) => (turn.endsWith(" rollback") ? [turn.split(" ")[0]] : []));
  expect((await runs.start({ ...rollback, path, killAt: `finding ${first}` }).ended).code).toBe(null);
  expect((await runs.start({ ...rollback, path, killAt: `step-done ${second}` }).ended).code).toBe(null);
  expect((await runs.start({ ...rollback, path }).ended).code).toBe(0);
  expect(turns(path)).toEqual(turns(calm));
  expect(finalAdapter(path, runs.stateDir)).toBe(finalAdapter(calm, runs.stateDir));
});

test("stop saves and ends with an error; diagnose says the same", { timeout: 120_000 }, async () => {
  const path = join(newFolder(), "run");
  const { code, stderr } = await runs.start({ ...plan, onError: "stop", path }).ended;
  expect(code).toBe(1);
  expect(stderr).toContain("Training was stopped after step");
  expect(RunView.read(path).newest!.name).toMatch(/^interrupted-/);
  expect(eventsOf(path).at(-1)).toMatchObject({ type: "stopped", outcome: "failed", code: "rl/diagnosed" });
  const diagnosed = await runCommand(["diagnose", path]);
  expect(diagnosed.code).toBe(1);
  // One cause, and what followed from it beneath; in a pipe each in one line, however long.
  expect(diagnosed.stdout).toMatch(/^1 error, 0 warnings, 0 notes\n\nerror collapse, after step \d/);
  expect(diagnosed.stdout).toMatch(/^ {2}means {5}an update broke the policy: .{80,}$/m);
  const lines = (await runCommand(["diagnose", `run=${path}`, "json=true"])).stdout.trim().split("\n");
  const causes = lines.map((line) => (JSON.parse(line) as { cause?: string }).cause);
  expect(causes).toEqual([undefined, ...Array(lines.length - 1).fill("collapse")]);
  expect((await runCommand(["runs", path])).stdout).toMatch(
    /failed .*\n {2}Training was stopped after step \d: right answers/,
  );
  const journalled = RunView.read(path).findings.all.map(({ finding }) => finding.id);
  expect(lines.map((line) => (JSON.parse(line) as { id: string }).id)).toEqual(expect.arrayContaining(journalled));
  expect(await runCommand(["diagnose", join(path, "journal")])).toMatchObject({ code: 2 });
});

test("pause waits for somebody; the pause is in the journal with its finding", { timeout: 120_000 }, async () => {
  const path = join(newFolder(), "run");
  const { ended, stderr } = runs.start({ ...plan, onError: "pause", path });
  for (let tries = 0; tries < 600 && !stderr().includes("asked by on_error, collapse"); tries++) await sleep(100);
  const view = RunView.read(path);
  expect(view.paused).toBe(true);
  expect(view.findings.causes).toMatchObject([{ root: { finding: { id: "collapse" }, action: "pause" } }]);
  requestControl(path, { kind: "stop" }, "test");
  expect((await ended).code).toBe(0);
  expect(RunView.read(path).sessions.at(-1)!.outcome).toBe("interrupted");
});
