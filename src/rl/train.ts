// The training loop. One step: take the next batch of graded groups, center rewards within them, train, publish the new policy, write
// down what happened. The pipeline samples ahead, evaluations and saves run beside; everything a later step depends on is in the
// journal before that step begins, so a run can be killed at any moment.
import type { ServiceClient, TrainingClient } from "../client/index.ts";
import { messageOf } from "../core/errors.ts";
import { whet } from "../core/program.ts";
import type { Run } from "../runs/run.ts";
import { measured } from "../runs/timing.ts";
import { type Batch, buildBatch } from "./batch.ts";
import type { BegunRun, History } from "./begin-run.ts";
import type { Refusal } from "./budget.ts";
import { checkpointName } from "./checkpoints.ts";
import type { TrainConfig } from "./config.ts";
import type { Evaluation } from "./evaluate.ts";
import { RollBack } from "./findings.ts";
import { firstFailure, isModelLost } from "./lost.ts";
import type { Position } from "./recovery.ts";
import { resume, type Start, TrainError } from "./resume.ts";
import type { RollOuts } from "./rollout.ts";
import { TrainSession } from "./session.ts";
import { batchMetrics, batchSpans } from "./step-metrics.ts";
import type { Task, TaskSource } from "./tasks.ts";
import { trainStep } from "./train-step.ts";

export interface TrainParts {
  run: Run;
  begun: BegunRun;
  server: {
    service: ServiceClient;
    /** The model that a run without a checkpoint begins with, where it was made before. */
    made?: TrainingClient | undefined;
    /** False for servers that would give every sample of a request the same seed. */
    fixedSeeds: boolean;
    /** False for servers whose samplers follow training, or the reverse: only the newest policy is sampled then. Default true. */
    frozenSamplers?: boolean | undefined;
  };
  /** How a group comes about: of training, and of evaluations. */
  rollOuts: RollOuts;
  grading: {
    by: "tests" | "environment";
    /** Rejects when programs with known verdicts are judged wrongly. */
    check(): Promise<void>;
  };
  tasks: { train: TaskSource; test: readonly Task[] };
  signals: {
    /** Aborted: finish the update under way, keep what is complete, save, stop. */
    drain: AbortSignal;
    /** Aborted: stop at once. */
    cancel: AbortSignal;
  };
  events?: TrainEvents | undefined;
}

/** What the display gets besides the journal's events. */
export interface TrainEvents {
  stage(step: number, stage: string): void;
  evaluated(step: number, evaluation: Evaluation): void;
}

export interface TrainOutcome extends Position {
  interrupted: boolean;
  /** Set when `budget` ended it. */
  refusal?: Refusal | undefined;
}

/** Above this share of ungraded completions something is broken, and going on would waste money. */
const maxUngraded = 0.2;
/** A server that loses the model again and again without a step in between is not worth retrying. */
const maxRecoveries = 5;

/** Trains until `max_steps`, or until it is drained. */
export async function train(config: TrainConfig, parts: TrainParts): Promise<TrainOutcome> {
  const { run, begun, server, signals } = parts;
  const { userMetadata, history } = begun;
  const { findings } = history;
  let { made } = server;
  let recovered: History["recovered"] | undefined = history.recovered;
  let reached = -1;
  for (let recoveries = 0; ; ) {
    await findings.rollBackIfAsked();
    const start = await resume(server.service, config, run, { userMetadata, signal: signals.cancel, made, recovered });
    made = recovered = undefined;
    const progress = { position: start.position };
    try {
      return await trainFrom(start, progress, config, parts);
    } catch (failure) {
      const error = firstFailure(failure);
      if (error instanceof RollBack || (await findings.canRollBack(error, progress.position.step))) {
        // Its place may be the only one; a server that cannot free it says more when the next model is made.
        await start.training.unload({ signal: signals.cancel }).catch(() => {});
        continue;
      }
      if (!isModelLost(error) || signals.cancel.aborted) throw error;
      const { step } = progress.position;
      recoveries = step > reached ? 0 : recoveries + 1;
      if (recoveries > maxRecoveries) throw error;
      reached = Math.max(reached, step);
      run.logger.warn(`the server lost the model (${messageOf(error)}); going back to the last checkpoint`);
    }
  }
}

