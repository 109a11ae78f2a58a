// The training loop. One step: take the next batch of graded groups, center rewards within them, train, publish the new policy, write
// down what happened. The pipeline samples ahead, evaluations and saves run beside; everything a later step depends on is in the
// journal before that step begins, so a run can be killed at any moment.
import type { ServiceClient } from "../client/index.ts";
import { messageOf } from "../core/errors.ts";
import { Random } from "../core/random.ts";
import type { Renderer } from "../renderers/index.ts";
import type { Span } from "../runs/events.ts";
import type { Run } from "../runs/run.ts";
import { Activity, measured } from "../runs/timing.ts";
import { type Batch, buildBatch } from "./batch.ts";
import { Checkpoints, checkpointName } from "./checkpoints.ts";
import { completionsPerPrompt, type TrainConfig } from "./config.ts";
import { type Evaluation, evaluationSeed } from "./evaluate.ts";
import { Evaluations } from "./evaluations.ts";
import { isModelLost } from "./lost.ts";
import { batchesOf, Pipeline } from "./pipeline.ts";
import { Policies, type Policy } from "./policies.ts";
import { recordedTasks } from "./recorded-tasks.ts";
import type { Position } from "./recovery.ts";
import { resume, type Start, TrainError } from "./resume.ts";
import { type Judge, type Place, sampleAndJudge } from "./rollout.ts";
import { batchMetrics, batchSpans, recentSteps, stepMetrics, stepTimes } from "./step-metrics.ts";
import type { Task, TaskSource } from "./tasks.ts";
import { trainStep, updateRule } from "./train-step.ts";
import { Watch } from "./watch.ts";

export interface TrainParts {
  service: ServiceClient;
  run: Run;
  renderer: Renderer;
  judge: Judge;
  /** Rejects when programs with known verdicts are judged wrongly. */
  checkGrader(): Promise<void>;
  trainTasks: TaskSource;
  testTasks: readonly Task[];
  /** Bits of the seeds sent with samples; 0 for servers that would give every sample of a request the same one. */
  seedBits: 0 | 31 | 32;
  configHash: string;
  userMetadata: Record<string, string>;
  /** Aborted: finish the update under way, keep what is complete, save, stop. */
  drain: AbortSignal;
  /** Aborted: stop at once. */
  cancel: AbortSignal;
  events: TrainEvents;
}

/** What the display is told besides what the journal says. */
export interface TrainEvents {
  stage(step: number, stage: string): void;
  evaluated(step: number, evaluation: Evaluation): void;
}

export interface TrainOutcome extends Position {
  interrupted: boolean;
}

/** Above this share of ungraded completions something is broken, and going on would waste money. */
const mostUngraded = 0.2;
/** A server that loses the model again and again without a step in between is not worth retrying. */
const mostRecoveries = 5;

/** Trains until `max_steps`, or until it is drained. */
export async function train(config: TrainConfig, parts: TrainParts): Promise<TrainOutcome> {
  const { run, service } = parts;
  let reached = -1;
  for (let recoveries = 0; ; ) {
    const start = await resume(service, config, run, parts.userMetadata, parts.cancel);
    const progress = { ...start.position };
    try {
      return await trainFrom(start, progress, config, parts);
    } catch (error) {
      if (!isModelLost(error) || parts.cancel.aborted) throw error;
      recoveries = progress.step > reached ? 0 : recoveries + 1;
      if (recoveries > mostRecoveries) throw error;
      reached = Math.max(reached, progress.step);
      run.logger.warn(`the server lost the model (${messageOf(error)}); going back to the last checkpoint`);
    }
  }
}

