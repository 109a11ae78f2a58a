// What a recorded run's figures follow from, computed again from its journal without a server: under the recorded config they come out
// as they were recorded; under a changed one they show what would have differed.
import { rewardOf } from "../grading/index.ts";
import type { EventOf } from "../runs/events.ts";
import type { JournalEntry } from "../runs/read-journal.ts";
import { type Batch, type BatchExample, buildBatch } from "./batch.ts";
import { TrainConfig } from "./config.ts";
import { evaluationMetrics, summarizeOutcomes } from "./evaluate.ts";
import { TrainError } from "./resume.ts";
import { type Group, judged, type RememberedGroup, recall } from "./rollout.ts";
import { recentSteps, type StepTimes, stepMetrics, stepTimes, updateMetrics } from "./step-metrics.ts";
import type { TrainStepResult } from "./train-step.ts";

/** Settings that decide what is made of recorded groups; any other would need new answers or new updates. */
export const replayKeys = ["advantage", "loss_scale", "mask_truncated", "format_coef"] as const;
export type ReplayChanges = Partial<Pick<TrainConfig, (typeof replayKeys)[number]>>;

/** One step or evaluation: its figures as recorded and as they come out now. */
export interface Replayed {
  what: "step" | "evaluation";
  step: number;
  recorded: Readonly<Record<string, number>>;
  now: Readonly<Record<string, number>>;
}

/** What a step's figures are made of, as far as the journal was read. */
interface OpenStep {
  groups: RememberedGroup[];
  submitted?: EventOf<"update-submitted">;
  done?: { event: EventOf<"update-done">; logprobs: Float32Array | undefined };
}

/** Computes every recorded step and evaluation again. */
export function* replay(entries: Iterable<JournalEntry>, changes: ReplayChanges): Generator<Replayed, void, undefined> {
  const open = new Map<number, OpenStep>();
  let times: (StepTimes & { step: number })[] = [];
  let config: TrainConfig | undefined;
  let datasetSize = 1;
  const stepOf = (step: number) => {
    const known = open.get(step) ?? { groups: [] };
    open.set(step, known);
    return known;
  };
  for (const { event, arrays, hasArrays } of entries) {
    if (event.type === "started") {
      config = recordedConfig(event.config);
      datasetSize = Number(event.config["train_problems"] ?? 1);
    } else if (event.type === "group-sampled" && event.phase === "train")
      stepOf(event.batch).groups[event.group] = { sampled: event, arrays, hasArrays, graded: [] };
    else if (event.type === "graded" && event.phase === "train") {
      const group = open.get(event.batch)?.groups[event.group];
      if (group) group.graded[event.sample] = event;
    } else if (event.type === "update-submitted") stepOf(event.step).submitted = event;
    else if (event.type === "update-done") {
      const logprobs = arrays()["logprobs"];
      stepOf(event.step).done = { event, logprobs: logprobs instanceof Float32Array ? logprobs : undefined };
    } else if (event.type === "rewound") {
      for (const step of [...open.keys()]) if (step >= event.to) open.delete(step);
      times = times.filter(({ step }) => step < event.to);
    } else if (event.type === "step-done" && config) {
      const facts = stepOf(event.step);
      open.delete(event.step);
      times.push({ step: event.step, ...stepTimes(event.spans, config.max_lag) });
      const now = replayStep(event, facts, config, changes, times.slice(-recentSteps), datasetSize);
      yield { what: "step", step: event.step, recorded: event.metrics, now };
    } else if (event.type === "evaluated") {
      const seconds = { "time/evaluate": (event.end - event.start) / 1000 };
      const now = { ...evaluationMetrics(summarizeOutcomes(event.outcomes)), ...seconds };
      yield { what: "evaluation", step: event.step, recorded: event.metrics, now };
    }
  }
}

