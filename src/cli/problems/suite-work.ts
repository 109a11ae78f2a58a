// A suite as what is asked of a model: its problems as tasks, its own judge, and the notes that belong beside its figures.

import { bundledModel } from "../../core/bundled.ts";
import { countOf } from "../../core/count.ts";
import { ConfigError } from "../../core/errors.ts";
import { briefPatience } from "../../core/outage.ts";
import { whet } from "../../core/program.ts";
import type { Grader, NormalizedTest } from "../../grading/index.ts";
import type { Renderer } from "../../renderers/index.ts";
import type { TrainConfig } from "../../rl/config.ts";
import { stratifiedSubset } from "../../rl/evaluate.ts";
import { judgeByTests } from "../../rl/judge.ts";
import { type RollOuts, sampleAndJudge } from "../../rl/rollout.ts";
import type { Task } from "../../rl/tasks.ts";
import type { Logger } from "../../runs/log.ts";
import { Checks } from "../../suites/check.ts";
import { type LoadedSuite, loadSuite } from "../../suites/find.ts";
import { datesOfModel } from "../../suites/models.ts";
import type { SuiteProblem } from "../../suites/suite.ts";
import { parseSuite } from "../../suites/suites.ts";
import { openGrader } from "../parts/grader.ts";
import { say } from "../terminal/loggers.ts";

/** A problem of a suite whose judge is ready. */
export interface ReadyProblem extends SuiteProblem {
  source: string;
  tests(): Promise<readonly NormalizedTest[]>;
}

/** The settings with the suite's own in place of those that the command does not give. */
export function suiteSettings({ form }: LoadedSuite, config: TrainConfig, given: ReadonlySet<string>): TrainConfig {
  const unless = <Key extends keyof TrainConfig>(key: Key, value: TrainConfig[Key], ...others: string[]) =>
    [key, ...others].some((name) => given.has(name)) ? {} : { [key]: value };
  return {
    ...config,
    language: "python",
    env: "",
    agent: "",
    ...unless("eval_num_samples", form.samples),
    ...unless("eval_temperature", form.temperature),
    ...unless("eval_max_tokens", form.maxTokens, "max_tokens"),
    ...unless("eval_max_problems", 0),
    ...unless("max_tests", 0),
    ...(form.comparator && { comparator: form.comparator as TrainConfig["comparator"] }),
    ...(form.rewardTimeoutS && unless("reward_timeout", form.rewardTimeoutS)),
    ...(form.packages && unless("sandbox_packages", form.packages)),
  };
}

/** A suite whose judge is open and certified. */
export interface OpenSuite {
  loaded: LoadedSuite;
  config: TrainConfig;
  problems: readonly ReadyProblem[];
  grader: Grader;
  /** Lines about the suite that belong beside its figures. */
  notes: readonly string[];
  /** Problems whose reference does not pass here. */
  leftOut: number;
  close(): Promise<void>;
}

interface OpenSuiteOptions {
  name: string;
  loaded: LoadedSuite;
  config: TrainConfig;
  /** Programs that were sampled elsewhere. */
  samples?: string;
  logger: Logger;
  signal: AbortSignal;
}

/** Opens a sandbox and tries every check with its reference; problems whose reference does not pass are left out and named. */
export async function openSuite({
  name,
  loaded,
  config,
  samples,
  logger,
  signal,
}: OpenSuiteOptions): Promise<OpenSuite> {
  const grading = await openGrader(config);
  try {
    const checks = new Checks(grading.sandbox, config.sandbox_memory_mb);
    const released = datesOfModel(config.model_name)?.released;
    const chosen = stratifiedSubset(
      loaded.problems.map((problem) => ({ ...problem, source: sourceOf(name, problem, released) })),
      config.eval_max_problems,
      config.seed,
    );
    const unfit: string[] = [];
    let inside = 0;
    const ready = await Promise.all(
      chosen.map(async (problem): Promise<ReadyProblem[]> => {
        const { check, loadTests } = problem;
        if (!check) return [{ ...problem, tests: loadTests! }];
        const prepared = await checks.prepare(check, signal);
        if ("unfit" in prepared) {
          unfit.push(`${problem.id}: ${prepared.unfit}`);
          return [];
        }
        if (prepared.inside) inside++;
        return [{ ...problem, tests: async () => prepared.tests }];
      }),
    );
    const problems = ready.flat();
    const first = unfit.length > 0 ? `${unfit[0]}. ${installing(unfit[0]!)}` : "";
    if (problems.length === 0)
      throw new ConfigError("config/unfit-suite", `suite=${name}: no problem can be judged here. ${first}`);
    if (unfit.length > 0) logger.warn(`${countOf(unfit.length, "problem")} left out, first ${first}`);
    const { asked, judged } = loaded.form.protocol;
    const isOwnProcess = "in the program's own process, as the official harness does: a program made to can fool that";
    const notes = [
      `suite    ${name}: ${samples ? `programs of ${samples}` : sampling(config)}`,
      `protocol ${samples ? judged : `${asked}; ${judged}`}`,
      `problems ${problems.length} of ${loaded.problems.length} from ${loaded.from}` +
        (unfit.length > 0 ? `; ${unfit.length} left out: their own reference does not pass here` : ""),
      ...(inside > 0 ? [`judged   ${countOf(inside, "problem")} ${isOwnProcess}`] : []),
      `dates    ${datesLine(loaded.published, samples ? "" : config.model_name)}`,
    ];
    const grader = checks.grader(grading.grader);
    return { loaded, config, problems, grader, notes, leftOut: unfit.length, close: () => grading.close() };
  } catch (error) {
    await grading.close();
    throw error;
  }
}

