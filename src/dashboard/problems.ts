// The run by problem as the page gets it: how often each was solved, one with every attempt, and what two evaluations say of each.
import { problemsOf } from "../runs/problems.ts";
import { type Rate, ratesBySource } from "../runs/rates.ts";
import type { RunView } from "../runs/view.ts";
import { notFound } from "./errors.ts";

export type ListedProblem = ReturnType<typeof listProblems>[number];
export type Comparison = ReturnType<typeof compareEvaluationsOf>;

/** Every problem that the run met, in the order it met them. */
export const listProblems = (view: RunView) =>
  [...problemsOf(view).values()].map(({ id, attempts, evaluations }) => {
    const sum = (pick: (attempt: (typeof attempts)[number]) => number) =>
      attempts.reduce((all, attempt) => all + pick(attempt), 0);
    const outcomes: Record<string, number> = {};
    for (const { outcome } of attempts) outcomes[outcome] = (outcomes[outcome] ?? 0) + 1;
    const [first, last] = [evaluations[0], evaluations.at(-1)];
    return {
      id,
      /** Groups of training; answers that were judged, and those that passed. */
      attempts: attempts.length,
      graded: sum(({ graded }) => graded),
      passed: sum(({ passed }) => passed),
      lastStep: attempts.at(-1)?.step ?? null,
      outcomes,
      /** In evaluations: the share that passed, first and last. */
      evaluated: first && last ? { first: rate(first), last: rate(last) } : null,
    };
  });

/** One problem: each attempt with what it came to, and each evaluation. */
export function problemOf(view: RunView, id: string) {
  // As an address can hold it.
  for (const problem of problemsOf(view).values()) if (wellFormed(problem.id) === id) return { ...problem, id };
  throw notFound(`Problem ${id}`);
}

/** What one evaluation solved and another did not, problem by problem. */
export function compareEvaluationsOf({ evaluations }: RunView, a: number, b: number) {
  const [before, after] = [evaluations.get(a), evaluations.get(b)];
  if (!before || !after) throw notFound(`The evaluation of step ${before ? b : a}`);
  const known = new Map(before.outcomes.map((outcome, group) => [outcome.id, { outcome, group }]));
  const rows = after.outcomes.flatMap((outcome, groupAfter) => {
    const was = known.get(outcome.id);
    if (!was) return [];
    const { id, source } = outcome;
    return [{ id, source, before: rate(was.outcome), after: rate(outcome), groupBefore: was.group, groupAfter }];
  });
  const [from, to] = [ratesBySource(before.outcomes), ratesBySource(after.outcomes)];
  const sources = [...new Set([...Object.keys(from), ...Object.keys(to)])];
  const rateIn = (rates: Readonly<Record<string, Rate>>, source: string): Rate | null => rates[source] ?? null;
  return {
    a,
    b,
    rows,
    sources: sources.map((source) => ({ source, before: rateIn(from, source), after: rateIn(to, source) })),
  };
}

const wellFormed = (text: string) => text.replaceAll(/\p{Cs}/gu, "\uFFFD");

const rate = ({ samples, passed }: { samples: number; passed: number }) => (samples > 0 ? passed / samples : null);
