// `./whet eval`: Pass@1 and pass@k of a base model or a checkpoint, with intervals; two of them compared problem by problem.

import { z } from "zod";
import { countOf, percent } from "../../core/count.ts";
import { ConfigError } from "../../core/errors.ts";
import { writeFileAtomic } from "../../core/files.ts";
import { readJsonLines, toJsonLine } from "../../core/jsonl.ts";
import { briefPatience } from "../../core/outage.ts";
import { whet } from "../../core/program.ts";
import { visible } from "../../core/visible.ts";
import { TrainConfig } from "../../rl/config.ts";
import { codeEnvironment } from "../../rl/environment/code.ts";
import { compareEvaluations, type Evaluation, evaluate } from "../../rl/evaluate.ts";
import { policyOf } from "../../rl/policies.ts";
import { drawsOf, type RollOuts } from "../../rl/rollout.ts";
import type { Task } from "../../rl/tasks.ts";
import { weighRewards } from "../../rl/weighted.ts";
import { ProblemOutcome } from "../../runs/events.ts";
import { type Rate, rateText } from "../../runs/rates.ts";
import type { ParsedArguments } from "../arguments/options.ts";
import { askedRun, askedRunKey, askingKeys, checkpointKey, settingsOfRun } from "../arguments/run-settings.ts";
import { describeRunOptions } from "../arguments/shown-defaults.ts";
import { commandOf } from "../command.ts";
import { evaluateSamples } from "../problems/suite-samples.ts";
import {
  loadNamed,
  type OpenSuite,
  openSuite,
  suiteRollOuts,
  suiteSettings,
  suiteTasks,
} from "../problems/suite-work.ts";
import { interruptible } from "../terminal/interrupt.ts";
import { stderrLogger as logger } from "../terminal/loggers.ts";
import { type Progress, withProgress } from "../terminal/progress.ts";
import { type Asked, planAsking, withWeights } from "../weights/asked-weights.ts";
import { sayRun } from "../weights/find-run.ts";

const EvalOptions = TrainConfig.pick({
  ...askingKeys,
  max_tests_bytes: true,
  blocked_ids: true,
  min_generation: true,
  eval_max_tokens: true,
  eval_max_problems: true,
  eval_num_samples: true,
  eval_temperature: true,
  max_tests: true,
  sandbox_max_concurrency: true,
}).extend({
  run: askedRunKey,
  checkpoint: checkpointKey,
  compare: z
    .string()
    .default("")
    .describe("a second one to compare with, in the same forms, problem by problem; or a file written by out="),
  out: z.string().default("").describe("file for one JSON line per problem; with samples=, per sample"),
  suite: z
    .string()
    .default("")
    .describe(
      "instead of the run's test problems: humaneval, humaneval+, mbpp, mbpp+, bigcodebench, livecodebench:2025-01..2025-05, or a file of such rows",
    ),
  samples: z
    .string()
    .default("")
    .describe(
      'suite=: judge these instead of a model: JSON lines with task_id and completion or solution, "-" for stdin',
    ),
});
type EvalOptions = z.output<typeof EvalOptions>;

export const command = commandOf(EvalOptions, {
  usage: "eval [RUN] [key=value …]",
  about: [
    "Samples and grades the test problems, with the run's settings and its last checkpoint. The table goes to stdout. Without a run: the",
    "base model.",
  ],
  words: "run",
  describeKeys: (args, parse) => describeRunOptions(EvalOptions, args, parse, runFor),
  async run(parsed) {
    const { options, given } = parsed;
    const run = runFor(parsed);
    if (!given.has("run") && run !== "") sayRun(run);
    return interruptible((signal) => evaluateAll({ ...options, run }, given, signal));
  },
});

/** With samples= no model is asked. */
const runFor = ({ options, given }: ParsedArguments<typeof EvalOptions>) =>
  options.samples === "" ? askedRun(options.run, [options.checkpoint], given) : "";

