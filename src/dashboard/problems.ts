// The run by problem: every attempt over the run, how often it was solved, and what two evaluations say of each.
import { ratesBySource } from "../runs/rates.ts";
import { notFound } from "./errors.ts";
import type { GroupEntry } from "./run-fold.ts";
import type { RunIndex } from "./run-index.ts";

export interface ProblemSummary {
  id: string;
  /** Groups of training; answers that were judged, and those that passed. */
  attempts: number;
  graded: number;
  passed: number;
  lastStep: number | null;
  outcomes: Record<string, number>;
  /** In evaluations: passed / judged, first and last. */
  evaluated: { first: number | null; last: number | null } | null;
}

/** Every problem that the run met, in the order it met them. */
export function problemsOf(index: RunIndex): ProblemSummary[] {
  const problems = new Map<string, ProblemSummary>();
  const of = (id: string): ProblemSummary => {
    let known = problems.get(id);
    if (!known) {
      known = { id, attempts: 0, graded: 0, passed: 0, lastStep: null, outcomes: {}, evaluated: null };
      problems.set(id, known);
    }
    return known;
  };
  for (const { step, entry } of index.fold.attempts()) {
    const problem = of(entry.problem);
    problem.attempts++;
    problem.lastStep = step;
    problem.outcomes[entry.outcome] = (problem.outcomes[entry.outcome] ?? 0) + 1;
    if (entry.graded >= 0) {
      problem.graded += entry.graded;
      problem.passed += entry.passed;
    }
  }
  for (const { outcomes } of ordered(index))
    for (const { id, samples, passed } of outcomes) {
      const problem = of(id);
      const rate = samples > 0 ? passed / samples : null;
      problem.evaluated = { first: problem.evaluated ? problem.evaluated.first : rate, last: rate };
    }
  return [...problems.values()];
}

/** One problem: each attempt with what it came to, and each evaluation. */
export function problemOf(index: RunIndex, id: string) {
  const attempts: ({ step: number; group: number } & Omit<GroupEntry, "problem">)[] = [];
  for (const { step, group, entry } of index.fold.attempts()) {
    if (wellFormed(entry.problem) !== id) continue;
    const { problem: _, ...rest } = entry;
    attempts.push({ step, group, ...rest });
  }
  const evaluations = ordered(index).flatMap(({ step, outcomes }) => {
    const group = outcomes.findIndex((outcome) => wellFormed(outcome.id) === id);
    return group < 0 ? [] : [{ step, group, ...outcomes[group]! }];
  });
  if (attempts.length === 0 && evaluations.length === 0) throw notFound(`Problem ${id}`);
  return { id, attempts, evaluations };
}

/** What one evaluation solved and another did not, problem by problem. */
export function compareEvaluationsOf(index: RunIndex, a: number, b: number) {
  const [before, after] = [index.fold.evaluations.get(a), index.fold.evaluations.get(b)];
  if (!before || !after) throw notFound(`The evaluation of step ${before ? b : a}`);
  const known = new Map(before.outcomes.map((outcome, group) => [outcome.id, { outcome, group }]));
  const rows = after.outcomes.flatMap((outcome, group) => {
    const was = known.get(outcome.id);
    if (!was) return [];
    return [
      {
        id: outcome.id,
        source: outcome.source,
        before: rate(was.outcome),
        after: rate(outcome),
        groupBefore: was.group,
        groupAfter: group,
      },
    ];
  });
  const [from, to] = [ratesBySource(before.outcomes), ratesBySource(after.outcomes)];
  const sources = [...new Set([...Object.keys(from), ...Object.keys(to)])];
  return {
    a,
    b,
    rows,
    sources: sources.map((source) => ({ source, before: from[source] ?? null, after: to[source] ?? null })),
  };
}

/** As an address can hold it. */
const wellFormed = (text: string) => text.replaceAll(/\p{Cs}/gu, "\uFFFD");

const rate = ({ samples, passed }: { samples: number; passed: number }) => (samples > 0 ? passed / samples : null);

const ordered = (index: RunIndex) => [...index.fold.evaluations.values()].sort((a, b) => a.step - b.step);
