// Evaluation: every test problem sampled and graded, Pass@1 and pass@k with intervals, per source; two evaluations compared in pairs.
import type { SamplingClient } from "../client/index.ts";
import { Random } from "../core/random.ts";
import { type RolloutParts, rollOut, type Task } from "./rollout.ts";
import { mcnemarExact, mean, passAtK, wilsonInterval } from "./statistics.ts";

/** One problem's outcome: enough to compute every figure and to compare two evaluations problem by problem. */
export interface ProblemOutcome {
  id: string;
  source: string;
  /** Graded samples; ungraded ones are counted apart and never as failures. */
  samples: number;
  passed: number;
  ungraded: number;
  well_formed: number;
  truncated: number;
  statuses: Record<string, number>;
}

export interface Rate {
  /** Mean over problems of the share of samples that passed. */
  rate: number;
  low: number;
  high: number;
  problems: number;
}

export interface Evaluation {
  outcomes: ProblemOutcome[];
  pass1: Rate;
  bySource: Record<string, Rate>;
  /** pass@k for k = 1, 2, 4 … up to the number of samples. */
  passAtK: Record<number, number>;
  formatRate: number;
  truncatedRate: number;
  /** Problems without a single verdict. */
  ungradedProblems: number;
  statuses: Record<string, number>;
}

export interface EvaluateSettings {
  samplesPerTask: number;
  temperature: number;
  seed: number | undefined;
}

/** Samples and grades every task. */
export async function evaluate(
  sampler: SamplingClient,
  tasks: readonly Task[],
  settings: EvaluateSettings,
  parts: RolloutParts,
): Promise<Evaluation> {
  const { seed } = settings;
  const groups = await rollOut(
    sampler,
    tasks,
    {
      samplesPerTask: settings.samplesPerTask,
      temperature: settings.temperature,
      seedFor: (task) => (seed === undefined ? undefined : new Random("evaluation", seed, task.id).uint32()),
    },
    parts,
  );
  return summarizeOutcomes(
    groups.map(({ task, completions }) => {
      const graded = completions.filter(({ grade }) => grade.verdict !== "ungraded");
      const statuses: Record<string, number> = {};
      for (const { grade } of completions) statuses[grade.status] = (statuses[grade.status] ?? 0) + 1;
      return {
        id: task.id,
        source: task.source,
        samples: graded.length,
        passed: graded.filter(({ grade }) => grade.verdict === "pass").length,
        ungraded: completions.length - graded.length,
        well_formed: completions.filter(({ grade }) => grade.formatOk).length,
        truncated: completions.filter(({ truncated }) => truncated).length,
        statuses,
      };
    }),
  );
}

/** All figures from the outcomes alone. */
export function summarizeOutcomes(outcomes: ProblemOutcome[]): Evaluation {
  const graded = outcomes.filter(({ samples }) => samples > 0);
  const sources = [...new Set(graded.map(({ source }) => source))].sort();
  const fewest = Math.min(...graded.map(({ samples }) => samples));
  const ks: number[] = [];
  for (let k = 1; graded.length > 0 && k <= fewest; k *= 2) ks.push(k);
  const total = (value: (outcome: ProblemOutcome) => number) =>
    outcomes.reduce((sum, outcome) => sum + value(outcome), 0);
  const sampled = total(({ samples, ungraded }) => samples + ungraded);
  const statuses: Record<string, number> = {};
  for (const outcome of outcomes)
    for (const [status, count] of Object.entries(outcome.statuses)) statuses[status] = (statuses[status] ?? 0) + count;
  return {
    outcomes,
    pass1: rateOf(graded),
    bySource: Object.fromEntries(
      sources.map((source) => [source, rateOf(graded.filter((outcome) => outcome.source === source))]),
    ),
    passAtK: Object.fromEntries(
      ks.map((k) => [k, mean(graded.map(({ samples, passed }) => passAtK(samples, passed, k)))!]),
    ),
    formatRate: sampled === 0 ? 0 : total(({ well_formed }) => well_formed) / sampled,
    truncatedRate: sampled === 0 ? 0 : total(({ truncated }) => truncated) / sampled,
    ungradedProblems: outcomes.length - graded.length,
    statuses,
  };
}

