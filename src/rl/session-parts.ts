// Builds the parts of a session, each from what it needs of the run: no part knows another, nor all that they share. What one does to
// another is given here by session.ts.
import { Activity } from "../runs/timing.ts";
import { Admissions } from "./admissions.ts";
import { BatchPlan } from "./batch-plan.ts";
import type { History } from "./begin-run.ts";
import { type LinkedController, linkedController } from "./cancellation.ts";
import { Checkpoints } from "./checkpoints.ts";
import type { TrainConfig } from "./config.ts";
import { Controls, type ControlsOptions } from "./controls.ts";
import { Evaluations } from "./evaluations.ts";
import { batchesOf, Pipeline, shareOf } from "./pipeline.ts";
import { Policies } from "./policies.ts";
import { References } from "./references.ts";
import type { Start } from "./resume.ts";
import { drawsOf, type RolloutContext } from "./rollout.ts";
import { StepRecorder } from "./step-recorder.ts";
import type { TrainParts } from "./train.ts";
import { Watch } from "./watch.ts";
import { trainedGrade, weighRewards } from "./weighted.ts";

/** What the parts of a session share. */
export interface RunContext {
  config: TrainConfig;
  parts: TrainParts;
  start: Start;
  plan: BatchPlan;
  budget: History["budget"];
  references: References;
  watch: Watch;
  /** Ends this session: by a signal to the process, or because somebody asked the run to stop. */
  stop: LinkedController;
  /** `drain` is the stop's, `cancel` the watch's. */
  signals: TrainParts["signals"];
  /** Whether answers are awaited. */
  sampling: Activity;
  record: RolloutContext["record"];
}

export function runContext(start: Start, config: TrainConfig, parts: TrainParts): RunContext {
  const { run, signals, tasks } = parts;
  const watch = new Watch(config.stage_deadline * 1000, run.logger, signals.cancel);
  const stop = linkedController(signals.drain);
  return {
    config,
    parts,
    start,
    plan: new BatchPlan(start, config, tasks.train),
    budget: parts.begun.history.budget,
    references: new References(parts.server.service, config),
    watch,
    stop,
    signals: { drain: stop.signal, cancel: watch.signal },
    sampling: new Activity(),
    record: run.journal.append.bind(run.journal),
  };
}

/** What rollouts of training and evaluation have in common. */
function rollouts({ parts, start, plan, record }: RunContext): Pick<RolloutContext, "record" | "note" | "recorded"> {
  const { journal } = parts.run;
  return {
    record,
    note: journal.note.bind(journal),
    recorded: (place, task) => {
      const group = start.recovered.group(place);
      if (group?.sampled.problem !== task.id) return undefined;
      // What was trained on stays as it was. Elsewhere an outage, which may have ended the process before, is no verdict for good.
      if (place.phase === "train" && plan.isTrained(place)) return group;
      const isVerdict = (verdict: (typeof group.graded)[number]) => verdict?.grade.verdict !== "ungraded";
      return { ...group, graded: group.graded.map((verdict) => (isVerdict(verdict) ? verdict : undefined)) };
    },
  };
}

export function evaluationsOf(context: RunContext): Evaluations {
  const { config, parts, start, plan, watch, record, signals } = context;
  const rollOut = parts.rollOuts({
    ...rollouts(context),
    ...drawsOf("eval", config, parts.server.fixedSeeds),
    shape: (grade, tokens) => weighRewards(grade, tokens, config, parts.grading.by),
  });
  return new Evaluations({
    every: config.eval_every,
    end: plan.end,
    tasks: parts.tasks.test,
    recovered: start.recovered,
    rollOut: watch.progress("evaluating", rollOut),
    record,
    onResult: (step, evaluation) => parts.events?.evaluated(step, evaluation),
    ...signals,
  });
}

export function admissionsOf({ parts, budget, signals }: RunContext, onRefused: () => void): Admissions {
  const admissions = new Admissions({
    underWay: () => budget?.underWay ?? false,
    onRefused,
    signals: [signals.drain, signals.cancel],
  });
  parts.run.journal.listen(() => admissions.settled());
  return admissions;
}

export function pipelineOf(context: RunContext, admissions: Admissions): Pipeline {
  const { config, parts, plan, budget, watch, sampling, signals } = context;
  const rollOut = parts.rollOuts({
    ...rollouts(context),
    ...drawsOf("train", config, parts.server.fixedSeeds),
    shape: (grade, tokens) => trainedGrade(grade, tokens, config, parts.grading.by),
    sampling: (change) => sampling.change(change),
  });
  return new Pipeline({
    plan,
    lag: config.max_lag,
    rounds: config.carry_rounds,
    share: shareOf(config),
    rollOut: watch.progress("sampling and grading", rollOut),
    admit: (batch, begin) => admissions.ask(() => budget?.admit(batch, plan.missing(batch)), begin),
    ...signals,
  });
}

export function policiesOf(context: RunContext, isEvaluated: (version: number) => boolean): Policies {
  const { config, parts, start, plan, record, signals } = context;
  const isToSample = (batch: number) =>
    config.method !== "sft" && batch >= plan.oldest && batch < plan.end && !plan.isComplete(batch);
  return new Policies({
    training: start.training,
    recovered: start.recovered,
    service: parts.server.service,
    needed: (version) =>
      isEvaluated(version) || batchesOf(version, config.max_lag, plan.floor, config.carry_rounds).some(isToSample),
    ttlSeconds: config.ttl_seconds,
    named: parts.server.frozenSamplers ?? true,
    record,
    logger: parts.run.logger,
    signal: signals.cancel,
  });
}

export function checkpointsOf(
  { config, parts, start, plan, record, signals }: RunContext,
  options: { published(): Promise<unknown>; onSaved(step: number): void },
): Checkpoints {
  return new Checkpoints({
    training: start.training,
    config,
    configHash: parts.begun.configHash,
    datasetSize: parts.tasks.train.size,
    end: plan.end,
    record,
    published: options.published,
    signal: signals.cancel,
    onSaved: ({ step }) => {
      options.onSaved(step);
      if (config.keep_journal === "checkpoint") parts.run.journal.thin(plan.oldestCarried(step));
    },
  });
}

export function controlsOf(
  { config, parts, start, plan, record, signals }: RunContext,
  acts: Pick<ControlsOptions, "save" | "evaluate" | "stop">,
): Controls {
  const { run, events } = parts;
  return new Controls({
    run,
    controlState: start.recovered.controlState,
    learningRate: config.learning_rate,
    frontier: plan.frontier,
    record,
    ...acts,
    onPause: (step, paused) => events?.stage(step, paused ? "paused" : "sampling and grading"),
    ...signals,
  });
}

export function recorderOf(
  { config, parts, start, sampling }: RunContext,
  observed: { learningRate(): number; groupsInFlight(): number },
): StepRecorder {
  const { meter } = parts.begun.history;
  const datasetSize = parts.tasks.train.size;
  return new StepRecorder(parts.run.journal, start.recovered, config, { ...observed, datasetSize, sampling, meter });
}
