// Sweeps end to end: one is interrupted, killed and gone on with, and trains nothing twice; a run that fails loses no other; what
// docs/runs.md shows is taken.
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { beforeAll, describe, expect, test } from "vitest";
import { listRuns } from "../../src/dashboard/run-list.ts";
import { findRuns, writerOf } from "../../src/runs/overview.ts";
import { readJournal } from "../../src/runs/read-journal.ts";
import { RunView } from "../../src/runs/view.ts";
import { runCommand } from "../support/command-process.ts";
import { foldersInMemory } from "../support/folders.ts";
import { type SharedEngine, sharedEngine } from "../support/shared-engine.ts";
import { cleanEnvironment, runWhet, type WhetResult } from "../support/whet.ts";

const newFolder = foldersInMemory();
const small = ["prompts_per_step=2", "completions_per_prompt=4", "max_tokens=48", "tensorboard=false"];
let engine: SharedEngine;
let env: Record<string, string>;

beforeAll(async () => {
  engine = await sharedEngine();
  env = { TINKER_API_KEY: engine.apiKey };
}, 60_000);

const goOn = ({ stdout }: WhetResult) => /not finished\. To go on:\n {2}(.+)\n/.exec(stdout)?.[1] ?? "";

/** Calls `then` with the process when it has said `what` for the `time`th time. */
const whenSaid = (what: RegExp, then: (child: ChildProcess) => void) => (child: ChildProcess) => {
  let said = "";
  let done = false;
  child.stderr!.on("data", (chunk: Buffer) => {
    said += chunk.toString();
    if (done || !what.test(said)) return;
    done = true;
    then(child);
  });
};

describe("a sweep of two learning rates that is interrupted, then killed", () => {
  const home = newFolder();
  const folder = join(home, "runs", "rates");
  const [first, second] = ["learning_rate-0.001", "learning_rate-0.004"].map((name) => join(folder, name)) as [
    string,
    string,
  ];
  let interrupted: WhetResult;
  let finished: WhetResult;

  beforeAll(async () => {
    const args = [
      "learning_rate=1e-3,4e-3",
      `base_url=${engine.baseUrl}`,
      ...small,
      "max_steps=4",
      "eval_every=4",
      "eval_max_problems=3",
    ];
    interrupted = await runWhet(["sweep", ...args, "dashboard=false", "log_path=runs/rates"], {
      cwd: home,
      env,
      onStart: whenSaid(/^step +0 /m, (child) => child.kill("SIGINT")),
    });
    // Pasted elsewhere; then it dies in its second run, whose process is held up before it can save.
    let orphan = 0;
    const dying = spawn("bash", ["-c", `exec ${goOn(interrupted)}`], {
      cwd: newFolder(),
      env: cleanEnvironment(env),
      stdio: ["ignore", "ignore", "pipe"],
    });
    whenSaid(/learning_rate=0\.004 [\s\S]*^step +0 /m, () => {
      dying.kill("SIGKILL");
      orphan = writerOf(second)!;
      process.kill(orphan, "SIGSTOP");
    })(dying);
    await once(dying, "exit");
    finished = await runWhet(["sweep", folder], {
      env,
      onStart: whenSaid(/waiting for its end/, () => process.kill(orphan, "SIGCONT")),
    });
  }, 240_000);

  test("Ctrl-C lets the run under way save, begins no other, and names the command that goes on", () => {
    expect(interrupted.code, interrupted.stderr).toBe(130);
    expect(interrupted.stderr).toContain("sweep    2 runs (2 of learning_rate)");
    expect(interrupted.stderr).toContain("everything is saved");
    expect(interrupted.stdout).toMatch(/^ +0\.001 +stopped +[12]\/4 /m);
    expect(interrupted.stdout).toMatch(/^ +0\.004 +not begun +0 /m);
    expect(goOn(interrupted)).toMatch(/whet sweep \S+\/rates$/);
  });

  test("whoever is left behind is waited for, and nothing is trained twice", () => {
    expect(finished.code, finished.stderr).toBe(0);
    expect(finished.stderr).toContain("1 finished; 1 at a time");
    for (const path of [first, second]) {
      const events = [...readJournal(path)].map(({ event }) => event);
      expect(events.flatMap((event) => (event.type === "step-done" ? [event.step] : []))).toEqual([0, 1, 2, 3]);
      expect(events.filter(({ type }) => type === "rewound" || type === "retrained")).toEqual([]);
      // The second run's process was asked for nothing: it saved and ended because its sweep was gone.
      expect(RunView.read(path).sessions.map(({ outcome }) => outcome)).toEqual(["interrupted", "finished"]);
    }
  });

  test("one table and one page, again whenever it is asked, without a process more", async () => {
    const rows = finished.stdout.split("\n").filter((line) => /^\*? +0\.00[14] +4\/4 /.test(line));
    expect(rows).toHaveLength(2);
    expect(finished.stdout).toMatch(/^\* best: learning_rate=0\.00[14], Pass@1 .* of 3 problems/m);
    const page = readFileSync(join(folder, "sweep.html"), "utf8");
    expect(page.match(/<td>4\/4<\/td>/g)).toHaveLength(2);
    for (const title of ["Reward", "Pass@1", "Loss"]) expect(page).toContain(`<figcaption><b>${title}</b>`);
    const again = await runCommand(["sweep", folder], { env });
    expect([again.code, again.stdout]).toEqual([0, finished.stdout]);
    expect(again.stderr).toMatch(/2 finished/);
    expect(RunView.read(first).sessions).toHaveLength(2);
  });

  test("its runs are runs as any other, wherever the sweep is", async () => {
    expect(findRuns(home).toSorted()).toEqual([first, second]);
    expect(
      listRuns([home])
        .map(({ id }) => id)
        .toSorted(),
    ).toEqual(["runs/rates/learning_rate-0.001", "runs/rates/learning_rate-0.004"]);
    const shown = await runCommand(["show", "learning_rate-0.004"], { cwd: folder, env });
    expect([shown.code, shown.stdout]).toEqual([0, expect.stringContaining("learning_rate-0.004")]);
    const resumed = await runCommand(["resume", folder], { env });
    expect(resumed.stderr).toMatch(/the folder of a sweep, with which \S*whet sweep \S+\/rates goes on/);
  });
});

