// Training runs of the bundled model that are stopped, measured and continued: every point of the curve is the same run, and nothing
// is evaluated while the clock of a step runs. What resume guarantees makes this exact: the run is that of one command.
import { execFile } from "node:child_process";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { ConfigError } from "../src/core/errors.ts";
import { summarizeOutcomes } from "../src/rl/evaluate.ts";
import { readJournal } from "../src/runs/read-journal.ts";
import { RunView } from "../src/runs/view.ts";

/** A way to share a step's completions among problems, as keys of `./whet train`. */
export interface Rule {
  name: string;
  keys: readonly string[];
}

const budget = 128;
const uniform = (prompts: number, samples: number): Rule => ({
  name: `uniform ${prompts} × ${samples}`,
  keys: [`batch_size=${prompts * samples}`, `group_size=${prompts}`],
});
const adaptive = (prompts: number, first: number): Rule => ({
  name: `adaptive ${prompts} × ${first}`,
  keys: [`batch_size=${budget}`, `group_size=${prompts}`, "groups=adaptive", `first_samples=${first}`],
});

/** By the word that names them on the command line. */
export const rules: Readonly<Record<string, Rule>> = {
  "8x16": uniform(8, 16),
  "16x8": uniform(16, 8),
  "32x4": uniform(32, 4),
  adaptive: adaptive(28, 4),
};

/** Where a run stands after some steps. */
export interface Point {
  step: number;
  completions: number;
  /** Of training alone: evaluation and start are not in it. */
  seconds: number;
  /** Greedy Pass@1. */
  rate: number;
  parts: Readonly<Record<string, number>>;
}

/** The named rules, or all. */
export function rulesNamed(names: readonly string[]): string[] {
  const unknown = names.find((name) => !Object.hasOwn(rules, name));
  if (unknown === undefined) return names.length > 0 ? [...names] : Object.keys(rules);
  throw new ConfigError(
    "config/unknown-rule",
    `There is no rule "${unknown}" to measure. There are: ${Object.keys(rules).join(", ")}.`,
  );
}

/** Trains on to `steps` and measures there, with nothing beside training. */
export async function trainTo(path: string, steps: number, keys: readonly string[]): Promise<Point> {
  return (await runTo(path, [steps], 1_000_000, keys))[0]!;
}

/** Trains to the last of `steps` and measures at each of them, beside training: its seconds mean nothing. */
export function train(path: string, steps: readonly number[], keys: readonly string[]): Promise<Point[]> {
  return runTo(path, steps, steps[0]!, keys);
}

async function runTo(path: string, steps: readonly number[], every: number, keys: readonly string[]): Promise<Point[]> {
  const settings = [`log_path=${path}`, `max_steps=${steps.at(-1)}`, `eval_every=${every}`, "eval_max_problems=0"];
  const quiet = ["save_every=0", "tensorboard=false", "dashboard=false"];
  const whet = fileURLToPath(new URL("../whet", import.meta.url));
  await promisify(execFile)(whet, ["train", "preset=nano", ...settings, ...quiet, ...keys], { maxBuffer: 1 << 26 });
  const view = RunView.read(path);
  return steps.map((step) => {
    const { pass1, bySource } = summarizeOutcomes(view.evaluations.get(step) ?? []);
    const done = view.records.filter((record) => Number(record.step) < step);
    return {
      step,
      completions: completionsOf(path, step),
      seconds: done.reduce((sum, record) => sum + (record["time/total"] ?? 0), 0),
      rate: pass1?.rate ?? Number.NaN,
      parts: Object.fromEntries(Object.entries(bySource).map(([name, { rate }]) => [name, rate])),
    };
  });
}

/** Completions drawn for the first `steps` steps. */
function completionsOf(path: string, steps: number): number {
  let count = 0;
  for (const { event } of readJournal(path))
    if (event.type === "group-sampled" && event.phase === "train" && event.batch < steps) count += event.samples.length;
  return count;
}
