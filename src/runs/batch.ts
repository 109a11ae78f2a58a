// One batch of training, or one evaluation, with every answer: read from the journal when somebody looks at it.
import { concat } from "../core/arrays.ts";
import type { Frame } from "./cursor.ts";
import type { Arrays, EventOf, UpdateGroup } from "./events.ts";
import { framesOf } from "./read-journal.ts";
import { turnPaths } from "./turn-paths.ts";
import { type RecordedGroup, turnsOf, writtenOf } from "./turns.ts";
import { type JournalWindow, RunView } from "./view.ts";

export type Phase = "train" | "eval";

/** A run's view, and the frames that it knows the places of. */
export interface ReadableRun {
  readonly view: RunView;
  frames(window: JournalWindow): Iterable<Frame>;
}

/** A run on disk as it is now. */
export const readableRun = (path: string): ReadableRun => ({
  view: RunView.read(path),
  frames: (window) => framesOf(path, window),
});

/** A further turn of a sample, and its tokens. */
export interface RecordedTurn {
  sampled: EventOf<"turn-sampled">;
  arrays(): Arrays;
}

/** A group with everything that is known of it. */
export interface BatchGroup extends RecordedGroup {
  arrays(): Arrays;
  turns: RecordedTurn[];
  /** What training made of it; undefined until its update was submitted, and of evaluations. */
  judged: UpdateGroup | undefined;
  /** The step whose update is on it: its batch's, or, carried over, a later one. */
  trainedIn: number;
}

export interface Batch {
  phase: Phase;
  /** The step; of an evaluation, the version that it measures. */
  batch: number;
  /** In order; a group that is still being sampled is not there. */
  groups: BatchGroup[];
}

/** What the update of a step is on, in its order: what was carried over, the oldest first, then groups of its own batch. */
export function readTrained(run: ReadableRun, step: number): BatchGroup[] {
  const isOf = ({ trainedIn }: BatchGroup) => trainedIn === step;
  return [...carriedInto(run, step), ...readBatch(run, "train", step).groups.filter(isOf)];
}

/** The groups of batches before that the update of a step is on. */
export function carriedInto(run: ReadableRun, step: number): BatchGroup[] {
  const batches = new Set(run.view.updates.get(step - 1)?.carried.map(({ batch }) => batch));
  const groups = [...batches].flatMap((batch) => readBatch(run, "train", batch).groups);
  return groups.filter(({ trainedIn }) => trainedIn === step);
}

/** Reads a batch, or one group of it; `groups` is empty where the journal has none. */
export function readBatch(run: ReadableRun, phase: Phase, batch: number, only?: number): Batch {
  const groups = new Map<number, BatchGroup>();
  const window = phase === "train" ? run.view.windowOf(batch) : run.view.windowOfEvaluation(batch);
  const trainedIn = (group?: number) => (phase === "train" ? run.view.lastUpdateOn(batch, group) : batch);
  const steps = Array.from({ length: trainedIn() - batch + 1 }, (_, later) => batch + later);
  const submitted = phase === "train" ? steps.flatMap((step) => submittedGroups(run, step)) : [];
  for (const frame of window ? run.frames(window) : []) {
    if (frame.bulk === undefined || frame.bulk === "update-done") continue;
    const event = frame.event() as EventOf<"group-sampled" | "graded" | "turn-sampled">;
    if (event.phase !== phase || event.batch !== batch || (only !== undefined && event.group !== only)) continue;
    if (event.type === "graded") {
      const group = groups.get(event.group);
      if (group) group.graded[event.sample] = event;
    } else if (event.type === "turn-sampled")
      groups.get(event.group)?.turns.push({ sampled: event, arrays: frame.arrays });
    else
      groups.set(event.group, {
        sampled: event,
        arrays: frame.arrays,
        graded: [],
        turns: [],
        judged: submitted.find((entry) => entry.batch === batch && entry.group === event.group),
        trainedIn: trainedIn(event.group),
      });
  }
  return { phase, batch, groups: [...groups.values()].sort((a, b) => a.sampled.group - b.sampled.group) };
}

/** The sampler's and the trainer's log-probabilities of one answer. */
export interface AnswerLogprobs {
  tokens: Int32Array;
  sampler: Float32Array;
  /** Undefined where it was not trained on, or the server gave none. */
  trainer: Float32Array | undefined;
}

