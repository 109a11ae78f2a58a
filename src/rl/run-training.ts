// The training loop as a library: a program's own problems and reward, on any Tinker server, with everything `./whet train` does for
// a run: a directory with journal, metrics and checkpoints, resuming, evaluation.
import { resolve } from "node:path";
import type { ServiceClient } from "../client/index.ts";
import { ConfigError } from "../core/errors.ts";
import { describeOutage, type OutageNews } from "../core/outage.ts";
import type { Grader } from "../grading/index.ts";
import type { Renderer } from "../renderers/index.ts";
import { defaultRunPath, openRunDirectory } from "../runs/directory.ts";
import { Display } from "../runs/display.ts";
import type { RunEvent } from "../runs/events.ts";
import { patienceOf } from "../runs/outages.ts";
import { Run } from "../runs/run.ts";
import { RunView } from "../runs/view.ts";
import { beginRun } from "./begin-run.ts";
import { Caller } from "./caller.ts";
import { linkedController } from "./cancellation.ts";
import { type TrainConfig, validateConfig } from "./config.ts";
import { type Environment, environment, maxTurnsOf, type RewardFunction } from "./environment/environment.ts";
import { environmentProblems } from "./environment/problems.ts";
import { rollOutsOf } from "./environment/roll-outs.ts";
import { withinServer } from "./frozen-samplers.ts";
import { resolveSettings } from "./given-settings.ts";
import { judgeByTests } from "./judge.ts";
import { offeredModels, offerOf, withinWindow } from "./offered.ts";
import { openRenderer } from "./open-renderer.ts";
import {
  checkProblems,
  ownTaskSource,
  ownTasks,
  problemsFingerprint,
  type TrainingProblem,
  testsOf,
} from "./own-problems.ts";
import { tariffForBudget } from "./prices.ts";
import { type RollOuts, sampleAndJudge } from "./rollout.ts";
import type { TrainSettings } from "./settings.ts";
import { train } from "./train.ts";

/** What to train, on what, and who gets the events. */
export interface TrainingOptions<Problem extends TrainingProblem = TrainingProblem> {
  /** The server that samples and trains. */
  service: ServiceClient;
  /** Problems, and what happens with each. In place of `problems`, `reward` and `testProblems`. */
  environment?: Environment<Problem> | undefined;
  /** What the model is to get better at. */
  problems?: readonly Problem[] | undefined;
  /** Judges an answer. Left out, `grader` runs the problems' tests. */
  reward?: RewardFunction<Problem> | undefined;
  /** Grades by tests; needed without `reward`, and by environments that grade programs. */
  grader?: Grader | undefined;
  /** Measured every `eval_every` steps and at the end; the same judge decides. */
  testProblems?: readonly Problem[] | undefined;
  /** Settings that differ from the preset's; `preset` itself is "deepcoder" unless given. */
  config?: TrainSettings | undefined;
  /** Default: the chat format that fits `model_name`. */
  renderer?: Renderer | undefined;
  /** Called with everything that happens, after it is on disk. Promises are not waited for; what they reject with ends the run. */
  onEvent?: ((event: RunEvent) => unknown) | undefined;
  /** Called with the lines that `./whet train` would print. */
  onMessage?: ((line: string) => void) | undefined;
  /** Aborted: the update under way is finished, a checkpoint saved, and the call returns. */
  signal?: AbortSignal | undefined;
  /** Aborted: stops at once. The run can still be resumed from its journal. */
  cancel?: AbortSignal | undefined;
  /** False leaves randomness to the server: for those that give every sample of a request the same seed. Default true. */
  fixedSeeds?: boolean | undefined;
}

/** How a run ended. */
export interface TrainingResult {
  /** The run directory. The same call with the same `log_path` goes on from there. */
  path: string;
  /** Optimizer steps so far. */
  step: number;
  /** Whether `signal` or `budget` ended it before `max_steps`. */
  interrupted: boolean;
  /** The newest checkpoint: weights to sample from, and to train on from. */
  checkpoint: { sampler?: string; state?: string } | undefined;
}

/** Trains until `max_steps` or until `signal`; resumes where the run directory has a run of these problems. */
export async function runTraining<Problem extends TrainingProblem>(
  options: TrainingOptions<Problem>,
): Promise<TrainingResult> {
  const work = await workOf(options);
  const { config, warnings } = resolveConfig(options, work);
  const path = resolve(config.log_path || defaultRunPath(new Date()));
  const directory = await openRunDirectory(path, config.behavior_if_log_dir_exists);
  if (!directory) throw new ConfigError("config/conflict", `${path} was left alone. Name another log_path.`);
  const cancel = linkedController(...(options.cancel ? [options.cancel] : []));
  const caller = new Caller((error) => cancel.abort(error));
  const say = (line: string) => caller.call(() => options.onMessage?.(line));
  const display = new Display({ write: (text) => say(text.trimEnd()) });
  const run = await Run.open(path, display, directory.release);
  let outcome: TrainingResult;
  try {
    run.journal.listen((event) => caller.call(() => options.onEvent?.(event)));
    for (const warning of warnings) run.logger.warn(warning);
    outcome = await trainInto(run, config, { ...work, say }, options, cancel.signal);
    await caller.settled();
    await run.close(outcome.interrupted ? "interrupted" : "finished");
  } catch (error) {
    await run.close("failed", { error });
    throw error;
  } finally {
    cancel.unlink();
  }
  // The last event was delivered after everything else.
  await caller.settled();
  return outcome;
}