function recordedConfig(recorded: Readonly<Record<string, unknown>>): TrainConfig {
  const known = Object.fromEntries(Object.entries(recorded).filter(([key]) => key in TrainConfig.shape));
  return TrainConfig.parse(known);
}

function replayStep(
  event: EventOf<"step-done">,
  { groups: remembered, submitted, done }: OpenStep,
  recordedRules: TrainConfig,
  changes: ReplayChanges,
  recent: StepTimes[],
  datasetSize: number,
): Record<string, number> {
  if (remembered.some(({ hasArrays }) => !hasArrays))
    throw new TrainError(
      "rl/thinned",
      `The tokens of step ${event.step} were dropped from the journal (keep_journal=checkpoint), so it cannot be replayed. Train with keep_journal=all to keep them.`,
    );
  const groups = remembered.map(groupOf);
  const before = buildBatch(groups, recordedRules);
  const rules = { ...recordedRules, ...changes };
  const changed = Object.keys(changes).length > 0;
  const batch = changed ? buildBatch(reward(groups, rules, changes), rules) : before;
  const update = done && (changed ? updateUnder(batch, before, done) : recordedUpdate(done));
  return stepMetrics({
    step: event.step,
    datasetOffset: event.datasetOffset,
    datasetSize,
    maxSteps: recordedRules.max_steps,
    maxLag: recordedRules.max_lag,
    learningRate: submitted?.rule.adam.learningRate ?? recordedRules.learning_rate,
    batch,
    update: update && updateMetrics(batch.examples, update),
    spans: event.spans,
    observed: event.observed,
    recent,
  });
}

function groupOf(group: RememberedGroup): Group {
  const { answers, ...sampled } = recall(group);
  return judged(
    sampled,
    answers,
    group.graded.map((event) => event!),
  );
}

/** The groups with the rewards of another format_coef. */
function reward(groups: readonly Group[], rules: TrainConfig, changes: ReplayChanges): readonly Group[] {
  if (changes.format_coef === undefined) return groups;
  return groups.map((group) => ({
    ...group,
    completions: group.completions.map((completion) => ({
      ...completion,
      grade: {
        ...completion.grade,
        reward: rewardOf(completion.grade, { formatCoef: rules.format_coef, fractional: rules.reward === "fraction" }),
      },
    })),
  }));
}

const recordedUpdate = ({ event, logprobs }: NonNullable<OpenStep["done"]>): TrainStepResult => ({
  lossSum: event.lossSum,
  server: event.server,
  logprobs,
});

/** The update on another choice of examples or advantages: the trainer's logprobs are known, the loss follows from them. */
function updateUnder(
  batch: Batch,
  before: Batch,
  { logprobs }: NonNullable<OpenStep["done"]>,
): TrainStepResult | undefined {
  if (!logprobs) return undefined;
  const slices = new Map<string, Float32Array>();
  let offset = 0;
  for (const example of before.examples) {
    const length = actionsOf(example).length;
    slices.set(`${example.group} ${example.sample}`, logprobs.subarray(offset, offset + length));
    offset += length;
  }
  const known = batch.examples.every(({ group, sample }) => slices.has(`${group} ${sample}`));
  if (!known) return undefined;
  let lossSum = 0;
  const joined: number[] = [];
  for (const example of batch.examples) {
    const trained = slices.get(`${example.group} ${example.sample}`)!;
    const sampled = actionsOf(example);
    const advantages = (example.datum.lossFnInputs["advantages"]!.data as Float32Array).subarray(example.firstAction);
    for (const [index, logprob] of trained.entries()) {
      lossSum -= Math.exp(logprob - sampled[index]!) * advantages[index]!;
      joined.push(logprob);
    }
  }
  return { lossSum, server: {}, logprobs: Float32Array.from(joined) };
}

const actionsOf = ({ datum, firstAction }: BatchExample) =>
  (datum.lossFnInputs["logprobs"]!.data as Float32Array).subarray(firstAction);
