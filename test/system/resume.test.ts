// `kill -9` at random moments, each followed by the same command, at every lag: nothing is lost, nothing that was written down is
// sampled, graded or applied again, and the adapter is in the end bit for bit that of a run nobody touched; with tail=carry, where
// no run is another's twin, every model is one of the journal's updates. One lag here, and carry.test.ts; every lag with
// WHET_KILLS=200 ./whet test test/system/resume
import { existsSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { Random } from "../../src/core/random.ts";
import { foldersInMemory } from "../support/folders.ts";
import { sharedEngine } from "../support/shared-engine.ts";
import { runWhet } from "../support/whet.ts";
import {
  expectAccounts,
  expectAllTrained,
  finalAdapter,
  type Moment,
  mergedMetrics,
  metricsOf,
  momentOf,
  train,
} from "./killing.ts";

const newFolder = foldersInMemory();
const wanted = process.env["WHET_KILLS"];
const lags = wanted ? [0, 1, 2] : [2];
const kills = Math.ceil(Number(wanted ?? lags.length) / lags.length);
const steps = wanted ? 6 : 4;
const settings = [
  `max_steps=${steps}`,
  `save_every=${steps / 2}`,
  `eval_every=${steps / 2}`,
  "eval_max_problems=3",
  "prompts_per_step=2",
  "completions_per_prompt=4",
  "max_tokens=64",
  "tensorboard=false",
];

const commandAt = (lag: number) => (path: string) => [`log_path=${path}`, `max_lag=${lag}`, ...settings];
/** By lag: a run that nobody touched, and how long it took. */
const untouched = new Map<number, Promise<{ calm: string; wholeMs: number }>>();
const calmRun = (lag: number) => {
  const run = async () => {
    const calm = join(newFolder(), "calm");
    const started = performance.now();
    expect(await train(commandAt(lag)(calm))).toBe(0);
    return { calm, wholeMs: performance.now() - started };
  };
  const known = untouched.get(lag) ?? run();
  untouched.set(lag, known);
  return known;
};

/** Kills runs of a command at random moments and lets them go on; checks what each came to in the end. */
async function killAndGoOn(
  command: (path: string) => string[],
  lag: number,
  wholeMs: number,
  check: (path: string) => void,
): Promise<void> {
  const random = new Random("kills", lag, process.env["WHET_SEED"] ?? 0);
  let killed = 0;
  while (killed < kills) {
    const folder = newFolder();
    const path = join(folder, "troubled");
    const audit = join(folder, "engine.jsonl");
    const env = { WHET_ENGINE_AUDIT: audit, WHET_SANDBOX_AUDIT: join(folder, "programs.jsonl") };
    const moments: Moment[] = [];
    let code: number | null;
    do {
      // Anywhere from before the run began to just before its end.
      const killAfterMs = killed < kills ? 200 + random.float() * wholeMs : undefined;
      code = await train(command(path), { killAfterMs, env });
      if (code === null) {
        killed++;
        moments.push(momentOf(path, audit));
      }
    } while (!existsSync(join(path, "summary.json")));
    // Killed after its last word.
    if (code === null) expect(await train(command(path), { env })).toBe(0);
    check(path);
    expectAccounts(path, audit, moments, env.WHET_SANDBOX_AUDIT);
  }
}

test.each(lags)(
  `max_lag=%i: runs killed ${kills} times in all end exactly like one that was left alone`,
  {
    timeout: 120_000 * (kills + 4),
  },
  async (lag) => {
    const command = commandAt(lag);
    const { calm, wholeMs } = await calmRun(lag);

    await killAndGoOn(command, lag, wholeMs, (path) => {
      expect(metricsOf(path)).toEqual(metricsOf(calm));
      expect(finalAdapter(path)).toBe(finalAdapter(calm));
    });
    expect(metricsOf(calm)).toHaveLength(steps + 1);
  },
);

// Half of four groups is waited for.
const carrying = ["prompts_per_step=4", "tail=carry", "carry_share=0.5", "loss_fn=ppo"];

test.each(wanted ? lags : [])(
  `max_lag=%i tail=carry, in rounds at 2: runs killed ${kills} times in all train on every group once, as the journal says`,
  { timeout: 120_000 * (kills + 4) },
  async (lag) => {
    const rounds = lag === 2;
    const command = (path: string) => [...commandAt(lag)(path), ...carrying, `carry_rounds=${rounds}`];
    const started = performance.now();
    expect(await train(command(join(newFolder(), "calm")))).toBe(0);
    await killAndGoOn(command, lag, performance.now() - started, (path) => expectAllTrained(path, lag, steps, rounds));
  },
);

test("Ctrl-C saves and ends with 130, and the same command goes on from there", async () => {
  const { calm } = await calmRun(2);
  const path = join(newFolder(), "run");
  const { baseUrl, apiKey, stateDir } = await sharedEngine();
  const command = [...commandAt(2)(path), `base_url=${baseUrl}`];
  const env = { TINKER_API_KEY: apiKey };
  let interrupted = false;
  const result = await runWhet(["train", ...command], {
    env,
    onStart: (child) => {
      child.stderr?.on("data", (chunk: Buffer) => {
        if (!interrupted && chunk.toString().includes("step   1")) {
          interrupted = true;
          // The launcher replaces itself by node, so this is the process that trains.
          child.kill("SIGINT");
        }
      });
    },
  });
  expect(result.stderr).toContain("everything is saved");
  expect(result.code).toBe(130);
  expect(await train(command, { env })).toBe(0);
  expect(mergedMetrics(path)).toEqual(mergedMetrics(calm));
  expect(finalAdapter(path, stateDir)).toBe(finalAdapter(calm));
});
