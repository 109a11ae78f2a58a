// One step, group or answer of a run as the page gets it.
import { type LanguageName, languageNamed, languageOf } from "../core/languages/languages.ts";
import { extractAnswer } from "../grading/extract.ts";
import { failedLine } from "../grading/failed-line.ts";
import { type BatchGroup, carriedInto, type Phase, readBatch } from "../runs/batch.ts";
import { episodeLine, turnsOf, writtenOf } from "../runs/turns.ts";
import type { Syntax } from "./page/text.js";
import type { RunIndex } from "./run-index.ts";

/** Texts are cut to this in a group; the whole is read for one answer. */
const groupTextLength = 20_000;
const answerTextLength = 2_000_000;
/** Of a question, in a list of groups. */
const listedQuestionLength = 400;

/** A group in a list. */
export type Group = ReturnType<typeof readGroups>[number];
/** An answer in a list. */
export type SampleSummary = Group["samples"][number];
/** An answer with its texts, as a group shows it. */
export type SampleDetail = ReturnType<typeof detailOf>;

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

/** One answer, as long as it is; of an episode, with its whole conversation. */
export function readSample(index: RunIndex, phase: Phase, batch: number, place: number, sample: number) {
  const [group] = readBatch(index, phase, batch, place).groups;
  const summary = group && summaryOf(group).samples[sample];
  if (!summary) return undefined;
  const { episode: line, ...detail } = detailOf(summary, group, answerTextLength);
  const talk = turnsOf(group, sample);
  const episode = group.graded[sample]?.grade.episode;
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
    samples: sampled.samples.map((_, sample) => {
      const grade = graded[sample]?.grade;
      const { tokens, truncated } = writtenOf(group, sample);
      return {
        sample,
        /** null: not judged yet. */
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
        /** Of an episode: how it went, in a line. */
        episode: grade?.episode ? episodeLine(grade.episode) : null,
      };
    }),
  };
}

function detailOf(summary: SampleSummary, group: BatchGroup, longest: number) {
  const { text } = writtenOf(group, summary.sample);
  const grade = group.graded[summary.sample]?.grade;
  const answer = extractAnswer(text, { thinking: true });
  const code = answer?.code ?? null;
  const language = languageNamed(grade?.language ?? /^\S*/.exec(answer?.info ?? "")![0]);
  return {
    ...summary,
    text: text.slice(0, longest),
    /** Of the whole text, where it was cut. */
    textLength: text.length,
    /** The program that was judged; null: the answer has none. */
    code: code === null ? null : code.slice(0, longest),
    /** Of the program's language: the one in which it was judged, else what its fence says. */
    syntax: syntaxOf(language),
    message: grade?.message,
    failure: grade?.failure,
    /** Of the program, where the failure names one. */
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