/** Trains on from a version; `position` moves with every step. */
async function trainFrom(
  start: Start,
  position: Position,
  config: TrainConfig,
  parts: TrainParts,
): Promise<TrainOutcome> {
  const { training, recovered } = start;
  const { run, events, drain } = parts;
  const record = run.journal.append.bind(run.journal);
  const end = config.max_steps < 0 ? Number.POSITIVE_INFINITY : Math.max(config.max_steps, position.step);
  const frontier = recovered.frontier(position);
  const watch = new Watch(config.stage_deadline * 1000, run.logger, parts.cancel);
  const cancel = watch.signal;
  const sampling = new Activity();
  const times = recovered
    .steps()
    .slice(-recentSteps)
    .map(({ spans }) => stepTimes(spans, config.max_lag));

  const rollouts = {
    renderer: parts.renderer,
    judge: parts.judge,
    record,
    recorded: (place: Place, task: Task) => {
      const group = recovered.group(place);
      return group?.sampled.problem === task.id ? group : undefined;
    },
  };
  const evaluations = new Evaluations({
    every: config.eval_every,
    end,
    tasks: parts.testTasks,
    rollOut: watch.progress(
      "evaluating",
      sampleAndJudge({
        ...rollouts,
        samples: config.eval_num_samples,
        temperature: config.eval_temperature,
        seedFor: (_, task) => seed(parts, evaluationSeed(config.seed, task)),
      }),
    ),
    isDone: (version) => recovered.isEvaluated(version),
    hasStarted: (version) => recovered.hasEvaluationStarted(version),
    record,
    onResult: (step, evaluation) => events.evaluated(step, evaluation),
    drain,
    cancel,
  });
  const pipeline = new Pipeline({
    lag: config.max_lag,
    first: position.step,
    end,
    tasksOf: async (batch) =>
      batch < frontier.step
        ? recordedTasks(recovered, batch)
        : parts.trainTasks.batch(offsetOf(batch), config.group_size),
    rollOut: watch.progress(
      "sampling and grading",
      sampleAndJudge({
        ...rollouts,
        samples: completionsPerPrompt(config),
        temperature: config.temperature,
        seedFor: ({ batch, group }) => seed(parts, new Random("sample", config.seed, batch, group).uint32()),
        sampling: (change) => sampling.change(change),
      }),
    ),
    drain,
    cancel,
  });
  const policies = new Policies({
    service: parts.service,
    training,
    published: recovered.policies,
    needed: (version) =>
      evaluations.isDue(version) ||
      batchesOf(version, config.max_lag).some(
        (batch) =>
          batch >= start.position.step &&
          batch < end &&
          !(batch < frontier.step || recovered.isComplete(batch, config.group_size)),
      ),
    ttlSeconds: config.ttl_seconds,
    record,
    logger: run.logger,
    signal: cancel,
  });
  const checkpoints = new Checkpoints({
    training,
    every: config.save_every,
    ttlSeconds: config.ttl_seconds,
    configHash: parts.configHash,
    seed: config.seed,
    epochOf: (offset) => Math.floor(offset / parts.trainTasks.size),
    record,
    signal: cancel,
    onSaved: ({ step }) => {
      policies.retire(Math.min(step - config.max_lag, evaluations.oldest));
      if (config.keep_journal === "checkpoint") run.journal.thin(step);
    },
  });

  try {
    const now = await policies.publish(position.step, true);
    for (let version = Math.max(0, position.step - config.max_lag); version < position.step; version++)
      pipeline.use(policies.recall(version));
    begin(now);

    let stepStarted = Date.now();
    let busyBefore = sampling.busyMs;
    events.stage(position.step, "sampling and grading");
    for await (const { batch: step, groups } of pipeline.batches()) {
      checkpoints.throwIfFailed();
      evaluations.throwIfFailed();
      if (config.canary_every > 0 && step > 0 && step % config.canary_every === 0) await parts.checkGrader();
      const batch = buildBatch(groups, config);
      stopIfUngraded(step, batch);
      const spans = batchSpans(batch);
      const known = recovered.isStepDone(step);
      const rule = recovered.ruleOf(step) ?? updateRule(config);
      if (!recovered.ruleOf(step)) await record(updateSubmitted(step, rule, batch));

      // Without a datum neither call is made: an optimizer step without a gradient would still move the weights by momentum.
      events.stage(step, "training");
      const update =
        batch.examples.length === 0
          ? undefined
          : await watch.stage("training", () =>
              measured(spans, "train", () => trainStep(training, batch.examples, rule, cancel)),
            );
      if (update && !known) {
        const { start, end: ended } = spans.at(-1)!;
        const { lossSum, server, logprobs } = update;
        await record({ type: "update-done", step, lossSum, server, start, end: ended }, logprobs ? { logprobs } : {});
      }

      const datasetOffset = position.datasetOffset;
      position.step = step + 1;
      position.datasetOffset += groups.length;
      events.stage(step, "weights");
      const policy = await watch.stage("publishing the policy", () =>
        measured(spans, "weights", () => policies.publish(step + 1, update !== undefined)),
      );
      begin(policy);
      checkpoints.saveIfDue(position, end);

      const stepEnded = Date.now();
      spans.push({ name: "total", start: stepStarted, end: stepEnded });
      if (!known) {
        times.push(stepTimes(spans, config.max_lag));
        const busy = sampling.busyMs;
        const observed = {
          "pipeline/in_flight_groups": pipeline.groupsInFlight,
          "pipeline/sample_idle_frac": Math.max(0, 1 - (busy - busyBefore) / Math.max(1, stepEnded - stepStarted)),
          "journal/bytes": run.journal.bytes,
          "journal/append_p99_ms": run.journal.appendP99Ms,
        };
        const metrics = stepMetrics({
          step,
          datasetOffset,
          datasetSize: parts.trainTasks.size,
          maxSteps: config.max_steps,
          maxLag: config.max_lag,
          learningRate: rule.adam.learningRate,
          batch,
          update,
          spans,
          observed,
          recent: times.slice(-recentSteps),
        });
        await record({ type: "step-done", step, datasetOffset, spans, observed, metrics });
      }
      stepStarted = stepEnded;
      busyBefore = sampling.busyMs;
      events.stage(step + 1, "sampling and grading");
    }

    // Saved before anything else is waited for: a signal during the last evaluation must not cost what was trained.
    const interrupted = drain.aborted;
    events.stage(position.step, "saving");
    await watch.stage("saving", () =>
      checkpoints.save(interrupted ? `interrupted-${checkpointName(position.step)}` : "final", position, !interrupted),
    );
    if (interrupted) return { ...position, interrupted };
    events.stage(position.step, "evaluating");
    await evaluations.finish();
    return { ...position, interrupted: drain.aborted };
  } finally {
    await Promise.allSettled([pipeline.close(), evaluations.close(), checkpoints.settled()]);
    await policies.settled();
    watch.close();
  }

  function begin(policy: Policy): void {
    pipeline.use(policy);
    evaluations.startIfDue(policy);
  }

  function offsetOf(batch: number): number {
    return frontier.datasetOffset + (batch - frontier.step) * config.group_size;
  }
}

/** A seed as this server takes it. */
function seed({ seedBits }: TrainParts, value: number): number | undefined {
  return seedBits === 0 ? undefined : seedBits === 32 ? value : value >>> 1;
}

const updateSubmitted = (step: number, rule: ReturnType<typeof updateRule>, batch: Batch) => ({
  type: "update-submitted" as const,
  step,
  rule,
  examples: batch.examples.length,
  groups: batch.groups.map(({ group, outcome, skipped, advantages }) => ({
    problem: group.problem,
    outcome,
    skipped,
    advantages,
  })),
});

function stopIfUngraded(step: number, batch: Batch): void {
  const share = batchMetrics(batch)["grade/ungraded_rate"] ?? 0;
  if (share <= mostUngraded) return;
  throw new TrainError(
    "rl/ungraded",
    `${Math.round(100 * share)}% of the completions of step ${step} could not be graded, so training stops before it learns from an outage. ` +
      "Check the sandbox (./whet doctor), then run the same command again: it goes on where this one ended.",
  );
}
