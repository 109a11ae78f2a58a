// What a recorded run's figures follow from, computed again from its journal without a server: under the recorded config they come out
// as they were recorded; under a changed one they show what would have differed.
import type { z } from "zod";
import { entryOf } from "../core/maps.ts";
import { rewardOf } from "../grading/index.ts";
import type { Arrays, EventOf, JournalEntry, Span, UpdateRule } from "../runs/events.ts";
import { isGroupUndone, isStepUndone, undoSteps } from "../runs/rewinds.ts";
import { type Batch, type BatchExample, buildBatch } from "./batch.ts";
import { completionOf } from "./completion.ts";
import { TrainConfig } from "./config.ts";
import { keysWith } from "./config-roles.ts";
import { ownValues } from "./datums.ts";
import { evaluationMetrics, summarizeOutcomes } from "./evaluate.ts";
import { rowsOf, sampledUntil } from "./group-rows.ts";
import { maskedCount } from "./mask.ts";
import { answerLoss } from "./policy-losses.ts";
import type { TrainPlace } from "./recovery.ts";
import { valuesOf, withReferences } from "./references.ts";
import { placeKey, type RememberedGroup, rememberGroup } from "./remembered-groups.ts";
import { TrainError } from "./resume.ts";
import { type Group, groupOf } from "./rollout.ts";
import { stepMetrics, updateMetrics } from "./step-metrics.ts";
import type { TrainStepResult } from "./train-step.ts";
import { trainedGrade } from "./weighted.ts";

/** Settings that decide what is made of recorded groups; any other would need new answers or new updates. */
export const replayKeys = keysWith("replayed");
export type ReplayChanges = Partial<Pick<TrainConfig, (typeof replayKeys)[number]>>;

/** One step or evaluation: its figures as recorded and as they come out now. */
export interface Replayed {
  what: "step" | "evaluation";
  step: number;
  recorded: Readonly<Record<string, number>>;
  now: Readonly<Record<string, number>>;
  /** Recorded figures that the changes would alter and that only a server can compute; they are not in `now`. */
  notComputed: readonly string[];
  /** Changes that say nothing about this step, and why. */
  notes: readonly string[];
}

/** Settings that figures follow from. Others may have had values that are refused today. */
const ReplayConfig = TrainConfig.pick({
  max_steps: true,
  max_lag: true,
  tail: true,
  reward: true,
  prompts_per_step: true,
  max_tokens: true,
  overlong_buffer: true,
  overlong_penalty: true,
  reward_weights: true,
  fill_batch: true,
}).strip();

/** What a step's figures are made of besides its groups, as far as the journal was read. */
interface OpenStep {
  submitted?: { event: EventOf<"update-submitted">; session: Session; arrays: Arrays };
  done?: { event: EventOf<"update-done">; logprobs: Float32Array | undefined };
}

/** The settings that a process recorded. */
interface Session {
  config: z.output<typeof ReplayConfig>;
  datasetSize: number;
  /** Set where rewards are not those of the loop's own grader: who gave them. */
  ownJudge: string | undefined;
}