async function evaluateAll(options: EvalOptions, given: ReadonlySet<string>, signal: AbortSignal): Promise<number> {
  const { suite: name, samples } = options;
  if (samples !== "" && name === "")
    throw new ConfigError("config/conflict", "samples= are judged by a suite. Name it: suite=humaneval, or another.");
  // All are found before anything is started, and opened before anything is sampled.
  let config = await settingsOfRun(options.run, options, given);
  const loaded = name === "" ? undefined : await loadNamed(name, config, signal);
  if (loaded) config = suiteSettings(loaded, config, given);
  else if (name !== "" && samples !== "")
    throw new ConfigError("config/conflict", `${name} has plain problems: ${whet} grade judges programs for those.`);
  // A file of problems as training reads them.
  else if (name !== "") config = { ...config, test_data: name };
  const plan = (which: string) => planAsking(which, options.run, config, options, given);
  const plans = samples === "" ? [await plan(options.checkpoint)] : [];
  const comparedFile = options.compare.endsWith(".jsonl") ? readOutcomes(options.compare) : undefined;
  if (options.compare !== "" && !comparedFile) plans.push(await plan(options.compare));

  const suite = loaded && (await openSuite({ name, loaded, config, samples, logger, signal }));
  try {
    if (suite) console.log(suite.notes.join("\n"));
    if (suite && samples !== "") return await evaluateSamples(suite, options, print, signal);
    return await withWeights(plans, logger, signal, async (all) => {
      const sides: Side[] = [];
      for (const asked of all) sides.push(await openSide(asked, suite));
      if (sides[0]!.summary !== undefined) logger.info(`test     ${sides[0]!.summary}`);
      keepShared(sides, comparedFile);
      const results: Evaluation[] = [];
      for (const side of sides) results.push(await measure(side, config, loaded?.form.ks, signal));
      if (options.out !== "") writeFileAtomic(options.out, results[0]!.outcomes.map(toJsonLine).join(""));
      const other = comparedFile ?? results[1]?.outcomes;
      if (other) printComparison(options.compare, other, results[0]!.outcomes, config);
      return 0;
    });
  } finally {
    await suite?.close();
  }
}

/** Weights with the test problems that they can answer. */
interface Side extends Asked {
  tasks: Task[];
  rollOuts: RollOuts;
  /** What was read; undefined for a suite, whose notes say it. */
  summary?: string | undefined;
  /** Shows an outage, once there is progress. */
  progress?: Progress;
}

async function openSide(asked: Asked, suite: OpenSuite | undefined): Promise<Side> {
  const { bench, renderer } = asked;
  const print = (line: string) => side.progress?.print(line);
  const parts = suite
    ? {
        tasks: suiteTasks(suite, renderer, bench.config.context_window, logger),
        rollOuts: suiteRollOuts(suite, renderer, print),
      }
    : await dataOf(asked, print);
  const side: Side = { ...asked, ...parts };
  return side;
}

/** The run's own test problems. */
async function dataOf({ bench, renderer }: Asked, print: (line: string) => void) {
  const work = await bench.work(renderer, { splits: ["test"] });
  const code = bench.code(briefPatience(print));
  await bench.programs(work, code);
  const { summary, test: tasks } = work;
  return { tasks, rollOuts: work.rollOuts(renderer, bench.config, code), summary: summary.test };
}

/** Keeps of each side the problems that all can answer; `known` are outcomes of an earlier evaluation to compare with. */
function keepShared(sides: readonly Side[], known: readonly ProblemOutcome[] | undefined): void {
  const [first, ...others] = [...sides.map(({ tasks }) => tasks), ...(known ? [known] : [])].map(
    (list) => new Set(list.map(({ id }) => id)),
  );
  const shared = new Set([...first!].filter((id) => others.every((other) => other.has(id))));
  const largest = Math.max(...sides.map(({ tasks }) => tasks.length));
  if (shared.size === 0)
    throw new ConfigError(
      "config/other-problems",
      known
        ? `None of the ${largest} test problems is among the ${known.length} of the file to compare with. Evaluate on the same test_data and seed.`
        : "There is no test problem that every side can answer. Choose other test_data, or another context_window.",
    );
  if (shared.size < largest)
    logger.warn(`only ${shared.size} of ${largest} test problems can be compared: the others are not in both`);
  const models = [...new Set(sides.map(({ bench }) => bench.config.model_name))];
  if (models.length > 1) logger.warn(`two base models are compared: ${models.join(" and ")}`);
  for (const side of sides) side.tasks = side.tasks.filter(({ id }) => shared.has(id));
}

