// One step, group or answer of a run, read from the journal when somebody looks at it.
import { extractCode } from "../grading/extract.ts";
import type { Frame, JournalPosition } from "../runs/cursor.ts";
import type { Arrays, EventOf, Grade } from "../runs/events.ts";
import type { GroupEntry } from "./run-fold.ts";
import type { RunIndex } from "./run-index.ts";

export type Phase = "train" | "eval";

/** Texts are cut to this in a group; the whole is read for one answer. */
const groupTextLength = 20_000;
const answerTextLength = 2_000_000;
/** Of a question, in a list of groups. */
const listedQuestionLength = 400;

interface Found {
  sampled: EventOf<"group-sampled">;
  position: JournalPosition;
  graded: (EventOf<"graded"> | undefined)[];
}

export interface SampleSummary {
  sample: number;
  /** null: not judged yet. */
  verdict: Grade["verdict"] | null;
  status: string;
  reward: number | null;
  advantage: number | null;
  tokens: number;
  truncated: boolean;
  passed: number;
  total: number;
  flags: readonly string[];
  codeHash: string | null;
}

export interface GroupSummary {
  group: number;
  problem: string;
  source: string;
  /** What was asked; cut in a list of groups. Null: the journal does not have it. */
  question: string | null;
  policy: number;
  outcome: GroupEntry["outcome"] | null;
  skipped: boolean;
  start: number;
  end: number;
  samples: SampleSummary[];
}

export interface SampleDetail extends SampleSummary {
  text: string;
  /** Length of the whole text, where it was cut. */
  textLength: number;
  /** The program that was judged; null: the answer has none. */
  code: string | null;
  message: string | undefined;
  failure: Grade["failure"];
  wallMs: number | undefined;
  cached: boolean | undefined;
}

/** Every group of a step or evaluation, without its answers' texts. */
export function readGroups(index: RunIndex, phase: Phase, batch: number): GroupSummary[] {
  return [...found(index, phase, batch).entries()]
    .sort(([a], [b]) => a - b)
    .map(([group, item]) => {
      const summary = summaryOf(index, phase, batch, group, item);
      return { ...summary, question: summary.question?.slice(0, listedQuestionLength) ?? null };
    });
}

/** One group with its answers. */
export function readGroup(
  index: RunIndex,
  phase: Phase,
  batch: number,
  group: number,
): (Omit<GroupSummary, "samples"> & { samples: SampleDetail[] }) | undefined {
  const item = found(index, phase, batch, group).get(group);
  if (!item) return undefined;
  const summary = summaryOf(index, phase, batch, group, item);
  return { ...summary, samples: summary.samples.map((sample) => detailOf(sample, item, groupTextLength)) };
}

/** One answer, as long as it is. */
export function readSample(
  index: RunIndex,
  { phase, batch, group, sample }: { phase: Phase; batch: number; group: number; sample: number },
): SampleDetail | undefined {
  const item = found(index, phase, batch, group).get(group);
  const summary = item && summaryOf(index, phase, batch, group, item).samples[sample];
  return summary && detailOf(summary, item, answerTextLength);
}

/** A group's tokens and log-probabilities: the sampler's, and the trainer's of the samples that were trained on. */
export interface GroupTokens {
  prompt: Int32Array;
  /** By sample; undefined arrays: the journal no longer has them. */
  samples: { tokens: Int32Array; logprobs: Float32Array; trained: Float32Array | undefined }[];
}

export function readTokens(index: RunIndex, phase: Phase, batch: number, group: number): GroupTokens | undefined {
  const groups = found(index, phase, batch);
  const item = groups.get(group);
  if (!item) return undefined;
  const arrays = arraysAt(index, item.position);
  const { prompt, tokens, logprobs } = arrays as { prompt?: Int32Array; tokens?: Int32Array; logprobs?: Float32Array };
  if (!prompt || !tokens || !logprobs) return undefined;
  const trained = phase === "train" ? trainedOf(index, batch, groups) : new Map<string, Float32Array>();
  let offset = 0;
  const samples = item.sampled.samples.map(({ tokens: count }, sample) => {
    const slice = { from: offset, to: offset + count };
    offset += count;
    return {
      tokens: tokens.subarray(slice.from, slice.to),
      logprobs: logprobs.subarray(slice.from, slice.to),
      trained: trained.get(`${group} ${sample}`),
    };
  });
  return { prompt, samples };
}

