// Signals and lost readers at every stage of `./whet train` and `./whet eval`: no stack trace, nothing lost, the right exit code.
import { spawn } from "node:child_process";
import { existsSync, readFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { expect, test } from "vitest";
import { EmbeddedServer } from "../../src/cli/engines/embedded/server.ts";
import { readJsonLines } from "../../src/core/jsonl.ts";
import { Random } from "../../src/core/random.ts";
import { readJournal } from "../../src/runs/read-journal.ts";
import { RunView } from "../../src/runs/view.ts";
import { foldersInMemory } from "../support/folders.ts";
import { sharedEngine } from "../support/shared-engine.ts";
import { cleanEnvironment, runWhet, whetPath } from "../support/whet.ts";

const newFolder = foldersInMemory();
const small = [
  "prompts_per_step=2",
  "completions_per_prompt=4",
  "max_tokens=48",
  "tensorboard=false",
  "eval_max_problems=4",
];
const noTrace = /\n\s+at .*:\d+:\d+|Unhandled|UnhandledPromise/;
const checkpoints = (path: string) =>
  readJsonLines(join(path, "checkpoints.jsonl")) as { name: string; step: number; final?: boolean }[];

/** Starts a training run whose moments can be waited for. */
function startTraining(args: readonly string[], options: { group?: boolean; env?: Record<string, string> } = {}) {
  const child = spawn(whetPath, ["train", ...args], {
    env: cleanEnvironment(options.env),
    stdio: ["ignore", "pipe", "pipe"],
    detached: options.group ?? false,
  });
  let stderr = "";
  child.stderr.on("data", (chunk: Buffer) => (stderr += chunk.toString()));
  const ended = new Promise<{ code: number | null; stderr: string }>((resolve) =>
    child.once("close", (code) => resolve({ code, stderr })),
  );
  const until = async (what: string, holds: () => boolean) => {
    while (!holds()) {
      if (child.exitCode !== null) throw new Error(`it ended before ${what}: ${stderr}`);
      await sleep(10);
    }
  };
  return { child, ended, until, said: (text: string) => stderr.includes(text) };
}

test("Ctrl-C at any moment of sampling, grading and evaluating saves and leaves no trace of a crash", async () => {
  const path = join(newFolder(), "run");
  const random = new Random("moments", process.env["WHET_SEED"] ?? 0);
  const { baseUrl, apiKey } = await sharedEngine();
  const keys = [`log_path=${path}`, `base_url=${baseUrl}`, "max_steps=40", "eval_every=1", "save_every=0", "max_lag=1"];
  let last = 0;
  for (let time = 0; time < Number(process.env["WHET_INTERRUPTS"] ?? 2); time++) {
    const run = startTraining([...keys, ...small], { env: { TINKER_API_KEY: apiKey } });
    await run.until("the first sample", () => run.said(`run      ${path}`));
    await sleep(300 + random.float() * 1500);
    run.child.kill("SIGINT");
    const { code, stderr } = await run.ended;
    expect(stderr).not.toMatch(noTrace);
    expect([code, stderr.includes("everything is saved")], stderr).toEqual([130, true]);
    // Whatever was trained is in a checkpoint: the next process begins where this one ended.
    const { step } = checkpoints(path).at(-1) ?? { step: 0 };
    expect(step).toBe(RunView.read(path).records.filter((record) => "mean_reward" in record).length);
    expect(step).toBeGreaterThanOrEqual(last);
    last = step;
    expect(openWithoutPolicy(path), "evaluations that can never be finished").toEqual([]);
  }
}, 240_000);

/** Versions whose evaluation was begun and not ended, and whose policy was deleted. */
function openWithoutPolicy(path: string): number[] {
  const events = [...readJournal(path)].map(({ event }) => event);
  const ended = events.flatMap((event) => (event.type === "evaluated" ? [event.step] : []));
  const gone = events.flatMap((event) => (event.type === "policy-deleted" ? [event.path] : []));
  const lost = events.flatMap((event) =>
    event.type === "policy-published" && event.path !== undefined && gone.includes(event.path) ? [event.version] : [],
  );
  return events.flatMap((event) =>
    event.type === "evaluation-started" && !ended.includes(event.step) && lost.includes(event.step) ? [event.step] : [],
  );
}

test("Ctrl-C during the last evaluation loses nothing, and the same command only evaluates", async () => {
  const path = join(newFolder(), "run");
  const { baseUrl, apiKey } = await sharedEngine();
  const env = { TINKER_API_KEY: apiKey };
  const keys = [`log_path=${path}`, `base_url=${baseUrl}`, "max_steps=1", "eval_every=5", "save_every=0"];
  const command = [...keys, ...small, "eval_max_problems=8"];
  const run = startTraining(command, { env });
  await run.until(
    "the final checkpoint",
    () => existsSync(join(path, "checkpoints.jsonl")) && checkpoints(path).length > 0,
  );
  run.child.kill("SIGINT");
  const { code, stderr } = await run.ended;
  expect(stderr).not.toMatch(noTrace);
  expect(code).toBe(130);
  expect(checkpoints(path)).toMatchObject([{ name: "final", step: 1, final: true }]);
  const again = await runWhet(["train", ...command], { env });
  expect(again.code, again.stderr).toBe(0);
  expect(again.stderr).toContain("eval after 1 step ");
  expect(again.stderr).not.toMatch(/^step /m);
  expect(checkpoints(path)).toHaveLength(1);
}, 240_000);

test.each(["SIGHUP", "SIGTERM to the process group"])(
  "%s saves, though it reaches every process",
  async (signal) => {
    const path = join(newFolder(), "run");
    const keys = [`log_path=${path}`, "max_steps=40", "eval_every=0", "save_every=0", ...small];
    const run = startTraining(keys, { group: true });
    await run.until("a step", () => run.said("step   0"));
    if (signal === "SIGHUP") run.child.kill("SIGHUP");
    else process.kill(-run.child.pid!, "SIGTERM");
    const { code, stderr } = await run.ended;
    expect(stderr).not.toMatch(noTrace);
    expect([code, stderr.includes("everything is saved")], stderr).toEqual([130, true]);
    expect(checkpoints(path)[0]!.name).toMatch(/^interrupted-/);
  },
  120_000,
);

test("a run whose output nobody reads any more goes on to its end", async () => {
  const path = join(newFolder(), "run");
  const { baseUrl, apiKey } = await sharedEngine();
  const args = `log_path=${path} base_url=${baseUrl} max_steps=2 eval_every=0 ${small.join(" ")}`;
  const child = spawn("bash", ["-c", `${whetPath} train ${args} 2>&1 | head -2`], {
    env: cleanEnvironment({ TINKER_API_KEY: apiKey }),
    stdio: "ignore",
  });
  await new Promise((resolve) => child.once("exit", resolve));
  // The shell waits for head alone once it has what it wants; the run is its own.
  for (let time = 0; time < 1000 && !existsSync(join(path, "summary.json")); time++) await sleep(100);
  expect(checkpoints(path).at(-1)).toMatchObject({ name: "final", step: 2 });
  expect(readFileSync(join(path, "logs.log"), "utf8")).toMatch(/step {3}1/);
}, 120_000);

test("a live run, and another run's checkpoint, can be evaluated", async () => {
  const folder = newFolder();
  const path = join(folder, "live");
  const run = startTraining([
    `log_path=${path}`,
    "max_steps=400",
    "eval_every=0",
    "save_every=1",
    ...small,
    "eval_max_tokens=2",
  ]);
  await run.until("a checkpoint", () => existsSync(join(path, "checkpoints.jsonl")) && checkpoints(path).length > 0);
  // Alive, but not in the way.
  run.child.kill("SIGSTOP");
  const { sampler_path: other } = checkpoints(path)[0] as unknown as { sampler_path: string };
  const live = await runWhet(["eval", `run=${path}`, "checkpoint=000001", `compare=${other}`]);
  expect(live.code, live.stderr).toBe(0);
  expect(live.stdout).toContain("checkpoint 000001");
  expect(live.stdout).toContain(`compared with ${other}`);
  // The run's own eval_max_tokens: every answer is cut.
  expect(live.stdout).toMatch(/cut at the token limit\s+100\.0%/);
  expect(run.child.exitCode).toBe(null);
  run.child.kill("SIGCONT");
  run.child.kill("SIGINT");
  expect((await run.ended).code).toBe(130);

  const started = performance.now();
  const missing = await runWhet(["eval", "checkpoint=tinker://nobody:train:0/sampler_weights/x", `run=${path}`]);
  expect(missing.stderr).toMatch(/is in none of the runs/);
  expect(performance.now() - started).toBeLessThan(60_000);

  // Every checkpoint gone: said, and nothing touched.
  rmSync(join(path, "engine", "checkpoints"), { recursive: true });
  const metrics = readFileSync(join(path, "metrics.jsonl"), "utf8");
  const gone = await runWhet([
    "train",
    `log_path=${path}`,
    "max_steps=400",
    "eval_every=0",
    "save_every=1",
    ...small,
    "eval_max_tokens=2",
  ]);
  expect([gone.code, gone.stderr.includes("[rl/checkpoints-gone]")], gone.stderr).toEqual([1, true]);
  expect(readFileSync(join(path, "metrics.jsonl"), "utf8")).toBe(metrics);
  expect(readFileSync(join(path, "logs.log"), "utf8")).toMatch(/\[ERROR\] None of the \d+ checkpoints/);
}, 300_000);

test("Ctrl-C during ./whet eval ends it with 130 and without a trace", async () => {
  let interrupted = false;
  const result = await runWhet(["eval", "preset=nano", "eval_max_problems=200", "max_tokens=112"], {
    onStart: (child) =>
      child.stderr?.on("data", (chunk: Buffer) => {
        if (interrupted || !chunk.toString().includes("test  ")) return;
        interrupted = true;
        setTimeout(() => child.kill("SIGINT"), 700);
      }),
  });
  expect(result.stderr).not.toMatch(noTrace);
  expect(result.code, result.stderr).toBe(130);
}, 120_000);

test("an embedded engine that keeps dying is given up with an error; one that lived for a while is started again", async () => {
  const folder = newFolder();
  const restarts: string[] = [];
  let lost: Error | undefined;
  const server = await EmbeddedServer.start({
    stateDir: join(folder, "state"),
    logFile: join(folder, "server.log"),
    args: ["engine=simulated"],
    healthyMs: 3_600_000,
    onRestart: (reason) => restarts.push(reason),
    onLost: (error) => {
      lost = error;
    },
  });
  const killed = new Set<number>();
  while (!lost) {
    const { pid } = server;
    if (pid !== undefined && !killed.has(pid)) {
      await sleep(50);
      killed.add(pid);
      process.kill(pid, "SIGKILL");
    }
    await sleep(20);
  }
  expect(restarts).toHaveLength(3);
  expect(lost).toMatchObject({ code: "cli/embedded-server-lost" });
  await server.close();

  let again = 0;
  const healthy = await EmbeddedServer.start({
    stateDir: join(folder, "state-2"),
    logFile: join(folder, "server-2.log"),
    args: ["engine=simulated"],
    healthyMs: 0,
    onRestart: () => again++,
    onLost: (error) => {
      throw error;
    },
  });
  for (let time = 1; time <= 5; time++) {
    const { pid } = healthy;
    process.kill(pid!, "SIGKILL");
    while (again < time || healthy.pid === pid) await sleep(10);
    // Until it answers again.
    for (;;) {
      const answer = await fetch(`${healthy.url}/api/v1/healthz`).catch(() => undefined);
      if (answer) break;
      await sleep(30);
    }
  }
  await healthy.close();
}, 120_000);
