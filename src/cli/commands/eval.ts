// `./whet eval`: Pass@1 and pass@k of a base model or a checkpoint, with intervals; two of them compared problem by problem.

import { z } from "zod";
import { countOf } from "../../core/count.ts";
import { ConfigError } from "../../core/errors.ts";
import { writeFileAtomic } from "../../core/files.ts";
import { readJsonLines, toJsonLine } from "../../core/jsonl.ts";
import { describeOutage } from "../../core/outage.ts";
import { whet } from "../../core/program.ts";
import { visible } from "../../core/visible.ts";
import { TrainConfig } from "../../rl/config.ts";
import { compareEvaluations, type Evaluation, evaluate, evaluationSeed } from "../../rl/evaluate.ts";
import { judgeByTests } from "../../rl/judge.ts";
import type { Policy } from "../../rl/policies.ts";
import { sampleAndJudge } from "../../rl/rollout.ts";
import { ProblemOutcome } from "../../runs/events.ts";
import { type Logger, redact } from "../../runs/log.ts";
import type { Rate } from "../../runs/rates.ts";
import type { Command } from "../command.ts";
import { type GraderConnection, openGrader } from "../connect.ts";
import { type Side, type SidePlan, Sides } from "../eval-sides.ts";
import { sayRun } from "../find-run.ts";
import { engineOfRun, findWeights } from "../find-weights.ts";
import { interruptible } from "../interrupt.ts";
import { parseArguments, refuseWords } from "../options.ts";
import { Progress } from "../progress.ts";
import { askedRun, askedRunKey, askingKeys, settingsOfRun } from "../run-settings.ts";
import { describeRunOptions } from "../shown-defaults.ts";

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
  checkpoint: z
    .string()
    .default("")
    .describe(
      "a checkpoint's name in the run, a tinker:// path of sampler weights, RUN or RUN/NAME of another run, or base; the last unless named",
    ),
  compare: z
    .string()
    .default("")
    .describe("a second one to compare with, in the same forms, problem by problem; or a file written by out="),
  out: z.string().default("").describe("file for one JSON line per problem"),
});
type EvalOptions = z.output<typeof EvalOptions>;

const logger: Logger = {
  info: (message) => console.error(redact(message)),
  warn: (message) => console.error(redact(`warning: ${message}`)),
  error: (message) => console.error(redact(`error: ${message}`)),
  detail: () => {},
};

export const command: Command = {
  keys: EvalOptions.shape,
  help: (args) =>
    [
      `Usage: ${whet} eval [RUN] [key=value …]`,
      "",
      "Samples and grades the test problems, with the run's settings and its last checkpoint. The table goes to stdout. Without a run: the",
      "base model.",
      "",
      describeRunOptions(EvalOptions, args, runOfWords),
    ].join("\n"),
  async run(args) {
    const { options, given, words } = parseArguments(EvalOptions, args);
    const run = runOfWords(options, given, words);
    if (options.run === "" && run !== "") sayRun(run);
    options.run = run;
    return interruptible((signal) => evaluateAll(options, given, signal));
  },
};

function runOfWords(options: EvalOptions, given: ReadonlySet<string>, words: readonly string[]): string {
  refuseWords(options.run === "" ? words.slice(1) : words, `${whet} eval`);
  return askedRun(options.run || (words[0] ?? ""), [options.checkpoint], given);
}

/** What a second side keeps of its own run: the model and how it is asked. Problems, limits and rules are the first side's. */
const ownKeys = ["model_name", "renderer_name", "thinking", "tokenizer", "base_url", "context_window"] as const;

async function planSide(
  which: string,
  options: EvalOptions,
  given: ReadonlySet<string>,
  first: TrainConfig,
): Promise<SidePlan> {
  const weights = findWeights(which, options.run, first.model_name);
  const baseUrl = given.has("base_url") ? options.base_url : undefined;
  if (weights.run === options.run || weights.run === "")
    return { weights, config: first, engine: engineOfRun(options.run, baseUrl) };
  const own = await settingsOfRun(weights.run, options, given);
  const config = { ...first, ...Object.fromEntries(ownKeys.map((key) => [key, own[key]])) };
  return { weights, config, engine: engineOfRun(weights.run, baseUrl) };
}