/** Trains on from a version; `progress` gets a new position with every step. */
async function trainFrom(
  start: Start,
  progress: { position: Position },
  config: TrainConfig,
  parts: TrainParts,
): Promise<TrainOutcome> {
  const session = new TrainSession(start, config, parts);
  const { findings } = parts.begun.history;
  const { plan, pipeline, checkpoints, recorder, controls, drain } = session;
  const { events } = parts;
  try {
    await session.begin(start.position.step);

    events?.stage(start.position.step, "sampling and grading");
    for await (const { batch: step, groups, carried } of controls.apply(pipeline.batches(), () => progress.position)) {
      session.throwIfFailed();
      if (config.canary_every > 0 && step > 0 && step % config.canary_every === 0) await session.checkGrader();
      await session.beforeUpdate(step);
      if (drain.aborted) break;
      const rule = recorder.ruleOf(step);
      const batch = await session.askReferences(step, buildBatch(groups, rule), rule);
      stopIfUngraded(step, batch, parts.grading.by);
      const spans = batchSpans(step, batch, config);
      const nextOffset = plan.offsetOf(step + 1);
      await recorder.submitted(step, batch, rule, { nextOffset, carried });

      // Without a datum neither call is made: an optimizer step without a gradient would still move the weights by momentum.
      events?.stage(step, "training");
      const train = (signal: AbortSignal) =>
        measured(spans, "train", () => trainStep(start.training, batch.examples, rule, signal));
      const applied = batch.examples.length > 0 ? await session.stage("training", train) : undefined;
      const update = applied && (await recorder.applied(step, batch, applied, spans.at(-1)!));

      await session.publish(step + 1, update !== undefined);
      const { datasetOffset } = progress.position;
      progress.position = { step: step + 1, datasetOffset: nextOffset };
      checkpoints.saveIfDue(progress.position);
      spans.push(...session.takePublished());
      await recorder.done({ step, datasetOffset, batch, update, rule, spans });
      await findings.act(step, session);
      events?.stage(step + 1, "sampling and grading");
    }

    const { position } = progress;
    // Saved before anything else is waited for: a signal during the last evaluation must not cost what was trained.
    const { refusal } = session;
    const interrupted = drain.aborted || (refusal !== undefined && position.step < plan.end);
    const why = drain.aborted ? "interrupted" : "budget";
    const name = interrupted ? `${why}-${checkpointName(position.step)}` : "final";
    events?.stage(position.step, "saving");
    // Unless nothing was trained since the checkpoint that this began from.
    if (start.from?.step !== position.step || (!interrupted && !start.from.final))
      await session.stage("saving", () => checkpoints.save(name, position, !interrupted));
    events?.stage(position.step, "evaluating");
    if (!drain.aborted) await session.finish(position.step);
    await findings.say();
    if (drain.reason instanceof TrainError) throw drain.reason;
    return { ...position, interrupted: drain.aborted, refusal: drain.aborted ? undefined : session.refusal };
  } finally {
    await session.close();
  }
}

function stopIfUngraded(step: number, batch: Batch, judgedBy: TrainParts["grading"]["by"]): void {
  const share = batchMetrics(batch)["grade/ungraded_rate"] ?? 0;
  if (share <= maxUngraded) return;
  const answers = `${Math.round(100 * share)}% of the completions of step ${step}`;
  const grades = batch.groups.flatMap(({ group }) => group.completions.map(({ grade }) => grade));
  // An error that an episode threw is not the sandbox's fault, whoever judges.
  const thrown = grades.find(({ status, episode }) => episode && status === "error");
  if (judgedBy === "environment" || thrown) {
    const why = (thrown ?? grades.find(({ message }) => message))?.message;
    throw new TrainError(
      "rl/no-reward",
      `There is no reward for ${answers}${why === undefined ? ": the function returned null" : `, for example: ${why}`}. Training stops before it learns from an ` +
        "outage. See why there is no judgement for them, then run the same again: the run goes on where this one ended.",
    );
  }
  throw new TrainError(
    "rl/ungraded",
    `${answers} could not be graded, so training stops before it learns from an outage. ` +
      `Check the sandbox (${whet} doctor), then resume the run: it goes on where this one ended.`,
  );
}
