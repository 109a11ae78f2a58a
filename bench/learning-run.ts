// Training runs of the bundled model that are measured afterwards, at the checkpoints they left: nothing is evaluated while the clock of a
// step runs. What resume guarantees makes a run that goes on the same as one that was never interrupted.
import { execFile } from "node:child_process";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { ConfigError } from "../src/core/errors.ts";
import { summarizeOutcomes } from "../src/rl/evaluate.ts";
import type { ProblemOutcome } from "../src/runs/events.ts";
import { readJournal } from "../src/runs/read-journal.ts";
import { RunView } from "../src/runs/view.ts";

/** A way to share a step's completions among problems, as keys of `./whet train`. */
export interface Rule {
  name: string;
  /** Of a step, and of each problem. */
  prompts: number;
  samples: number;
  keys: readonly string[];
}

const uniform = (prompts: number, samples: number): Rule => ({
  name: `uniform ${prompts} × ${samples}`,
  prompts,
  samples,
  keys: [`prompts_per_step=${prompts}`, `completions_per_prompt=${samples}`],
});
const filled = (prompts: number, samples: number): Rule => {
  const { name, keys, ...rule } = uniform(prompts, samples);
  return { ...rule, name: `${name}, filled`, keys: [...keys, "fill_batch=true"] };
};

/** By the word that names them on the command line. */
export const rules: Readonly<Record<string, Rule>> = {
  "8x16": uniform(8, 16),
  "8x4": uniform(8, 4),
  "8x8": uniform(8, 8),
  "16x8": uniform(16, 8),
  "32x4": uniform(32, 4),
  "8x8-filled": filled(8, 8),
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

/** The starter's test problems without the families that nothing teaches. */
export function knownTests(folder: string): string {
  const path = join(folder, "test.jsonl");
  const all = readFileSync(fileURLToPath(new URL("../data/starter/test.jsonl", import.meta.url)), "utf8");
  writeFileSync(path, all.replaceAll(/^.*"part": "unseen".*\n/gm, ""));
  return path;
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

/** Trains on to `steps` without evaluating, and keeps a checkpoint every `every` steps. */
export async function trainOn(path: string, steps: number, every: number, keys: readonly string[]): Promise<void> {
  await whet("train", ...settingsOf(path, steps, 0), `save_every=${every}`, ...keys);
}

/** A run that was trained on to `end`, measured after `step` steps. */
export async function measureAt(path: string, step: number, end: number): Promise<Point> {
  const out = join(path, "measured.jsonl");
  const checkpoint = step === end ? "final" : String(step).padStart(6, "0");
  await whet("eval", `run=${path}`, `checkpoint=${checkpoint}`, `out=${out}`);
  const lines = readFileSync(out, "utf8").trim().split("\n");
  return pointAt(
    path,
    step,
    lines.map((line) => JSON.parse(line) as ProblemOutcome),
  );
}

/** Trains to the last of `steps` and measures at each of them, beside training: its seconds mean nothing. */
export async function train(path: string, steps: readonly number[], keys: readonly string[]): Promise<Point[]> {
  await whet("train", ...settingsOf(path, steps.at(-1)!, steps[0] || 1_000_000), "save_every=0", ...keys);
  const { evaluations } = RunView.read(path);
  return steps.map((step) => pointAt(path, step, evaluations.get(step)?.outcomes ?? []));
}

const settingsOf = (path: string, steps: number, every: number) => [
  "preset=nano",
  `log_path=${path}`,
  `max_steps=${steps}`,
  `eval_every=${every}`,
  "eval_max_problems=0",
  "tensorboard=false",
  "dashboard=false",
];

/** Runs a command of this checkout; rejects when it fails. */
export async function whet(...words: readonly string[]): Promise<void> {
  await promisify(execFile)(fileURLToPath(new URL("../whet", import.meta.url)), words, { maxBuffer: 1 << 26 });
}

function pointAt(path: string, step: number, outcomes: ProblemOutcome[]): Point {
  const { pass1, bySource } = summarizeOutcomes(outcomes);
  const done = RunView.read(path).records.filter((record) => Number(record.step) < step);
  return {
    step,
    completions: completionsOf(path, step),
    seconds: done.reduce((sum, record) => sum + (record["time/total"] ?? 0), 0),
    rate: pass1?.rate ?? Number.NaN,
    parts: Object.fromEntries(Object.entries(bySource).map(([name, { rate }]) => [name, rate])),
  };
}

/** Completions drawn for the first `steps` steps. */
function completionsOf(path: string, steps: number): number {
  let count = 0;
  for (const { event } of readJournal(path))
    if (event.type === "group-sampled" && event.phase === "train" && event.batch < steps) count += event.samples.length;
  return count;
}