test("a run that the server refuses loses no other, and is shown with its reason; two at a time", async () => {
  const folder = join(newFolder(), "ranks");
  const args = [
    "lora_rank=100000,4",
    `base_url=${engine.baseUrl}`,
    ...small,
    "max_steps=1",
    "eval_every=0",
    `log_path=${folder}`,
  ];
  const { code, stdout, stderr } = await runCommand(["sweep", ...args, "parallel=2"], { env });
  expect([code, stderr]).toEqual([1, expect.stringMatching(/^\[lora_rank=4\] step +0 /m)]);
  expect(stderr).toMatch(/dashboard {2}http:\/\/127\.0\.0\.1:\d+/);
  expect(stdout).toMatch(/^\* +4 +finished +1\/1 /m);
  expect(stdout).toMatch(/^ +100000 +failed +0/m);
  expect(stdout).toMatch(/^lora_rank=100000: failed, .*rank of 100000 is not possible/m);
  expect(stdout).toContain("1 of 2 runs not finished");
  expect(readFileSync(join(folder, "sweep.html"), "utf8")).toContain("rank of 100000 is not possible");
}, 120_000);

describe("before anything begins", () => {
  test("what docs/runs.md shows is taken, and --dry-run says what it would make", async () => {
    const guide = readFileSync(new URL("../../docs/runs.md", import.meta.url), "utf8");
    const section = /## Sweeps\n([\s\S]*?)\n## /.exec(guide)![1]!;
    const shown = [...section.matchAll(/^\.\/whet sweep (.*?)(?: +#.*)?$/gm)].map(([, words]) => words!.split(" "));
    expect(shown.length).toBeGreaterThan(1);
    const cwd = newFolder();
    for (const name of ["mine.jsonl", "theirs.jsonl"]) writeFileSync(join(cwd, name), "");
    for (const words of shown.filter(([word]) => word!.includes("="))) {
      const { code, stderr } = await runCommand(["sweep", ...words, "--dry-run"], { cwd });
      expect([code, stderr], words.join(" ")).toEqual([
        0,
        expect.stringMatching(/^sweep {4}\d+ runs \(.*\n( {2}.*: new, .*\n){2,}/m),
      ]);
    }
    expect(existsSync(join(cwd, "runs"))).toBe(false);
  });

  test.each([
    [["max_steps=4"], "config/nothing-swept"],
    [["seed=0,1", "max_steps=-1"], "config/sweep-without-end"],
    [["completions_per_prompt=8,1"], "config/completions-per-prompt"],
    [["seed=0,1", "engine=skyrl", "parallel=2"], "config/conflict"],
    [["rates", "parallel=2"], "config/no-sweep"],
  ])("%j is refused", async (args, code) => {
    const cwd = newFolder();
    const refused = await runCommand(["sweep", ...args, ...(args[0] === "rates" ? [] : ["log_path=rates"])], { cwd });
    expect([refused.code, refused.stderr]).toEqual([2, expect.stringContaining(`[${code}]`)]);
    expect(existsSync(join(cwd, "rates"))).toBe(false);
  });
});
