// `./whet eval`: Pass@1 and pass@k of a base model or a checkpoint, with intervals; two of them compared problem by problem.

import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { z } from "zod";
import { countOf } from "../core/count.ts";
import { ConfigError } from "../core/errors.ts";
import { writeFileAtomic } from "../core/files.ts";
import { readJsonLines, toJsonLine } from "../core/jsonl.ts";
import { whet } from "../core/program.ts";
import { describeSummary } from "../data/index.ts";
import type { Renderer } from "../renderers/index.ts";
import { presetConfig, TrainConfig } from "../rl/config.ts";
import { compareEvaluations, type Evaluation, evaluate, evaluationSeed, type Rate } from "../rl/evaluate.ts";
import { judgeByTests } from "../rl/judge.ts";
import type { Policy } from "../rl/policies.ts";
import { sampleAndJudge } from "../rl/rollout.ts";
import { evaluationTasks, type Task } from "../rl/tasks.ts";
import { readRunConfig } from "../runs/directory.ts";
import { ProblemOutcome } from "../runs/events.ts";
import { type Logger, redact } from "../runs/log.ts";
import { RunView } from "../runs/view.ts";
import { borrowCheckpoint } from "./borrow-checkpoint.ts";
import type { Command } from "./command.ts";
import { type EngineConnection, engineFiles, engineKind, type GraderConnection, presetFor } from "./connect.ts";
import { interruptible } from "./interrupt.ts";
import { describeOptions, parseArguments, refuseWords } from "./options.ts";
import { Progress } from "./progress.ts";
import { Workbench } from "./workbench.ts";