function sampling({ eval_num_samples: samples, eval_temperature: temperature, ...limits }: TrainConfig): string {
  const maxTokens = limits.eval_max_tokens || limits.max_tokens;
  return `${countOf(samples, "sample")} of each at temperature ${temperature}, at most ${maxTokens} tokens`;
}

/** The problems that fit a renderer's context window. */
export function suiteTasks(
  { config, problems }: OpenSuite,
  renderer: Renderer,
  window: number,
  logger: Logger,
): Task[] {
  const limit = config.eval_max_tokens || config.max_tokens;
  const tasks = problems.map(({ id, source, messages, tests }, datasetIndex): Task => {
    const prompt = Int32Array.from(renderer.buildGenerationPrompt(messages));
    const question = messages.at(-1)!.content;
    const maxTokens = Math.min(limit, window - prompt.length);
    return { id, source, question, datasetIndex, prompt, maxTokens, loadTests: tests, languages: ["python"] };
  });
  const fitting = tasks.filter(({ maxTokens }) => maxTokens >= Math.min(config.min_generation, limit));
  const left = tasks.length - fitting.length;
  if (left > 0) logger.warn(`${countOf(left, "problem")} left out: context_window=${window} has no room for an answer`);
  return fitting;
}

export function suiteRollOuts({ grader }: OpenSuite, renderer: Renderer, print: (line: string) => void): RollOuts {
  return sampleAndJudge(renderer, judgeByTests({ grader, ...briefPatience(print) }));
}

/** Loads what suite= names; undefined: a file of problems, which is test data like any other. */
export function loadNamed(name: string, config: TrainConfig, signal: AbortSignal): Promise<LoadedSuite | undefined> {
  const python = config.sandbox_python;
  return loadSuite(parseSuite(name), { signal, onNotice: say, ...(python !== "" && { python }) });
}

/** The same where a file of plain problems is none. */
export async function loadSuiteOf(name: string, config: TrainConfig, signal: AbortSignal): Promise<LoadedSuite> {
  const loaded = await loadNamed(name, config, signal);
  if (loaded) return loaded;
  throw new ConfigError("config/no-suite", `${name} has plain problems: ${whet} certify ${name}, without suite=.`);
}

/** Problems with days of their own are counted apart by whether the model was out by then. */
function sourceOf(name: string, { date }: SuiteProblem, released: string | undefined): string {
  if (date === undefined || released === undefined) return name;
  return date < released ? `before the model, ${released}` : `since the model, ${released}`;
}

function datesLine(published: string, modelName: string): string {
  const problems = `problems published ${published}`;
  if (modelName === "") return problems;
  if (bundledModel(modelName))
    return `${problems}; ${modelName} was trained on this repository's own generator and on nothing of these`;
  const model = datesOfModel(modelName);
  if (!model) return `${problems}; when ${modelName} was trained is not known here: compare with its own card`;
  const cutoff = model.cutoff ? `, with data until ${model.cutoff}` : "";
  const seen = published.slice(0, 10) < (model.cutoff ?? model.released).slice(0, 10);
  return `${problems}; ${modelName} was released ${model.released}${cutoff}: ${seen ? "it may have been trained on older ones" : "they are newer than it"}`;
}

/** What to do where a module is missing. */
function installing(unfit: string): string {
  const [, name] = /No module named '([\w.]+)'/.exec(unfit) ?? [];
  return name ? `Have it installed where programs run: sandbox_packages=${name.split(".")[0]}` : "";
}