async function trainInto<Problem extends TrainingProblem>(
  run: Run,
  given: TrainConfig,
  { problems, testProblems, environment, say }: Work<Problem> & { say(line: string): void },
  options: TrainingOptions<Problem>,
  cancel: AbortSignal,
): Promise<TrainingResult> {
  const { service, grader } = options;
  const drain = options.signal ?? new AbortController().signal;
  try {
    const { logger } = run;
    const context = { runPath: run.path, logger, signal: drain };
    const offer = offerOf(await offeredModels(service, { signal: drain }), given.model_name);
    const windowed = withinWindow(given, offer, logger);
    const { config: within, frozenSamplers } = await withinServer(windowed, { service }, context);
    const { config, renderer, made } = options.renderer
      ? { config: within, renderer: options.renderer, made: undefined }
      : await openRenderer(within, { logger, signal: drain, ask: { service, runPath: run.path } });
    const trainTasks = ownTaskSource(problems, config, renderer);
    const testLimits = { ...config, max_tokens: config.eval_max_tokens || config.max_tokens };
    const testTasks = ownTasks(testProblems, testLimits, renderer);
    const tariff = tariffForBudget(config, "server");
    const begun = await beginRun(run, config, {
      renderer,
      engine: "server",
      tariff,
      ...(environment && { maxTurns: maxTurnsOf(environment, config) }),
      sandbox: environment ? "own reward" : "own grader",
      train: { fingerprint: problemsFingerprint(problems), size: problems.length },
      test: testProblems.length > 0 ? { fingerprint: problemsFingerprint(testProblems) } : undefined,
      testTasks,
      ...(frozenSamplers ? {} : { more: { frozen_samplers: false } }),
    });
    const judge = grader && judgeByTests({ grader, ...outagesOf(config, say) });
    const code = judge && { judge, grader };
    const rollOuts: RollOuts = environment
      ? rollOutsOf(environment, renderer, config, async () => code)
      : sampleAndJudge(renderer, judge!);
    const { step, interrupted, refusal } = await train(config, {
      run,
      begun,
      server: { service, made, fixedSeeds: options.fixedSeeds ?? true, frozenSamplers },
      rollOuts,
      grading: { by: environment ? "environment" : "tests", check: async () => {} },
      tasks: { train: trainTasks, test: testTasks },
      signals: { drain, cancel },
    });
    const newest = RunView.read(run.path).newest;
    const checkpoint = newest && {
      ...(newest.sampler_path ? { sampler: newest.sampler_path } : {}),
      ...(newest.state_path ? { state: newest.state_path } : {}),
    };
    return { path: run.path, step, interrupted: interrupted || refusal !== undefined, checkpoint };
  } catch (error) {
    // A wait that was cut short says so in its own words; why it was is what matters.
    throw cancel.aborted ? cancel.reason : error;
  }
}

/** What is trained on and measured with, and by which environment; without one, tests judge. */
interface Work<Problem extends TrainingProblem> {
  problems: readonly Problem[];
  testProblems: readonly Problem[];
  environment: Environment<Problem> | undefined;
}

/** Problems and reward are an environment of one turn. */
async function workOf<Problem extends TrainingProblem>(options: TrainingOptions<Problem>): Promise<Work<Problem>> {
  const { problems = [], testProblems = [], reward, grader } = options;
  if (options.environment) {
    for (const name of ["problems", "testProblems", "reward"] as const)
      if (options[name] !== undefined)
        throw new ConfigError(
          "config/conflict",
          `environment and ${name} are both given. The environment has ${name} of its own: leave one of them out.`,
        );
    return { ...(await environmentProblems(options.environment)), environment: options.environment };
  }
  checkProblems(problems, "problems");
  checkProblems(testProblems, "testProblems");
  if (problems.length === 0)
    throw new ConfigError("config/no-problems", "There are no problems to train on. Give at least one.");
  if (!reward && !grader)
    throw new ConfigError(
      "config/no-judge",
      "Nothing says what a good answer is. Give a reward function, or a grader and tests.",
    );
  if (!reward) for (const problem of [...problems, ...testProblems]) testsOf(problem);
  return { problems, testProblems, environment: reward && environment({ problems, reward }) };
}

function resolveConfig<Problem extends TrainingProblem>(
  options: TrainingOptions<Problem>,
  { testProblems }: Work<Problem>,
): { config: TrainConfig; warnings: string[] } {
  // Nothing to measure on is no reason to fail.
  const given = resolveSettings(options.config);
  const config = testProblems.length > 0 ? given : { ...given, eval_every: 0 };
  const { from, kl_coef, kl_reference } = config;
  if (from !== "" && !from.startsWith("tinker://"))
    throw new ConfigError(
      "config/bad-value",
      `config.from=${from} is no tinker:// path. Give the state that a checkpoint of the run has there (checkpoint.state of a result).`,
    );
  if (from !== "" && kl_coef > 0 && kl_reference === "")
    throw new ConfigError(
      "config/no-reference",
      `config.kl_coef=${kl_coef} is a penalty for the distance from the start, and from=${from} cannot be sampled. Give kl_reference the sampler weights of the same checkpoint.`,
    );
  return { config, warnings: validateConfig(config) };
}

/** `say`: tells the caller. */
const outagesOf = ({ outage_patience }: TrainConfig, say: (line: string) => void) => ({
  patienceMs: patienceOf(outage_patience),
  onOutage: (news: OutageNews) =>
    news.due && say(describeOutage(news, ", then the run ends and can be resumed (outage_patience)")),
});
