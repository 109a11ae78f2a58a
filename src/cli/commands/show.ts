// `./whet show`: a run as text, from the whole down to one program and the test it failed on. Reads the journal of a finished run or of
// one that another process writes. Everything that models and data sets wrote is shown as text, never obeyed.
import { z } from "zod";
import { ConfigError } from "../../core/errors.ts";
import { visible, visibleLine } from "../../core/visible.ts";
import { answerLogprobs, type Batch, type BatchGroup, type Phase, readableRun, readBatch } from "../../runs/batch.ts";
import { readRunConfig } from "../../runs/directory.ts";
import { type Problem, problemsOf } from "../../runs/problems.ts";
import type { RunView } from "../../runs/view.ts";
import { loadTokenizer, type Tokenizer } from "../../tokenizer/index.ts";
import { commandOf } from "../command.ts";
import { interruptible } from "../terminal/interrupt.ts";
import { describeSample } from "../text/show-answer.ts";
import { describeBatch, describeGroup, showCommand, wordFor } from "../text/show-batch.ts";
import { describeProblem, describeRun } from "../text/show-run.ts";
import { runKey, runOf } from "../weights/find-run.ts";

const index = z.int().min(0).optional();

const ShowOptions = z.strictObject({
  run: runKey,
  step: index.describe("a step of training, counted from 0: its groups"),
  evaluation: index.describe("an evaluation, named by the steps before it, instead of a step"),
  group: index.describe("a group of that step, counted from 0: its programs"),
  problem: z.string().default("").describe("id of a problem: every attempt over the run; with step=, its group there"),
  sample: index.describe("an answer of that group, counted from 0: its text, its program and the test it failed on"),
  raw: z
    .boolean()
    .default(false)
    .describe("with sample=: the answer as it was sampled, reasoning and control tokens included"),
});
type ShowOptions = z.output<typeof ShowOptions>;

export const command = commandOf(ShowOptions, {
  usage: ["show [RUN] [step=N [group=N or problem=ID [sample=N]]]", "show [RUN] problem=ID"],
  about: [
    "Shows a run, one of its steps, a group, or an answer with the test it failed on; also while it is being written.",
  ],
  words: "run",
  async run({ options }) {
    const run = runOf(options.run);
    return interruptible(async (signal) => {
      const text = await describe({ ...options, run }, signal);
      process.stdout.write(`${visible(text)}\n`);
      return 0;
    });
  },
});

async function describe(options: ShowOptions, signal: AbortSignal): Promise<string> {
  const { run, step, evaluation, group, problem, sample } = options;
  if (step !== undefined && evaluation !== undefined)
    throw new ConfigError(
      "config/conflict",
      `step=${step} and evaluation=${evaluation} name two things. Leave one of them out.`,
    );
  const readable = readableRun(run);
  const { view } = readable;
  const batch = step ?? evaluation;
  if (batch === undefined) {
    if (sample !== undefined || group !== undefined)
      throw new ConfigError(
        "config/incomplete",
        `${sample === undefined ? `group=${group}` : `sample=${sample}`} is one of a step. Name the step too: step=N, and problem=ID or group=N for a sample.`,
      );
    if (problem === "") return describeRun(run, readable);
    return describeProblem(run, readable, findProblem(run, view, problem), await tokenizerOf(run, signal));
  }
  const phase = step === undefined ? "eval" : "train";
  const found = readBatch(readable, phase, batch);
  if (found.groups.length === 0) throw notThere(run, view, phase, batch);
  if (group === undefined && problem === "") {
    if (sample !== undefined)
      throw new ConfigError(
        "config/incomplete",
        `sample=${sample} is one of a group. Name the group too: problem=ID or group=N; ${showCommand(run, `${wordFor(phase)}=${batch}`)} lists them.`,
      );
    return describeBatch(run, view, found);
  }
  const chosen = findGroup(run, found, options);
  if (sample === undefined) return describeGroup(run, found, chosen);
  if (sample >= chosen.sampled.samples.length)
    throw new ConfigError(
      "config/not-in-run",
      `sample=${sample} is not there: the group has samples 0 to ${chosen.sampled.samples.length - 1}.`,
    );
  const tokenizer = await tokenizerOf(run, signal);
  const logprobs = answerLogprobs(readable, chosen, sample);
  return describeSample(run, found, chosen, sample, { logprobs, tokenizer, raw: options.raw });
}

