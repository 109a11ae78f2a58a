// The training loop. One step: select problems, sync weights, sample and grade, center rewards within groups, train, record.
// Everything a later step depends on is in the run directory before that step begins, so a run can be killed at any moment.
import { createHash } from "node:crypto";
import type { ServiceClient, TrainingClient } from "../client/index.ts";
import { messageOf } from "../core/errors.ts";
import { Random } from "../core/random.ts";
import type { Grader } from "../grading/index.ts";
import type { Renderer } from "../renderers/index.ts";
import type { RolloutRecord } from "../runs/rollouts.ts";
import type { Run } from "../runs/run.ts";
import { StepTimer } from "../runs/timing.ts";
import { type Batch, buildBatch } from "./batch.ts";
import { completionsPerPrompt, type TrainConfig } from "./config.ts";
import { type Evaluation, evaluate, evaluationMetrics } from "./evaluate.ts";
import { checkpointName, isModelLost, type Position, saveCheckpoint, startTraining, TrainError } from "./resume.ts";
import { type RolloutParts, rollOut, type Task } from "./rollout.ts";
import { batchMetrics } from "./step-metrics.ts";
import { adamParams, trainStep } from "./train-step.ts";

/** The training problems in their seeded order, without end. */
export interface TaskSource {
  readonly size: number;
  batch(offset: number, count: number): Promise<Task[]>;
}

export interface TrainParts {
  service: ServiceClient;
  run: Run;
  renderer: Renderer;
  grader: Grader;
  /** Rejects when programs with known verdicts are judged wrongly. */
  checkGrader(): Promise<void>;
  trainTasks: TaskSource;
  testTasks: readonly Task[];
  /** False for servers that would give every sample of a request the same seed. */
  fixedSeeds: boolean;
  configHash: string;
  userMetadata: Record<string, string>;
  /** Aborted: finish the optimizer call under way, save, stop. */
  signal: AbortSignal;
  events: TrainEvents;
}

/** What the display is told. */
export interface TrainEvents {
  stage(step: number, stage: string): void;
  progress(done: number, total: number): void;
  stepDone(step: number, metrics: Readonly<Record<string, number>>): void;
  evaluated(step: number, evaluation: Evaluation): void;
  saved(name: string): void;
}

export interface TrainOutcome extends Position {
  interrupted: boolean;
}

/** The sandbox may be away this long before completions are left ungraded. */
const patienceMs = 5 * 60_000;
/** Above this share of ungraded completions something is broken, and going on would waste money. */
const mostUngraded = 0.2;
/** A server that loses the model again and again without a step in between is not worth retrying. */
const mostRecoveries = 5;

/** Trains until `max_steps`, or until the signal asks to stop. */
export async function train(config: TrainConfig, parts: TrainParts): Promise<TrainOutcome> {
  const { run, service } = parts;
  let { training, ...position } = await begin();
  let recoveries = 0;

  while ((config.max_steps < 0 || position.step < config.max_steps) && !parts.signal.aborted) {
    try {
      if (config.canary_every > 0 && position.step > 0 && position.step % config.canary_every === 0)
        await parts.checkGrader();
      await runStep(training, position, config, parts);
      position = { step: position.step + 1, datasetOffset: position.datasetOffset + config.group_size };
      recoveries = 0;
      if (config.save_every > 0 && position.step % config.save_every === 0 && position.step !== config.max_steps)
        await save(checkpointName(position.step));
    } catch (error) {
      if (parts.signal.aborted) break;
      if (!isModelLost(error) || ++recoveries > mostRecoveries) throw error;
      run.logger.warn(`the server lost the model (${messageOf(error)}); going back to the last checkpoint`);
      ({ training, ...position } = await begin());
    }
  }

  const interrupted = parts.signal.aborted;
  if (!interrupted) await finalEvaluation(training, position, config, parts);
  await save(interrupted ? `interrupted-${checkpointName(position.step)}` : "final", !interrupted);
  return { ...position, interrupted };

  async function begin() {
    const { from, ...start } = await startTraining(service, config, run, parts.userMetadata);
    const repeated = run.rewindTo(start.step);
    if (from)
      run.logger.info(
        `resuming at step ${start.step} from checkpoint ${from.name}${repeated > 0 ? `; ${repeated} steps are run again` : ""}`,
      );
    return start;
  }

  async function save(name: string, final = false) {
    parts.events.stage(position.step, "saving");
    await saveCheckpoint(training, position, run, {
      name,
      final,
      ttlSeconds: config.ttl_seconds,
      configHash: parts.configHash,
      seed: config.seed,
      epoch: Math.floor(position.datasetOffset / parts.trainTasks.size),
    });
    parts.events.saved(name);
  }
}

