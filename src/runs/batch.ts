// One batch of training, or one evaluation, with every answer: read from the journal when somebody looks at it.
import type { Frame } from "./cursor.ts";
import type { Arrays, EventOf } from "./events.ts";
import { framesOf } from "./read-journal.ts";
import type { RecordedGroup } from "./rollouts.ts";
import { type JournalWindow, RunView } from "./view.ts";

export type Phase = "train" | "eval";
type SubmittedGroup = EventOf<"update-submitted">["groups"][number];

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

/** A group with everything that is known of it. */
export interface BatchGroup extends RecordedGroup {
  arrays(): Arrays;
  /** What training made of it; undefined until its update was submitted, and of evaluations. */
  judged: SubmittedGroup | undefined;
}

export interface Batch {
  phase: Phase;
  /** The step; of an evaluation, the version that it measures. */
  batch: number;
  /** In order; a group that is still being sampled is not there. */
  groups: BatchGroup[];
}

/** Reads a batch, or one group of it; `groups` is empty where the journal has none. */
export function readBatch(run: ReadableRun, phase: Phase, batch: number, only?: number): Batch {
  const groups = new Map<number, BatchGroup>();
  const window = phase === "train" ? run.view.windowOf(batch) : run.view.windowOfEvaluation(batch);
  const submitted = phase === "train" ? submittedGroups(run, batch) : [];
  for (const frame of window ? run.frames(window) : []) {
    if (frame.bulk !== "group-sampled" && frame.bulk !== "graded") continue;
    const event = frame.event() as EventOf<"group-sampled" | "graded">;
    if (event.phase !== phase || event.batch !== batch || (only !== undefined && event.group !== only)) continue;
    if (event.type === "graded") {
      const group = groups.get(event.group);
      if (group) group.graded[event.sample] = event;
    } else
      groups.set(event.group, { sampled: event, arrays: frame.arrays, graded: [], judged: submitted[event.group] });
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

/** The tokens of one answer; undefined when they were thinned from the journal. `batch`: with all its groups. */
export function answerLogprobs(
  run: ReadableRun,
  batch: Batch,
  group: BatchGroup,
  sample: number,
): AnswerLogprobs | undefined {
  const { tokens, logprobs } = group.arrays();
  if (!(tokens instanceof Int32Array) || !(logprobs instanceof Float32Array)) return undefined;
  const counts = group.sampled.samples.map((answer) => answer.tokens);
  const start = counts.slice(0, sample).reduce((sum, count) => sum + count, 0);
  const end = start + (counts[sample] ?? 0);
  return {
    tokens: tokens.subarray(start, end),
    sampler: logprobs.subarray(start, end),
    trainer: trainerLogprobs(run, batch, group, sample),
  };
}

/** The trainer's are stored end to end for all trained answers, in the order of groups and samples. */
function trainerLogprobs(run: ReadableRun, batch: Batch, group: BatchGroup, sample: number): Float32Array | undefined {
  const done = batch.phase === "train" ? run.view.updates.get(batch.batch)?.done : undefined;
  const all = done && readAt(run, done, (frame) => frame.arrays()["logprobs"]);
  if (!(all instanceof Float32Array)) return undefined;
  let offset = 0;
  for (const other of batch.groups)
    for (const index of other.judged?.trained ?? []) {
      const { tokens } = other.sampled.samples[index]!;
      if (other === group && index === sample) return all.subarray(offset, offset + tokens);
      offset += tokens;
    }
  return undefined;
}

/** The groups of a step as its update saw them. */
function submittedGroups(run: ReadableRun, step: number): readonly SubmittedGroup[] {
  const position = run.view.updates.get(step)?.submitted;
  return position ? readAt(run, position, (frame) => frame.event() as EventOf<"update-submitted">).groups : [];
}

/** What is read of the frame at a position. */
function readAt<T>(run: ReadableRun, position: JournalWindow["from"], read: (frame: Frame) => T): T {
  for (const frame of run.frames({ from: position, to: undefined })) return read(frame);
  throw new Error("the journal ends before a record that was there");
}