/** The interval treats problems as the independent trials, which is exact for one sample each. */
function rateOf(outcomes: readonly ProblemOutcome[]): Rate {
  const rate = mean(outcomes.map(({ samples, passed }) => passed / samples)) ?? 0;
  const [low, high] = wilsonInterval(rate * outcomes.length, outcomes.length);
  return { rate, low, high, problems: outcomes.length };
}

export function evaluationMetrics(evaluation: Evaluation): Record<string, number> {
  const metrics: Record<string, number> = {
    "eval/pass@1": evaluation.pass1.rate,
    "eval/pass@1_low": evaluation.pass1.low,
    "eval/pass@1_high": evaluation.pass1.high,
    "eval/n": evaluation.pass1.problems,
    "eval/format_rate": evaluation.formatRate,
    "eval/truncated_rate": evaluation.truncatedRate,
    "eval/ungraded": evaluation.ungradedProblems,
  };
  for (const [k, value] of Object.entries(evaluation.passAtK)) if (k !== "1") metrics[`eval/pass@${k}`] = value;
  for (const [source, rate] of Object.entries(evaluation.bySource)) metrics[`eval/${source}/pass@1`] = rate.rate;
  return metrics;
}

export interface Comparison {
  /** Problems graded in both. */
  problems: number;
  gained: number;
  lost: number;
  before: number;
  after: number;
  pValue: number;
}

/** Compares two evaluations on the problems they share. A problem counts as solved when most of its samples passed. */
export function compareEvaluations(before: readonly ProblemOutcome[], after: readonly ProblemOutcome[]): Comparison {
  const solved = (outcome: ProblemOutcome) => outcome.passed * 2 > outcome.samples;
  const earlier = new Map(before.filter(({ samples }) => samples > 0).map((outcome) => [outcome.id, solved(outcome)]));
  const pairs = after
    .filter(({ id, samples }) => samples > 0 && earlier.has(id))
    .map((outcome) => ({ was: earlier.get(outcome.id)!, is: solved(outcome) }));
  const count = (test: (pair: { was: boolean; is: boolean }) => boolean) => pairs.filter(test).length;
  const gained = count(({ was, is }) => !was && is);
  const lost = count(({ was, is }) => was && !is);
  return {
    problems: pairs.length,
    gained,
    lost,
    before: count(({ was }) => was) / (pairs.length || 1),
    after: count(({ is }) => is) / (pairs.length || 1),
    pValue: mcnemarExact(gained, lost),
  };
}

/** A fixed share of every source, drawn by seed; 0 keeps all. The order of the tasks is kept. */
export function stratifiedSubset<Item extends { id: string; source: string }>(
  items: readonly Item[],
  most: number,
  seed: number,
): Item[] {
  if (most <= 0 || items.length <= most) return [...items];
  const bySource = groupBySource(items);
  const chosen = new Set<Item>();
  // Largest remainders: the shares add up to exactly `most`.
  const shares = [...bySource].map(([source, members]) => {
    const exact = (most * members.length) / items.length;
    return { source, members, take: Math.floor(exact), rest: exact - Math.floor(exact) };
  });
  let missing = most - shares.reduce((sum, { take }) => sum + take, 0);
  for (const share of [...shares].sort((a, b) => b.rest - a.rest || (a.source < b.source ? -1 : 1)))
    if (missing-- > 0) share.take++;
  for (const { source, members, take } of shares) {
    const random = new Random("subset", seed, source);
    const pool = [...members];
    for (let index = 0; index < take; index++) {
      const other = index + random.integer(pool.length - index);
      [pool[index], pool[other]] = [pool[other]!, pool[index]!];
      chosen.add(pool[index]!);
    }
  }
  return items.filter((item) => chosen.has(item));
}

function groupBySource<Item extends { source: string }>(items: readonly Item[]): Map<string, Item[]> {
  const groups = new Map<string, Item[]>();
  for (const item of items) {
    const group = groups.get(item.source);
    if (group) group.push(item);
    else groups.set(item.source, [item]);
  }
  return groups;
}