/** The trainer's log-probabilities by "group sample": one array for all trained tokens of a step, in the order of its datums. */
function trainedOf(index: RunIndex, step: number, groups: ReadonlyMap<number, Found>): Map<string, Float32Array> {
  const slices = new Map<string, Float32Array>();
  const entry = index.fold.steps.get(step);
  const logprobs = entry?.trained && (arraysAt(index, entry.trained)["logprobs"] as Float32Array | undefined);
  if (!logprobs) return slices;
  let offset = 0;
  for (const [group, { trained }] of submittedGroups(index, step).entries())
    for (const sample of trained ?? []) {
      const tokens = groups.get(group)?.sampled.samples[sample]?.tokens ?? 0;
      slices.set(`${group} ${sample}`, logprobs.subarray(offset, offset + tokens));
      offset += tokens;
    }
  return slices;
}

function summaryOf(index: RunIndex, phase: Phase, batch: number, group: number, item: Found): GroupSummary {
  const { sampled, graded } = item;
  const entry = phase === "train" ? index.fold.steps.get(batch)?.groups[group] : undefined;
  const advantages = phase === "train" ? submittedGroups(index, batch)[group]?.advantages : undefined;
  return {
    group,
    problem: sampled.problem,
    source: sampled.source,
    question: sampled.question ?? null,
    policy: sampled.policy,
    outcome: entry?.outcome ?? null,
    skipped: entry?.skipped ?? false,
    start: sampled.start,
    end: sampled.end,
    samples: sampled.samples.map(({ tokens, truncated }, sample) => {
      const grade = graded[sample]?.grade;
      return {
        sample,
        verdict: grade?.verdict ?? null,
        status: grade?.status ?? "waiting",
        reward: figure(grade?.reward),
        advantage: figure(advantages?.[sample]),
        tokens,
        truncated,
        passed: grade?.passed ?? 0,
        total: grade?.total ?? 0,
        flags: grade?.flags ?? [],
        codeHash: grade?.codeHash ?? null,
      };
    }),
  };
}

function detailOf(summary: SampleSummary, item: Found, longest: number): SampleDetail {
  const text = item.sampled.samples[summary.sample]!.text;
  const grade = item.graded[summary.sample]?.grade;
  const code = extractCode(text, { thinking: true });
  return {
    ...summary,
    text: text.slice(0, longest),
    textLength: text.length,
    code: code === null ? null : code.slice(0, longest),
    message: grade?.message,
    failure: grade?.failure,
    wallMs: figure(grade?.wallMs) ?? undefined,
    cached: grade?.cached,
  };
}

/** The groups of a batch, or one of them, with the verdicts on their answers. Later events of the same place replace earlier ones. */
function found(index: RunIndex, phase: Phase, batch: number, only?: number): Map<number, Found> {
  const groups = new Map<number, Found>();
  const window = phase === "train" ? index.fold.windowOf(batch) : index.fold.windowOfEvaluation(batch);
  if (!window) return groups;
  for (const frame of index.frames(window.from, window.to)) {
    if (frame.bulk === "update-done") continue;
    const event = frame.json();
    if (event.type !== "group-sampled" && event.type !== "graded") continue;
    if (event.phase !== phase || event.batch !== batch || (only !== undefined && event.group !== only)) continue;
    if (event.type === "group-sampled")
      groups.set(event.group, { sampled: event, position: frame.position, graded: [] });
    else {
      const group = groups.get(event.group);
      if (group) group.graded[event.sample] = event;
    }
  }
  return groups;
}

/** The groups of a step as its update saw them. */
function submittedGroups(index: RunIndex, step: number): EventOf<"update-submitted">["groups"] {
  const position = index.fold.steps.get(step)?.submitted;
  return position ? (frameAt(index, position).json() as EventOf<"update-submitted">).groups : [];
}

const arraysAt = (index: RunIndex, position: JournalPosition): Arrays => frameAt(index, position).arrays();

function frameAt(index: RunIndex, position: JournalPosition): Frame {
  for (const frame of index.frames(position, undefined)) return frame;
  throw new Error("the journal ends before a record that was there");
}

/** A figure that JSON can carry. */
const figure = (value: unknown): number | null => {
  const number = value === null || value === undefined ? Number.NaN : Number(value);
  return Number.isFinite(number) ? number : null;
};