/** Computes every recorded step and evaluation again. */
export function* replay(entries: Iterable<JournalEntry>, changes: ReplayChanges): Generator<Replayed, void, undefined> {
  const open = new Map<number, OpenStep>();
  const groups = new Map<string, RememberedGroup>();
  let done: { step: number; spans: readonly Span[] }[] = [];
  let session: Session | undefined;
  const stepOf = (step: number) => entryOf<number, OpenStep>(open, step, () => ({}));
  const forget = (isOver: (group: RememberedGroup) => boolean) => {
    for (const [key, group] of groups) if (isOver(group)) groups.delete(key);
  };
  for (const entry of entries) {
    const { event, arrays } = entry;
    if ("phase" in event) {
      if (event.phase === "train") rememberGroup(groups, event, entry);
    } else if (event.type === "started") session = sessionOf(event.config);
    else if (event.type === "update-submitted" && session)
      stepOf(event.step).submitted = { event, session, arrays: arrays() };
    else if (event.type === "update-done") {
      const logprobs = arrays()["logprobs"];
      stepOf(event.step).done = { event, logprobs: logprobs instanceof Float32Array ? logprobs : undefined };
    } else if (event.type === "rewound") {
      undoSteps(event.to, open);
      forget(({ sampled }) => isGroupUndone(sampled, event.to));
      done = done.filter(({ step }) => !isStepUndone(step, event.to));
    } else if (event.type === "step-done" && session) {
      const facts = stepOf(event.step);
      const recorded = (places: readonly TrainPlace[]) =>
        places.flatMap((place) => groups.get(placeKey({ phase: "train", ...place })) ?? []);
      const trained = recorded(facts.submitted?.event.groups ?? []);
      // What it left to later steps is all that is needed further.
      const left = new Set(recorded(facts.submitted?.event.carried ?? []));
      forget((group) => group.sampled.batch <= event.step && !left.has(group));
      for (const step of [...open.keys()]) if (step <= event.step) open.delete(step);
      done.push(event);
      yield replayStep(event, facts, trained, session, changes, done);
    } else if (event.type === "evaluated") {
      const seconds = { "time/evaluate": (event.end - event.start) / 1000 };
      const now = { ...evaluationMetrics(summarizeOutcomes(event.outcomes)), ...seconds };
      yield { what: "evaluation", step: event.step, recorded: event.metrics, now, notComputed: [], notes: [] };
    }
  }
}

function sessionOf(recorded: Readonly<Record<string, unknown>>): Session {
  const judge = String(recorded["sandbox"] ?? "");
  return {
    config: ReplayConfig.parse(recorded),
    datasetSize: Number(recorded["train_problems"] ?? 1),
    ownJudge: judge.startsWith("own ") ? judge : undefined,
  };
}

function replayStep(
  event: EventOf<"step-done">,
  { submitted, done }: OpenStep,
  remembered: readonly RememberedGroup[],
  { config, datasetSize }: Session,
  changes: ReplayChanges,
  steps: readonly { spans: readonly Span[] }[],
): Replayed {
  if (remembered.some(({ hasArrays }) => !hasArrays) || !submitted)
    throw new TrainError(
      "rl/thinned",
      `The tokens of step ${event.step} were dropped from the journal (keep_journal=checkpoint), so it cannot be replayed. Train with keep_journal=all to keep them.`,
    );
  const { rule } = submitted.event;
  const groups = remembered.map(recordedGroup);
  const before = referred(buildBatch(groups, rule), rule, submitted.arrays);
  const { rewarded, notes } = rewardAnew(groups, submitted.session, changes);
  const batch = referredAs(before, buildBatch(rewarded, changedRule(rule, changes)), rule);
  const isSame = sameExamples(batch, before);
  const update = done && (isSame ? recordedUpdate(done) : updateUnder(batch, before, rule, done));
  const now = stepMetrics({
    step: event.step,
    datasetOffset: event.datasetOffset,
    datasetSize,
    config,
    rule,
    batch,
    update: update && updateMetrics(batch.examples, update),
    spans: event.spans,
    observed: event.observed,
    steps,
  });
  // Without an example nothing would have been trained: these figures would really be missing.
  const needsServer = done && !isSame && batch.examples.length > 0;
  const figures = needsServer ? Object.keys(updateMetrics(before.examples, recordedUpdate(done))) : [];
  const notComputed = figures.filter((name) => now[name] === undefined && event.metrics[name] !== undefined);
  return { what: "step", step: event.step, recorded: event.metrics, now, notComputed, notes };
}

/** A batch with what its references said of it. */
function referred(batch: Batch, rule: UpdateRule, arrays: Arrays): Batch {
  const values = valuesOf(arrays, batch.examples, rule);
  return values && rule.references.length > 0 ? withReferences(batch, rule, values) : batch;
}

/** Another choice of the same answers, with what was said of each; without where nothing was said of one. */
function referredAs(before: Batch, batch: Batch, rule: UpdateRule): Batch {
  const places = new Map(before.examples.map((example, index) => [nameOf(example), index]));
  const indices = batch.examples.flatMap((example) => places.get(nameOf(example)) ?? []);
  if (!before.references || indices.length < batch.examples.length) return batch;
  const chosen = [...before.references].map(
    ([name, values]) => [name, indices.map((index) => values[index]!)] as const,
  );
  return withReferences(batch, rule, new Map(chosen));
}