async function evaluateAll(options: EvalOptions, given: ReadonlySet<string>, signal: AbortSignal): Promise<number> {
  // Both are found before anything is started, and both are opened before anything is sampled.
  const config = await settingsOfRun(options.run, options, given);
  const plans = [await planSide(options.checkpoint, options, given, config)];
  const comparedFile = options.compare.endsWith(".jsonl") ? readOutcomes(options.compare) : undefined;
  if (options.compare !== "" && !comparedFile) plans.push(await planSide(options.compare, options, given, config));

  const sides = new Sides(logger, signal);
  let grading: GraderConnection | undefined;
  try {
    sides.find(plans);
    grading = await openGrader(config);
    logger.info(`sandbox  ${grading.description.summary}`);
    const opened = await sides.open(plans, comparedFile);
    const results: Evaluation[] = [];
    for (const side of opened) results.push(await measure(side, config, grading, signal));
    if (options.out !== "") writeFileAtomic(options.out, results[0]!.outcomes.map(toJsonLine).join(""));
    const other = comparedFile ?? results[1]?.outcomes;
    if (other) printComparison(options.compare, other, results[0]!.outcomes, config);
    return 0;
  } finally {
    await sides.close();
    await grading?.close();
  }
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
  { label, sampler, renderer, engine, tasks }: Side,
  config: TrainConfig,
  grading: GraderConnection,
  signal: AbortSignal,
): Promise<Evaluation> {
  const policy: Policy = { version: 0, open: () => Promise.resolve({ sampler, version: 0 }) };
  const progress = new Progress({ label, total: tasks.length * config.eval_num_samples });
  let graded = 0;
  try {
    const rollOut = sampleAndJudge({
      renderer,
      judge: judgeByTests({
        grader: grading.grader,
        patienceMs: 60_000,
        onOutage: (news) => news.due && progress.print(describeOutage(news, ", then this ends")),
      }),
      record: async (event) => {
        if (event.type === "graded") progress.update(++graded);
      },
      samples: config.eval_num_samples,
      temperature: config.eval_temperature,
      seedFor: (_, task) => (engine.kind === "hosted" ? undefined : evaluationSeed(config.seed, task)),
    });
    const evaluation = await evaluate(tasks, policy, rollOut, signal);
    progress.end();
    print(label, evaluation);
    return evaluation;
  } finally {
    progress.end();
  }
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

const percent = (value: number) => `${(100 * value).toFixed(1)}%`;
const interval = ({ rate, low, high, problems }: Rate) =>
  `${percent(rate).padStart(6)} [${(100 * low).toFixed(1)}, ${(100 * high).toFixed(1)}]  ${countOf(problems, "problem")}`;

function print(label: string, evaluation: Evaluation): void {
  const rows: [string, string][] = [
    ["Pass@1", evaluation.pass1 ? interval(evaluation.pass1) : "nothing could be graded"],
  ];
  for (const [source, rate] of Object.entries(evaluation.bySource)) rows.push([`  ${source}`, interval(rate)]);
  for (const [k, value] of Object.entries(evaluation.passAtK))
    if (k !== "1") rows.push([`pass@${k}`, percent(value).padStart(6)]);
  rows.push(["format rate", percent(evaluation.formatRate).padStart(6)]);
  rows.push(["cut at the token limit", percent(evaluation.truncatedRate).padStart(6)]);
  const failures = Object.entries(evaluation.statuses).filter(([status]) => status !== "pass");
  for (const [status, count] of failures.sort(([, a], [, b]) => b - a))
    rows.push([`  ${status}`, String(count).padStart(6)]);
  if (evaluation.ungradedProblems > 0)
    rows.push(["not graded, not counted", String(evaluation.ungradedProblems).padStart(6)]);
  console.log([label, ...rows.map(([name, value]) => `  ${name.padEnd(26)} ${value}`)].join("\n"));
}