function printComparison(
  name: string,
  earlier: readonly ProblemOutcome[],
  later: readonly ProblemOutcome[],
  { eval_num_samples: samples }: TrainConfig,
): void {
  const { problems, before, after, gained, lost, pValue } = compareEvaluations(earlier, later);
  const test = samples > 1 ? "sign test" : "McNemar's exact";
  console.log(
    `compared with ${name}: ${percent(before)} → ${percent(after)} on ${countOf(problems, "problem")}; ` +
      `${gained} gained, ${lost} lost, ${test} p = ${pValue.toPrecision(2)}`,
  );
  const rates = new Map(earlier.map((outcome) => [outcome.id, rateOf(outcome)]));
  for (const [word, sign] of [
    ["gained", 1],
    ["lost", -1],
  ] as const) {
    const ids = later.flatMap((outcome) =>
      Math.sign(rateOf(outcome) - (rates.get(outcome.id) ?? Number.NaN)) === sign ? [outcome.id] : [],
    );
    if (ids.length > 0)
      console.log(
        `  ${word.padEnd(6)} ${visible(ids.slice(0, 8).join(", "))}${ids.length > 8 ? `, and ${ids.length - 8} more` : ""}`,
      );
  }
}

const rateOf = ({ passed, samples }: ProblemOutcome) => (samples === 0 ? Number.NaN : passed / samples);

async function measure(
  side: Side,
  config: TrainConfig,
  ks: readonly number[] | undefined,
  signal: AbortSignal,
): Promise<Evaluation> {
  const { label, sampler, engine, tasks, rollOuts } = side;
  const policy = policyOf(sampler);
  const isOwn = config.env !== "" && !codeEnvironment(config.env);
  const total = tasks.length * config.eval_num_samples;
  const evaluation = await withProgress({ label, total }, (progress) => {
    side.progress = progress;
    let graded = 0;
    const rollOut = rollOuts({
      record: async (event) => {
        if (event.type === "graded") progress.update(++graded);
      },
      ...drawsOf("eval", config, engine.kind !== "hosted"),
      shape: (grade, tokens) => weighRewards(grade, tokens, config, isOwn ? "environment" : "tests"),
    });
    return evaluate(tasks, policy, rollOut, signal, ks);
  });
  print(label, evaluation);
  return evaluation;
}

/** The outcomes that an earlier `out=` wrote. */
function readOutcomes(file: string): ProblemOutcome[] {
  const bad = (line: string, number: number): never => {
    throw new ConfigError(
      "config/no-file",
      `compare=${file}, line ${number} is no outcome of a problem: ${line.slice(0, 80)}. Name a file that ${whet} eval out= wrote.`,
    );
  };
  const outcomes = readJsonLines(file, bad).map((value, index) => {
    const outcome = ProblemOutcome.safeParse(value);
    return outcome.success ? outcome.data : bad(JSON.stringify(value), index + 1);
  });
  return outcomes.length > 0 ? outcomes : bad("(nothing)", 1);
}

const interval = (rate: Rate) =>
  `${rateText(rate).replace(/^\S+/, (share) => share.padStart(6))}  ${countOf(rate.problems, "problem")}`;

function print(label: string, evaluation: Evaluation): void {
  const rows: [string, string][] = [
    ["Pass@1", evaluation.pass1 ? interval(evaluation.pass1) : "nothing could be graded"],
  ];
  for (const [source, rate] of Object.entries(evaluation.bySource)) rows.push([`  ${source}`, interval(rate)]);
  for (const [k, value] of Object.entries(evaluation.passAtK))
    if (k !== "1") rows.push([`pass@${k}`, percent(value).padStart(6)]);
  rows.push(["format rate", percent(evaluation.formatRate).padStart(6)]);
  rows.push(["cut at the token limit", percent(evaluation.truncatedRate).padStart(6)]);
  for (const [name, value] of Object.entries(evaluation.figures)) rows.push([name, value.toFixed(3).padStart(6)]);
  const failures = Object.entries(evaluation.statuses).filter(([status]) => status !== "pass");
  for (const [status, count] of failures.sort(([, a], [, b]) => b - a))
    rows.push([`  ${status}`, String(count).padStart(6)]);
  if (evaluation.ungradedProblems > 0)
    rows.push(["not graded, not counted", String(evaluation.ungradedProblems).padStart(6)]);
  console.log([label, ...rows.map(([name, value]) => `  ${name.padEnd(26)} ${value}`)].join("\n"));
}