function notThere(run: string, view: RunView, phase: Phase, batch: number): ConfigError {
  const word = wordFor(phase);
  const known = ranges([...(phase === "train" ? view.updates : view.evaluations).keys()].sort((a, b) => a - b));
  return new ConfigError(
    "config/not-in-run",
    `${word}=${batch} is not in ${run}. ${known === "" ? `It has no ${word} yet.` : `It has ${word} ${known}.`}`,
  );
}

/** `0 to 4, 7`. */
export function ranges(numbers: readonly number[]): string {
  const parts: [number, number][] = [];
  for (const number of numbers) {
    const last = parts.at(-1);
    if (last && number === last[1] + 1) last[1] = number;
    else parts.push([number, number]);
  }
  return parts.map(([from, to]) => (from === to ? `${from}` : `${from} to ${to}`)).join(", ");
}

function findProblem(run: string, view: RunView, id: string): Problem {
  const problems = problemsOf(view);
  const found = problems.get(id);
  if (found) return found;
  const all = [...problems.keys()];
  const near = all.filter((known) => known.includes(id));
  const shown = (near.length > 0 ? near : all).slice(0, 5).map((known) => visibleLine(known, 80));
  throw new ConfigError(
    "config/not-in-run",
    `problem=${visibleLine(id, 80)} was not met in ${run}. It has ${all.length} problems${shown.length > 0 ? `, ${near.length > 0 ? "of which these fit" : "such as"}: ${shown.join(", ")}` : ""}.`,
  );
}

function findGroup(run: string, { phase, batch, groups }: Batch, options: ShowOptions): BatchGroup {
  const where = `${wordFor(phase)}=${batch}`;
  const byNumber = groups.filter(({ sampled }) => options.group === undefined || sampled.group === options.group);
  const fitting = byNumber.filter(({ sampled }) => options.problem === "" || sampled.problem === options.problem);
  if (fitting.length === 1 || (fitting.length > 1 && options.sample === undefined)) return fitting[0]!;
  if (fitting.length > 1)
    throw new ConfigError(
      "config/incomplete",
      `${where} has the problem ${fitting.length} times. Name the group: group=${fitting.map(({ sampled }) => sampled.group).join(" or group=")}.`,
    );
  const asked = [
    ...(options.group === undefined ? [] : [`group=${options.group}`]),
    ...(options.problem === "" ? [] : [`problem=${visibleLine(options.problem, 80)}`]),
  ].join(" ");
  throw new ConfigError(
    "config/not-in-run",
    `${asked} is not in ${where} of ${run}. It has group ${ranges(groups.map(({ sampled }) => sampled.group))}: ` +
      `${groups
        .slice(0, 8)
        .map(({ sampled }) => visibleLine(sampled.problem, 60))
        .join(", ")}${groups.length > 8 ? " …" : ""}.`,
  );
}

/** The run's tokenizer, or why there is none: only then is something left out. */
async function tokenizerOf(run: string, signal: AbortSignal): Promise<Tokenizer | string> {
  const config = readRunConfig(run) ?? {};
  const name = String(config["tokenizer"] || (config["model_name"] ?? ""));
  try {
    return await loadTokenizer(name, { signal: AbortSignal.any([signal, AbortSignal.timeout(10_000)]) });
  } catch {
    signal.throwIfAborted();
    return `the tokenizer ${visibleLine(name, 80)} is not on this machine`;
  }
}