/** One turn of a sample, with its tokens. */
export interface TurnTokens extends AnswerLogprobs {
  turn: number;
  parent: number | null;
  /** What the model was shown behind the turn before; all of the prompt where there is none. */
  context: Int32Array;
  /** Whether it counts; others are trained on nowhere. */
  counts: boolean;
}

/** The turns of a sample in their order; undefined when the tokens were thinned from the journal. */
export function turnTokens(run: ReadableRun, group: BatchGroup, sample: number): TurnTokens[] | undefined {
  const turns = turnsIn(group, sample);
  const all = turns && trainerLogprobs(run, group);
  if (!turns || !all) return turns;
  const { batch, group: place } = group.sampled;
  let offset = 0;
  for (const other of readTrained(run, group.trainedIn))
    for (const index of other.judged?.trained ?? []) {
      if (other.sampled.batch !== batch || other.sampled.group !== place || index !== sample) {
        offset += writtenOf(other, index).tokens;
        continue;
      }
      const counted = turns.flatMap(({ turn, counts }) => (counts ? [turn] : []));
      const order = turnPaths(turns, counted).flatMap(({ path, own }) => path.filter((turn) => own.has(turn)));
      for (const number of order) {
        const turn = turns.find((one) => one.turn === number)!;
        turn.trainer = all.subarray(offset, offset + turn.tokens.length);
        offset += turn.tokens.length;
      }
      return turns;
    }
  return turns;
}

function turnsIn(group: BatchGroup, sample: number): TurnTokens[] | undefined {
  const { prompt, tokens, logprobs } = group.arrays();
  if (!(prompt instanceof Int32Array && tokens instanceof Int32Array && logprobs instanceof Float32Array))
    return undefined;
  const lengths = group.sampled.samples.map((answer) => answer.tokens);
  const start = lengths.slice(0, sample).reduce((sum, length) => sum + length, 0);
  const end = start + (lengths[sample] ?? 0);
  const first = { context: prompt, tokens: tokens.subarray(start, end), logprobs: logprobs.subarray(start, end) };
  const further = group.turns
    .filter(({ sampled }) => sampled.sample === sample)
    .map(({ arrays }) => arrays() as typeof first);
  const turns = turnsOf(group, sample);
  const stored = turns.length > further.length ? [first, ...further] : further;
  return turns.map(({ turn, parent, counts }, place) => {
    const { context, tokens, logprobs: sampler } = stored[place]!;
    return { turn, parent, context, tokens, sampler, trainer: undefined, counts };
  });
}

/** The tokens of one answer, in all its turns that count; undefined when they were thinned from the journal. */
export function answerLogprobs(run: ReadableRun, group: BatchGroup, sample: number): AnswerLogprobs | undefined {
  const turns = turnTokens(run, group, sample)?.filter(({ counts }) => counts);
  return (
    turns && {
      tokens: concat(
        Int32Array,
        turns.map(({ tokens }) => tokens),
      ),
      sampler: floatsOf(turns.map(({ sampler }) => sampler)),
      trainer: turns.every(({ trainer }) => trainer) ? floatsOf(turns.map(({ trainer }) => trainer!)) : undefined,
    }
  );
}

const floatsOf = (parts: readonly Float32Array[]) => concat(Float32Array, parts);

/** The trainer's, stored end to end for all trained answers, in the order of groups, samples and their sequences. */
function trainerLogprobs(run: ReadableRun, { sampled, trainedIn }: BatchGroup): Float32Array | undefined {
  const done = sampled.phase === "train" ? run.view.updates.get(trainedIn)?.done : undefined;
  const all = done && readAt(run, done, (frame) => frame.arrays()["logprobs"]);
  return all instanceof Float32Array ? all : undefined;
}

/** The groups of a step as its update saw them. */
function submittedGroups(run: ReadableRun, step: number): readonly UpdateGroup[] {
  const position = run.view.updates.get(step)?.submitted;
  return position ? readAt(run, position, (frame) => frame.event() as EventOf<"update-submitted">).groups : [];
}

/** What is read of the frame at a position. */
function readAt<T>(run: ReadableRun, position: JournalWindow["from"], read: (frame: Frame) => T): T {
  for (const frame of run.frames({ from: position, to: undefined })) return read(frame);
  throw new Error("the journal ends before a record that was there");
}
