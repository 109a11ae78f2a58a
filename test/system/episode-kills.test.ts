// Episodes that are killed in the middle and go on: recorded turns are never sampled again, and the adapter is in the end bit for bit that
// of a run nobody touched, at every lag. Two kills here; more, at every lag, with WHET_KILLS=60 ./whet test test/system/episode-kills
import { type ChildProcess, spawn } from "node:child_process";
import { existsSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, expect, test } from "vitest";
import { readJsonLines } from "../../src/core/jsonl.ts";
import { Random } from "../../src/core/random.ts";
import type { AuditRecord } from "../../src/engine/audited.ts";
import { type ServeProcess, startServe } from "../contract/serve-process.ts";
import { bundled } from "../support/bundled.ts";
import { eventsNamed, eventsOf, newFolder } from "../support/environment-runs.ts";
import type { EnvironmentName } from "../support/episode-training.ts";
import { taughtRank, teachTools, toolRenderer } from "../support/tool-user.ts";
import { expectNothingTwice, finalAdapter, type Moment, metricsOf, momentOf } from "./killing.ts";

const wanted = process.env["WHET_KILLS"];
const cases: [EnvironmentName, lag: number][] = wanted
  ? [0, 1, 2].flatMap((lag): [EnvironmentName, number][] => [
      ["tools", lag],
      ["repair", lag],
    ])
  : [
      ["tools", 0],
      ["repair", 2],
    ];
const kills = Math.ceil(Number(wanted ?? cases.length) / cases.length);

const script = fileURLToPath(new URL("../support/episode-training.ts", import.meta.url));
let program: string;

let audit: string;
let stateDir: string;
let engine: ServeProcess;
let taught: string;

beforeAll(async () => {
  program = await bundled(script);
  audit = join(newFolder(), "engine.jsonl");
  stateDir = newFolder();
  engine = await startServe([`state_dir=${stateDir}`], undefined, ["env", `WHET_ENGINE_AUDIT=${audit}`]);
  taught = await teachTools(engine, await toolRenderer(newFolder()));
});
afterAll(async () => {
  await engine?.close();
});

const settings = (path: string, name: EnvironmentName, lag: number) => ({
  preset: "nano",
  log_path: path,
  max_lag: lag,
  max_steps: 4,
  save_every: 2,
  eval_every: 2,
  prompts_per_step: 2,
  completions_per_prompt: 4,
  max_tokens: name === "tools" ? 40 : 64,
  context_window: 512,
  tensorboard: false,
  ...(name === "tools" && { from: taught, lora_rank: taughtRank, learning_rate: 1e-4 }),
});

const start = (path: string, name: EnvironmentName, lag: number): ChildProcess => {
  const config = JSON.stringify(settings(path, name, lag));
  const args = [program, engine.baseUrl, engine.apiKey, name, newFolder(), config];
  return spawn(process.execPath, args, { stdio: ["ignore", "ignore", "pipe"] });
};

/** Trains; resolves to the exit code, null when it was killed. */
async function train(path: string, name: EnvironmentName, lag: number, killAfterMs?: number): Promise<number | null> {
  const child = start(path, name, lag);
  let errors = "";
  child.stderr!.on("data", (chunk: Buffer) => {
    errors += chunk.toString();
  });
  const timer = killAfterMs === undefined ? undefined : setTimeout(() => child.kill("SIGKILL"), killAfterMs);
  const code = await new Promise<number | null>((resolve) => child.once("close", resolve));
  clearTimeout(timer);
  if (code !== 0 && code !== null) throw new Error(errors);
  return code;
}

test.each(cases)(
  `%s at max_lag=%i: killed ${kills} times, it ends exactly like a run that was left alone`,
  {
    timeout: 60_000 * (kills + 2),
  },
  async (name, lag) => {
    const calm = join(newFolder(), "calm");
    const started = performance.now();
    expect(await train(calm, name, lag)).toBe(0);
    const wholeMs = performance.now() - started;
    const turns = eventsNamed(eventsOf(calm), "turn-sampled");
    expect(turns.length).toBeGreaterThan(20);

    const random = new Random("episode kills", name, lag, process.env["WHET_SEED"] ?? 0);
    let killed = 0;
    while (killed < kills) {
      const path = join(newFolder(), "troubled");
      const moments: Moment[] = [];
      const before = readJsonLines(audit).length;
      let code: number | null;
      do {
        const killAfterMs = killed < kills ? 400 + random.float() * wholeMs : undefined;
        code = await train(path, name, lag, killAfterMs);
        if (code === null) {
          killed++;
          moments.push(momentOf(path, audit));
        }
      } while (code === null);
      expect(metricsOf(path)).toEqual(metricsOf(calm));
      expect(finalAdapter(path, stateDir)).toBe(finalAdapter(calm, stateDir));
      expectNothingTwice(path, audit, moments, undefined, before);
      const diverged = eventsNamed(eventsOf(path), "graded").map(({ grade }) => grade.episode?.diverged ?? 0);
      expect(Math.max(...diverged)).toBe(0);
    }
  },
);

test("an environment whose chance no seed knows diverges after a kill, says so, and goes on lawfully", async () => {
  const path = join(newFolder(), "chance");
  // Killed when the first episodes are under way.
  const journal = join(path, "journal");
  const child = start(path, "chance", 0);
  const turnsIn = () => (existsSync(journal) ? eventsNamed(eventsOf(path), "turn-sampled").length : 0);
  while (turnsIn() < 3) await new Promise((resolve) => setTimeout(resolve, 5));
  child.kill("SIGKILL");
  await new Promise((resolve) => child.once("close", resolve));
  const [moment, recorded] = [momentOf(path, audit), turnsIn()];
  expect(await train(path, "chance", 0)).toBe(0);

  const events = eventsOf(path);
  const graded = eventsNamed(events, "graded");
  const diverged = graded.reduce((sum, { grade }) => sum + (grade.episode?.diverged ?? 0), 0);
  expect(diverged).toBeGreaterThan(0);
  expect(diverged).toBeLessThanOrEqual(recorded);
  const steps = eventsNamed(events, "step-done");
  expect(steps.reduce((sum, { metrics }) => sum + (metrics["episode/diverged"] ?? 0), 0)).toBe(diverged);
  // What was asked for anew was sampled with seeds of its own, and what diverged is trained on nowhere.
  const samples = (readJsonLines(audit) as AuditRecord[]).slice(moment.engineLines);
  expect(samples.filter((line) => line.op === "sample" && moment.sampled.has(`train ${line.seed}`))).toEqual([]);
  for (const { grade, batch, group, sample } of graded) {
    const own = eventsNamed(events, "turn-sampled").filter(
      (turn) => turn.batch === batch && turn.group === group && turn.sample === sample,
    );
    expect(own.length + 1 - grade.episode!.turns.length).toBe(grade.episode!.diverged);
  }
  for (const { metrics } of steps) expect(Math.abs(metrics["optim/kl_sample_train_v1"] ?? 0)).toBeLessThan(1e-6);
});