const changedRule = (rule: UpdateRule, changes: ReplayChanges): UpdateRule => ({
  ...rule,
  ...(changes.advantage !== undefined && { advantage: changes.advantage }),
  ...(changes.loss_scale !== undefined && { lossScale: changes.loss_scale }),
  ...(changes.mask_truncated !== undefined && { maskTruncated: changes.mask_truncated }),
});

function recordedGroup(group: RememberedGroup): Group {
  const verdicts = group.graded.map((event) => event!);
  const rows = rowsOf(group);
  return groupOf(group.sampled, {
    prompt: group.arrays()["prompt"] as Int32Array,
    completions: verdicts.map(({ grade }, sample) => completionOf(rows[sample]!, grade)),
    verdicts,
    sampledUntil: sampledUntil(group),
  });
}

/** The groups with the rewards of another format_coef; those that somebody else gave stay as they are. */
function rewardAnew(
  groups: readonly Group[],
  { config, ownJudge }: Session,
  { format_coef: formatCoef }: ReplayChanges,
): { rewarded: readonly Group[]; notes: string[] } {
  if (formatCoef === undefined) return { rewarded: groups, notes: [] };
  if (ownJudge !== undefined)
    return { rewarded: groups, notes: [`format_coef changes nothing: the rewards were given by an ${ownJudge}`] };
  const rules = { formatCoef, fractional: config.reward === "fraction" };
  const rewarded = groups.map((group) => ({
    ...group,
    completions: group.completions.map((completion) => ({
      ...completion,
      grade: trainedGrade(
        { ...completion.grade, reward: rewardOf(completion.grade, rules) },
        completion.tokens.length,
        config,
        "tests",
      ),
    })),
  }));
  return { rewarded, notes: [] };
}

const recordedUpdate = ({ event, logprobs }: NonNullable<OpenStep["done"]>): TrainStepResult => ({
  lossSum: event.lossSum,
  server: event.server,
  logprobs,
});

const nameOf = ({ group, sample, part }: BatchExample) => `${group} ${sample} ${part}`;

/** Whether two batches are the same to a server. */
function sameExamples(a: Batch, b: Batch): boolean {
  return (
    a.examples.length === b.examples.length &&
    a.examples.every((example, index) => {
      const other = b.examples[index]!;
      if (nameOf(example) !== nameOf(other)) return false;
      const [own, others] = [ownValues(example, "advantages"), ownValues(other, "advantages")];
      return own.every((advantage, place) => advantage === others[place]);
    })
  );
}

/**
 * The update on another choice of examples or advantages: the trainer's log-probabilities are known, the loss follows from them. Undefined
 * where it does not: with several substeps the later ones would have met other weights, and some examples or losses are not known.
 */
function updateUnder(
  batch: Batch,
  before: Batch,
  { lossFn, lossFnConfig, substeps, mismatch }: UpdateRule,
  { logprobs }: NonNullable<OpenStep["done"]>,
): TrainStepResult | undefined {
  if (!logprobs || substeps > 1 || mismatch !== "none") return undefined;
  const slices = new Map<string, Float32Array>();
  let offset = 0;
  for (const example of before.examples) {
    const length = maskedCount(example.mask);
    slices.set(nameOf(example), logprobs.subarray(offset, offset + length));
    offset += length;
  }
  let lossSum = 0;
  const joined: number[] = [];
  for (const example of batch.examples) {
    const trained = slices.get(nameOf(example));
    if (!trained) return undefined;
    const [sampled, advantages] = [ownValues(example, "logprobs"), ownValues(example, "advantages")];
    const loss = answerLoss(lossFn, lossFnConfig, { trained, sampled, advantages });
    if (loss === undefined) return undefined;
    lossSum += loss;
    for (const logprob of trained) joined.push(logprob);
  }
  return { lossSum, server: {}, logprobs: Float32Array.from(joined) };
}