async function runStep(
  training: TrainingClient,
  position: Position,
  config: TrainConfig,
  parts: TrainParts,
): Promise<void> {
  const { run, events } = parts;
  const { step, datasetOffset } = position;
  const timer = new StepTimer();

  events.stage(step, "weights");
  const tasks = await timer.measure("select", () => parts.trainTasks.batch(datasetOffset, config.group_size));
  const sampler = await timer.measure("weights", () => training.saveWeightsAndGetSamplingClient());

  const due = config.eval_every > 0 && step % config.eval_every === 0 && parts.testTasks.length > 0;
  const evaluation = due
    ? await timer.measure("evaluate", () => runEvaluation(sampler, step, config, parts))
    : undefined;

  events.stage(step, "sampling and grading");
  const groups = await rollOut(
    sampler,
    tasks,
    {
      samplesPerTask: completionsPerPrompt(config),
      temperature: config.temperature,
      seedFor: (_, index) => (parts.fixedSeeds ? new Random("sample", config.seed, step, index).uint32() : undefined),
    },
    rolloutParts(parts, timer),
  );
  const batch = buildBatch(groups, config);
  run.rollouts(step, rolloutRecords(step, batch));
  const metrics: Record<string, number> = { ...batchMetrics(batch), "optim/lr": config.learning_rate };
  stopIfUngraded(step, metrics["grade/ungraded_rate"] ?? 0);

  // Without a datum neither call is made: an optimizer step without a gradient would still move the weights by momentum.
  if (batch.examples.length > 0) {
    events.stage(step, "training");
    const update = await timer.measure("train", () => trainStep(training, batch.examples, adamParams(config), config));
    Object.assign(metrics, update.metrics, {
      loss: update.lossSum / Math.max(1, update.actionTokens),
      loss_sum: update.lossSum,
      "tokens/trained": update.actionTokens,
    });
  }

  Object.assign(
    metrics,
    evaluation && evaluationMetrics(evaluation),
    progressMetrics(position, config, parts),
    timer.metrics(),
  );
  run.timing(step, timer.spans);
  run.metrics(step, metrics);
  logGroups(step, batch, config, run);
  events.stepDone(step, metrics);
}

/** The policy after the last update, under the number of steps completed. */
async function finalEvaluation(
  training: TrainingClient,
  position: Position,
  config: TrainConfig,
  parts: TrainParts,
): Promise<void> {
  if (config.eval_every <= 0 || parts.testTasks.length === 0) return;
  const timer = new StepTimer();
  const sampler = await timer.measure("weights", () => training.saveWeightsAndGetSamplingClient());
  const evaluation = await timer.measure("evaluate", () => runEvaluation(sampler, position.step, config, parts));
  parts.run.metrics(position.step, { ...evaluationMetrics(evaluation), ...timer.metrics() });
}

async function runEvaluation(
  sampler: Parameters<typeof evaluate>[0],
  step: number,
  config: TrainConfig,
  parts: TrainParts,
): Promise<Evaluation> {
  parts.events.stage(step, "evaluating");
  const settings = {
    samplesPerTask: config.eval_num_samples,
    temperature: config.eval_temperature,
    seed: parts.fixedSeeds ? config.seed : undefined,
  };
  // Its own timer: the step's spans are about training.
  const evaluation = await evaluate(sampler, parts.testTasks, settings, rolloutParts(parts, new StepTimer()));
  parts.run.evaluation(step, evaluation.outcomes);
  parts.events.evaluated(step, evaluation);
  return evaluation;
}

function rolloutParts(parts: TrainParts, timer: StepTimer): RolloutParts {
  return {
    renderer: parts.renderer,
    grader: parts.grader,
    timer,
    signal: parts.signal,
    patienceMs,
    onGraded: (done, total) => parts.events.progress(done, total),
    onWaiting: (message) => parts.run.logger.warn(message),
  };
}

function stopIfUngraded(step: number, share: number): void {
  if (share <= mostUngraded) return;
  throw new TrainError(
    "rl/ungraded",
    `${Math.round(100 * share)}% of the completions of step ${step} could not be graded, so training stops before it learns from an outage. ` +
      "Check the sandbox (./whet doctor), then run the same command again: it goes on from the last checkpoint.",
  );
}

function progressMetrics(position: Position, config: TrainConfig, parts: TrainParts): Record<string, number> {
  return {
    "progress/batch": position.step,
    ...(config.max_steps > 0 ? { "progress/done_frac": (position.step + 1) / config.max_steps } : {}),
    "data/offset": position.datasetOffset,
    "data/epoch": Math.floor(position.datasetOffset / parts.trainTasks.size),
  };
}

function rolloutRecords(step: number, batch: Batch): RolloutRecord[] {
  return batch.groups.flatMap(({ group, advantages }, groupIndex) =>
    group.completions.map(({ grade, tokens, text, truncated }, sample) => ({
      step,
      problem_id: group.task.id,
      source: group.task.source,
      group: groupIndex,
      sample,
      verdict: grade.verdict,
      status: grade.status,
      reward: grade.reward,
      advantage: advantages[sample] ?? null,
      format_ok: grade.formatOk,
      truncated,
      tokens: tokens.length,
      tests_passed: grade.passed,
      tests_total: grade.total,
      grade_ms: Math.round(grade.wallMs),
      code_sha256: grade.code === null ? null : createHash("sha256").update(grade.code).digest("hex"),
      flags: grade.flags,
      response: text,
    })),
  );
}

/** The rewards of every group, and a few groups' answers in full, for whoever reads logs.log. */
function logGroups(step: number, batch: Batch, config: TrainConfig, run: Run): void {
  for (const [index, { group, outcome, skipped }] of batch.groups.entries()) {
    const rewards = group.completions.map(({ grade }) => grade.reward ?? "?").join(" ");
    run.logger.detail(
      `step ${step} group ${index} ${group.task.id}: ${outcome}${skipped ? ", skipped" : ""}; rewards ${rewards}`,
    );
    if (index < config.num_groups_to_log) {
      const { text, grade } = group.completions[0]!;
      run.logger.detail(`step ${step} group ${index} sample 0 (${grade.status}):\n${text}`);
    }
  }
}
