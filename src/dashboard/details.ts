// One step, group or answer of a run as the page gets it.
import { type LanguageName, languageNamed, languageOf } from "../core/languages/languages.ts";
import { extractAnswer } from "../grading/extract.ts";
import { failedLine } from "../grading/failed-line.ts";
import { type BatchGroup, carriedInto, type Phase, readBatch } from "../runs/batch.ts";
import type { Grade } from "../runs/events.ts";
import { writtenOf } from "../runs/rollouts.ts";
import { episodeLine, type SaidTurn, talkOf } from "../runs/talk.ts";
import type { Syntax } from "./page/text.js";
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
  /** Of an episode: how it went, in a line. */
  episode: string | null;
}

export interface SampleDetail extends SampleSummary {
  text: string;
  /** Length of the whole text, where it was cut. */
  textLength: number;
  /** The program that was judged; null: the answer has none. */
  code: string | null;
  /** Of the program's language: the one in which it was judged, else what its fence says. */
  syntax: Syntax;
  message: string | undefined;
  failure: Grade["failure"];
  /** Of the program, where the failure names one. */
  failedLine: number | undefined;
  wallMs: number | undefined;
  cached: boolean | undefined;
}

/** One answer by itself: of an episode, all that was said. */
export interface SampleTalk extends Omit<SampleDetail, "episode"> {
  episode: { line: string; ownSeconds: number | null; metrics: object; log: object } | null;
  talk: readonly SaidTurn[];
}

/** Every group of a step, what was carried over into it first, or of an evaluation, without its answers' texts; questions are cut. */
export function readGroups(index: RunIndex, phase: Phase, batch: number) {
  const carried = phase === "train" ? carriedInto(index, batch) : [];
  return [...carried, ...readBatch(index, phase, batch).groups].map((group) => {
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
): SampleTalk | undefined {
  const [group] = readBatch(index, place.phase, place.batch, place.group).groups;
  const summary = group && summaryOf(group).samples[place.sample];
  if (!summary) return undefined;
  const { episode: line, ...detail } = detailOf(summary, group, answerTextLength);
  const talk = talkOf(group, place.sample);
  const episode = group.graded[place.sample]?.grade.episode;
  if (!episode || line === null) return { ...detail, episode: null, talk: talk.length > 1 ? talk : [] };
  const { metrics, log, ownMs } = episode;
  const texts = Object.fromEntries(Object.entries(metrics).map(([name, value]) => [name, figure(value)]));
  const ownSeconds = figure(ownMs / 1000);
  return { ...detail, episode: { line, ownSeconds, metrics: texts, log }, talk };
}

function summaryOf(group: BatchGroup) {
  const { sampled, graded, judged, trainedIn } = group;
  return {
    batch: sampled.batch,
    group: sampled.group,
    /** The step whose update it is in. */
    trainedIn,
    problem: sampled.problem,
    source: sampled.source,
    /** What was asked; null: the journal does not have it. */
    question: sampled.question ?? null,
    policy: sampled.policy,
    outcome: judged?.outcome ?? null,
    skipped: judged?.skipped ?? false,
    start: sampled.start,
    end: sampled.end,
    samples: sampled.samples.map((_, sample): SampleSummary => {
      const grade = graded[sample]?.grade;
      const { tokens, truncated } = writtenOf(group, sample);
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
        episode: grade?.episode ? episodeLine(grade.episode) : null,
      };
    }),
  };
}

function detailOf(summary: SampleSummary, group: BatchGroup, longest: number): SampleDetail {
  const { text } = writtenOf(group, summary.sample);
  const grade = group.graded[summary.sample]?.grade;
  const answer = extractAnswer(text, { thinking: true });
  const code = answer?.code ?? null;
  const language = languageNamed(grade?.language ?? /^\S*/.exec(answer?.info ?? "")![0]);
  return {
    ...summary,
    text: text.slice(0, longest),
    textLength: text.length,
    code: code === null ? null : code.slice(0, longest),
    syntax: syntaxOf(language),
    message: grade?.message,
    failure: grade?.failure,
    failedLine: grade?.failure && failedLine(grade.failure.stderr, language),
    wallMs: figure(grade?.wallMs) ?? undefined,
    cached: grade?.cached,
  };
}

function syntaxOf(language: LanguageName | undefined): Syntax {
  const { comment, keywords } = languageOf(language);
  return { comment, ...(keywords === undefined ? {} : { keywords }) };
}

/** A figure that JSON can carry. */
const figure = (value: number | null | undefined): number | null =>
  value !== null && value !== undefined && Number.isFinite(value) ? value : null;
