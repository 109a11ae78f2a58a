// Evaluation: every test problem sampled and graded, Pass@1 and pass@k with intervals, per source; two evaluations compared in pairs.
import { entryOf } from "../core/maps.ts";
import { Random } from "../core/random.ts";
import { mcnemarExact, mean, passAtK } from "../core/statistics.ts";
import type { ProblemOutcome } from "../runs/events.ts";
import { type Rate, rateOf, ratesBySource } from "../runs/rates.ts";
import { linkedController } from "./cancellation.ts";
import type { Policy } from "./policies.ts";
import type { Completion, Group, RollOut } from "./rollout.ts";
import type { Task } from "./tasks.ts";

export interface Evaluation {
  outcomes: ProblemOutcome[];
  /** Undefined when nothing was graded: missing is not zero. */
  pass1: Rate | undefined;
  bySource: Record<string, Rate>;
  /** pass@k for k = 1, 2, 4 … up to the number of samples. */
  passAtK: Record<number, number>;
  formatRate: number;
  truncatedRate: number;
  /** Problems without a single verdict. */
  ungradedProblems: number;
  statuses: Record<string, number>;
  /** Of episodes: means over the problems that have them. */
  figures: Record<string, number>;
}

/** Rolls out every task under one policy; `ks` as for summarizeOutcomes. After the first failure nothing is asked, or said, any more. */
export async function evaluate(
  tasks: readonly Task[],
  policy: Policy,
  rollOut: RollOut,
  signal: AbortSignal,
  ks?: readonly number[],
): Promise<Evaluation> {
  const all = linkedController(signal);
  const rolling = tasks.map((task, group) =>
    rollOut({ phase: "eval", batch: policy.version, group }, task, policy, all.signal),
  );
  try {
    return summarizeOutcomes((await Promise.all(rolling)).map(outcomeOf), ks);
  } catch (error) {
    all.abort(error);
    await Promise.allSettled(rolling);
    throw error;
  } finally {
    all.unlink();
  }
}

function outcomeOf({ problem, source, completions }: Group): ProblemOutcome {
  const graded = completions.filter(({ grade }) => grade.verdict !== "ungraded");
  const statuses: Record<string, number> = {};
  for (const { grade } of completions) statuses[grade.status] = (statuses[grade.status] ?? 0) + 1;
  return {
    id: problem,
    source,
    samples: graded.length,
    passed: graded.filter(({ grade }) => grade.verdict === "pass").length,
    ungraded: completions.length - graded.length,
    well_formed: completions.filter(({ grade }) => grade.formatOk).length,
    truncated: completions.filter(({ truncated }) => truncated).length,
    statuses,
    ...figuresOf(graded),
  };
}

/** Figures of episodes besides right and wrong; none for single answers. */
function figuresOf(graded: readonly Completion[]): Pick<ProblemOutcome, "figures"> {
  const played = graded.flatMap(({ grade: { reward, episode } }) =>
    episode ? [{ mean_reward: reward!, "episode/turns_mean": episode.turns.length, ...inEnv(episode.metrics) }] : [],
  );
  return played.length > 0 ? { figures: meansOf(played) } : {};
}

const inEnv = (metrics: Readonly<Record<string, number>>): Record<string, number> =>
  Object.fromEntries(Object.entries(metrics).map(([name, value]) => [`env/${name}`, value]));

/** The mean of each name over those that have it. */
function meansOf(all: readonly Readonly<Record<string, number>>[]): Record<string, number> {
  const names = new Set(all.flatMap((one) => Object.keys(one)));
  return Object.fromEntries(Array.from(names, (name) => [name, mean(all.flatMap((one) => one[name] ?? []))!]));
}

/** All figures from the outcomes alone; `wanted` are the k of pass@k, powers of two unless given. */
export function summarizeOutcomes(outcomes: ProblemOutcome[], wanted?: readonly number[]): Evaluation {
  const graded = outcomes.filter(({ samples }) => samples > 0);
  const fewest = Math.min(...graded.map(({ samples }) => samples));
  const ks: number[] = [];
  if (graded.length > 0 && wanted) ks.push(...wanted.filter((k) => k <= fewest));
  else for (let k = 1; graded.length > 0 && k <= fewest; k *= 2) ks.push(k);
  const total = (value: (outcome: ProblemOutcome) => number) =>
    outcomes.reduce((sum, outcome) => sum + value(outcome), 0);
  const sampled = total(({ samples, ungraded }) => samples + ungraded);
  const statuses: Record<string, number> = {};
  for (const outcome of outcomes)
    for (const [status, count] of Object.entries(outcome.statuses)) statuses[status] = (statuses[status] ?? 0) + count;
  return {
    outcomes,
    pass1: rateOf(graded),
    bySource: ratesBySource(graded),
    passAtK: Object.fromEntries(
      ks.map((k) => [k, mean(graded.map(({ samples, passed }) => passAtK(samples, passed, k)))!]),
    ),
    formatRate: sampled === 0 ? 0 : total(({ well_formed }) => well_formed) / sampled,
    truncatedRate: sampled === 0 ? 0 : total(({ truncated }) => truncated) / sampled,
    ungradedProblems: outcomes.length - graded.length,
    statuses,
    figures: meansOf(graded.map(({ figures = {} }) => figures)),
  };
}

export function evaluationMetrics(evaluation: Evaluation): Record<string, number> {
  const { pass1 } = evaluation;
  const metrics: Record<string, number> = {
    ...(pass1 && { "eval/pass@1": pass1.rate, "eval/pass@1_low": pass1.low, "eval/pass@1_high": pass1.high }),
    "eval/n": pass1?.problems ?? 0,
    "eval/format_rate": evaluation.formatRate,
    "eval/truncated_rate": evaluation.truncatedRate,
    "eval/ungraded": evaluation.ungradedProblems,
  };
  for (const [name, value] of Object.entries(evaluation.figures)) metrics[`eval/${name}`] = value;
  for (const [k, value] of Object.entries(evaluation.passAtK)) if (k !== "1") metrics[`eval/pass@${k}`] = value;
  for (const [source, rate] of Object.entries(evaluation.bySource)) metrics[`eval/${source}/pass@1`] = rate.rate;
  return metrics;
}

export interface Comparison {
  /** Problems graded in both. */
  problems: number;
  /** Problems whose share of passing samples rose, or fell. */
  gained: number;
  lost: number;
  /** Pass@1 of each, on the shared problems. */
  before: number;
  after: number;
  pValue: number;
}

/** Compares two evaluations on the problems they share: by each problem's share of passing samples. */
export function compareEvaluations(before: readonly ProblemOutcome[], after: readonly ProblemOutcome[]): Comparison {
  const rate = ({ passed, samples }: ProblemOutcome) => passed / samples;
  const earlier = new Map(before.filter(({ samples }) => samples > 0).map((outcome) => [outcome.id, rate(outcome)]));
  const pairs = after
    .filter(({ id, samples }) => samples > 0 && earlier.has(id))
    .map((outcome) => ({ was: earlier.get(outcome.id)!, is: rate(outcome) }));
  const gained = pairs.filter(({ was, is }) => is > was).length;
  const lost = pairs.filter(({ was, is }) => is < was).length;
  return {
    problems: pairs.length,
    gained,
    lost,
    before: mean(pairs.map(({ was }) => was)) ?? 0,
    after: mean(pairs.map(({ is }) => is)) ?? 0,
    // With one sample a problem this is McNemar's exact test; with several, the sign test on the paired rates.
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
  const bySource = new Map<string, Item[]>();
  for (const item of items) entryOf(bySource, item.source, () => []).push(item);
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
