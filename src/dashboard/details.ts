// One step, group or answer of a run as the page gets it.
import { extractCode } from "../grading/extract.ts";
import { type BatchGroup, type Phase, readBatch } from "../runs/batch.ts";
import type { Grade } from "../runs/events.ts";
import type { RunIndex } from "./run-index.ts";

/** Texts are cut to this in a group; the whole is read for one answer. */
const groupTextLength = 20_000;
const answerTextLength = 2_000_000;
/** Of a question, in a list of groups. */
const listedQuestionLength = 400;

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

/** Every group of a step or evaluation, without its answers' texts; questions are cut. */
export function readGroups(index: RunIndex, phase: Phase, batch: number) {
  return readBatch(index, phase, batch).groups.map((group) => {
    const summary = summaryOf(group);
    return { ...summary, question: summary.question?.slice(0, listedQuestionLength) ?? null };
  });
}

/** One group with its answers. */
export function detailsOf(group: BatchGroup) {
  const summary = summaryOf(group);
  return { ...summary, samples: summary.samples.map((sample) => detailOf(sample, group, groupTextLength)) };
}

/** One answer, as long as it is. */
export function readSample(
  index: RunIndex,
  place: { phase: Phase; batch: number; group: number; sample: number },
): SampleDetail | undefined {
  const [group] = readBatch(index, place.phase, place.batch, place.group).groups;
  const summary = group && summaryOf(group).samples[place.sample];
  return summary && detailOf(summary, group, answerTextLength);
}

function summaryOf({ sampled, graded, judged }: BatchGroup) {
  return {
    group: sampled.group,
    problem: sampled.problem,
    source: sampled.source,
    /** What was asked; null: the journal does not have it. */
    question: sampled.question ?? null,
    policy: sampled.policy,
    outcome: judged?.outcome ?? null,
    skipped: judged?.skipped ?? false,
    start: sampled.start,
    end: sampled.end,
    samples: sampled.samples.map(({ tokens, truncated }, sample): SampleSummary => {
      const grade = graded[sample]?.grade;
      return {
        sample,
        verdict: grade?.verdict ?? null,
        status: grade?.status ?? "waiting",
        reward: figure(grade?.reward),
        advantage: figure(judged?.advantages[sample]),
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

function detailOf(summary: SampleSummary, { sampled, graded }: BatchGroup, longest: number): SampleDetail {
  const { text } = sampled.samples[summary.sample]!;
  const grade = graded[summary.sample]?.grade;
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

/** A figure that JSON can carry. */
const figure = (value: number | null | undefined): number | null =>
  value !== null && value !== undefined && Number.isFinite(value) ? value : null;
