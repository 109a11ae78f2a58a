// `./whet eval`: Pass@1 and pass@k of a base model or a checkpoint, with intervals; two of them compared problem by problem.

import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { z } from "zod";
import type { SamplingClient } from "../client/index.ts";
import { ConfigError } from "../core/errors.ts";
import { writeFileAtomic } from "../core/files.ts";
import { readJsonLines, toJsonLine } from "../core/jsonl.ts";
import { whet } from "../core/program.ts";
import { describeSummary } from "../data/index.ts";
import { presetConfig, TrainConfig } from "../rl/config.ts";
import { compareEvaluations, type Evaluation, evaluate, type ProblemOutcome, type Rate } from "../rl/evaluate.ts";
import { evaluationTasks, loadProblems } from "../rl/tasks.ts";
import { readCheckpoints } from "../runs/checkpoints.ts";
import { readRunConfig } from "../runs/directory.ts";
import { type Logger, redact } from "../runs/log.ts";
import { StepTimer } from "../runs/timing.ts";
import type { Command } from "./command.ts";
import {
  checkModel,
  connectEngine,
  type EngineConnection,
  engineFiles,
  openGrader,
  openRenderer,
  presetFor,
} from "./connect.ts";
import { interruptible } from "./interrupt.ts";
import { describeOptions, parseArguments } from "./options.ts";
import { Progress } from "./progress.ts";

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
  eval_max_problems: true,
  eval_num_samples: true,
  eval_temperature: true,
  reward_timeout: true,
  comparator: true,
  max_tests: true,
  sandbox_url: true,
  sandbox_max_concurrency: true,
  sandbox_python: true,
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
    if (words.length > 0)
      throw new ConfigError(
        "config/stray-word",
        `"${words[0]}" is not written as key=value. ${whet} eval --help lists the keys.`,
      );
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

async function evaluateAll(settings: EvalOptions & TrainConfig, signal: AbortSignal): Promise<number> {
  const scratch = settings.run === "" ? mkdtempSync(join(tmpdir(), "whet-eval-")) : undefined;
  const grading = await openGrader(settings);
  try {
    logger.info(`sandbox  ${grading.description.summary}`);
    const engine = await connectEngine(settings, { ...engineFiles(scratch ?? resolve(settings.run)), logger });
    try {
      logger.info(`engine   ${engine.description}`);
      const window = checkModel(engine, settings.model_name);
      const config = {
        ...settings,
        context_window: Math.min(settings.context_window, window ?? settings.context_window),
      };
      const renderer = await openRenderer(config, logger, signal);
      const dataset = await loadProblems(config, "test", { renderer, signal });
      logger.info(`test     ${describeSummary(dataset.summary)}`);
      const tasks = evaluationTasks(dataset, { ...config, eval_max_tokens: 0 }, renderer);

      const measure = async (which: string): Promise<Evaluation> => {
        const { sampler, label } = await openSampler(engine, settings, which);
        const progress = new Progress({ label, total: tasks.length * settings.eval_num_samples });
        const evaluation = await evaluate(
          sampler,
          tasks,
          {
            samplesPerTask: settings.eval_num_samples,
            temperature: settings.eval_temperature,
            seed: engine.kind === "hosted" ? undefined : settings.seed,
          },
          {
            renderer,
            grader: grading.grader,
            timer: new StepTimer(),
            signal,
            patienceMs: 60_000,
            onGraded: (done) => progress.update(done),
            onWaiting: (message) => progress.print(message),
          },
        );
        progress.end();
        print(label, evaluation);
        return evaluation;
      };

      const first = await measure(settings.checkpoint);
      if (settings.out !== "") writeFileAtomic(settings.out, first.outcomes.map(toJsonLine).join(""));
      if (settings.compare !== "") {
        const other = settings.compare.endsWith(".jsonl")
          ? (readJsonLines(settings.compare) as ProblemOutcome[])
          : (await measure(settings.compare)).outcomes;
        const { problems, before, after, gained, lost, pValue } = compareEvaluations(other, first.outcomes);
        console.log(
          `compared with ${settings.compare}: ${percent(before)} → ${percent(after)} on ${problems} problems; ` +
            `${gained} gained, ${lost} lost, McNemar's exact p = ${pValue.toPrecision(2)}`,
        );
      }
      return 0;
    } finally {
      await engine.close();
    }
  } finally {
    await grading.close();
    if (scratch !== undefined) rmSync(scratch, { recursive: true, force: true });
  }
}

/** The sampler that a word names: base, a tinker:// path, or a checkpoint of the run; "" is the run's last, or base. */
async function openSampler(
  engine: EngineConnection,
  settings: EvalOptions & TrainConfig,
  which: string,
): Promise<{ sampler: SamplingClient; label: string }> {
  if (which === "base" || (which === "" && settings.run === "")) {
    const sampler = await engine.service.createSamplingClient({ baseModel: settings.model_name });
    return { sampler, label: settings.model_name };
  }
  if (which.startsWith("tinker://"))
    return { sampler: await engine.service.createSamplingClient({ modelPath: which }), label: which };
  const records =
    settings.run === "" ? [] : readCheckpoints(settings.run).filter(({ sampler_path: path }) => path !== undefined);
  const record = which === "" ? records.at(-1) : records.find(({ name }) => name === which);
  if (!record) {
    const names = records.map(({ name }) => name).join(", ") || "none";
    throw new ConfigError(
      "config/no-checkpoint",
      `There is no checkpoint "${which || "(last)"}" in run=${settings.run || "(none)"}; it has: ${names}. Name one of them, a tinker:// path, or base.`,
    );
  }
  return {
    sampler: await engine.service.createSamplingClient({ modelPath: record.sampler_path! }),
    label: `checkpoint ${record.name}`,
  };
}

const percent = (value: number) => `${(100 * value).toFixed(1)}%`;
const interval = ({ rate, low, high, problems }: Rate) =>
  `${percent(rate).padStart(6)} [${(100 * low).toFixed(1)}, ${(100 * high).toFixed(1)}]  ${problems} problems`;

function print(label: string, evaluation: Evaluation): void {
  const rows: [string, string][] = [["Pass@1", interval(evaluation.pass1)]];
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