const EvalOptions = TrainConfig.pick({
  preset: true,
  model_name: true,
  renderer_name: true,
  thinking: true,
  tokenizer: true,
  base_url: true,
  test_data: true,
  max_tests_bytes: true,
  blocked_ids: true,
  system_role: true,
  context_window: true,
  min_generation: true,
  max_tokens: true,
  eval_max_tokens: true,
  eval_max_problems: true,
  eval_num_samples: true,
  eval_temperature: true,
  reward_timeout: true,
  comparator: true,
  max_tests: true,
  sandbox_url: true,
  sandbox_max_concurrency: true,
  sandbox_python: true,
  sandbox_packages: true,
  sandbox_memory_mb: true,
  seed: true,
}).extend({
  run: z
    .string()
    .default("")
    .describe("run directory: its settings, and its last checkpoint unless checkpoint= names one"),
  checkpoint: z
    .string()
    .default("")
    .describe("tinker:// path of sampler weights, a checkpoint's name in run=, or base"),
  compare: z
    .string()
    .default("")
    .describe("a second one to compare with, in the same forms; or a file written by out="),
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
  help: () =>
    [
      `Usage: ${whet} eval [key=value …]`,
      "",
      "Samples and grades the test problems. The table goes to stdout. Without settings: the bundled model. Defaults shown are those of",
      "preset=deepcoder; with run= they are the run's own.",
      "",
      describeOptions(EvalOptions),
    ].join("\n"),
  async run(args) {
    const { options, given, words } = parseArguments(EvalOptions, args);
    refuseWords(words, `${whet} eval`);
    const settings = await resolveSettings(options, given);
    return interruptible((signal) => evaluateAll(settings, signal));
  },
};

/** Preset, then the run's own settings, then what was given. */
async function resolveSettings(options: EvalOptions, given: ReadonlySet<string>): Promise<EvalOptions & TrainConfig> {
  const recorded = options.run === "" ? undefined : readRunConfig(options.run);
  if (options.run !== "" && !recorded)
    throw new ConfigError(
      "config/no-run",
      `run=${options.run} holds no run (no readable config.json). Name a run directory.`,
    );
  const preset = given.has("preset")
    ? options.preset
    : recorded
      ? TrainConfig.shape.preset.parse(recorded["preset"])
      : await presetFor(options.base_url);
  const known = Object.fromEntries(Object.entries(recorded ?? {}).filter(([key]) => key in TrainConfig.shape));
  const chosen = Object.fromEntries(Object.entries(options).filter(([key]) => given.has(key)));
  const { run, checkpoint, compare, out } = options;
  return { ...presetConfig(preset), ...known, ...chosen, run, checkpoint, compare, out };
}

type Settings = EvalOptions & TrainConfig;

/** Weights to measure: a tinker:// path, or undefined for the base model. */
interface Source {
  label: string;
  path: string | undefined;
}

async function evaluateAll(settings: Settings, signal: AbortSignal): Promise<number> {
  // Both are found before anything is started.
  const sources = [findSource(settings, settings.checkpoint)];
  const comparedFile = settings.compare.endsWith(".jsonl") ? readOutcomes(settings.compare) : undefined;
  if (settings.compare !== "" && !comparedFile) sources.push(findSource(settings, settings.compare));

  // The embedded engine gets a folder of its own with the checkpoints it needs: the run may be live, and may be another one.
  const scratch = mkdtempSync(join(tmpdir(), "whet-eval-"));
  const files = engineFiles(scratch);
  const bench = new Workbench(settings, { engineFiles: files, logger, signal });
  try {
    if (engineKind(settings.base_url) === "embedded")
      for (const { path } of sources) if (path !== undefined) borrowCheckpoint(path, settings.run, files.stateDir);
    const grading = await bench.grading();
    logger.info(`sandbox  ${grading.description.summary}`);
    const engine = await bench.engine();
    logger.info(`engine   ${engine.description}`);
    bench.model(engine);
    const renderer = await bench.renderer();
    const dataset = await bench.problems("test", renderer);
    logger.info(`test     ${describeSummary(dataset.summary)}`);
    const tasks = evaluationTasks(dataset, bench.config, renderer);

    const results: Evaluation[] = [];
    for (const source of sources)
      results.push(await measure(source, tasks, settings, { engine, grading, renderer, signal }));
    if (settings.out !== "") writeFileAtomic(settings.out, results[0]!.outcomes.map(toJsonLine).join(""));
    const other = comparedFile ?? results[1]?.outcomes;
    if (other) {
      const { problems, before, after, gained, lost, pValue } = compareEvaluations(other, results[0]!.outcomes);
      const test = settings.eval_num_samples > 1 ? "sign test" : "McNemar's exact";
      console.log(
        `compared with ${settings.compare}: ${percent(before)} → ${percent(after)} on ${countOf(problems, "problem")}; ` +
          `${gained} gained, ${lost} lost, ${test} p = ${pValue.toPrecision(2)}`,
      );
    }
    return 0;
  } finally {
    await bench.close();
    rmSync(scratch, { recursive: true, force: true });
  }
}

async function measure(
  { label, path }: Source,
  tasks: readonly Task[],
  settings: Settings,
  {
    engine,
    grading,
    renderer,
    signal,
  }: { engine: EngineConnection; grading: GraderConnection; renderer: Renderer; signal: AbortSignal },
): Promise<Evaluation> {
  const sampler = await engine.service.createSamplingClient({
    ...(path === undefined ? { baseModel: settings.model_name } : { modelPath: path }),
    signal,
  });
  const policy: Policy = { version: 0, open: () => Promise.resolve({ sampler, version: 0 }) };
  const progress = new Progress({ label, total: tasks.length * settings.eval_num_samples });
  let graded = 0;
  try {
    const rollOut = sampleAndJudge({
      renderer,
      judge: judgeByTests({
        grader: grading.grader,
        patienceMs: 60_000,
        onWaiting: (message) => progress.print(message),
      }),
      record: async (event) => {
        if (event.type === "graded") progress.update(++graded);
      },
      samples: settings.eval_num_samples,
      temperature: settings.eval_temperature,
      seedFor: (_, task) => (engine.kind === "hosted" ? undefined : evaluationSeed(settings.seed, task)),
    });
    const evaluation = await evaluate(tasks, policy, rollOut, signal);
    progress.end();
    print(label, evaluation);
    return evaluation;
  } finally {
    progress.end();
  }
}

/** What a word names: base, a tinker:// path, or a checkpoint of the run (the newest of that name); "" is the run's last, or base. */
function findSource(settings: Settings, which: string): Source {
  if (which === "base" || (which === "" && settings.run === "")) return { label: settings.model_name, path: undefined };
  if (which.startsWith("tinker://")) return { label: which, path: which };
  const records =
    settings.run === ""
      ? []
      : RunView.read(settings.run).checkpoints.filter(({ sampler_path: path }) => path !== undefined);
  const record = which === "" ? records.at(-1) : records.findLast(({ name }) => name === which);
  if (!record) {
    const names = [...new Set(records.map(({ name }) => name))].join(", ") || "none";
    throw new ConfigError(
      "config/no-checkpoint",
      `There is no checkpoint "${which || "(last)"}" in run=${settings.run || "(none)"}; it has: ${names}. Name one of them, a tinker:// path, or base.`,
    );
  }
  return { label: `checkpoint ${record.name}`, path: record.sampler_path! };
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
