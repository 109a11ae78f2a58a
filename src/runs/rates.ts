// Rates of problem outcomes with their intervals: what an evaluation, a report and the dashboard say of how much was solved.
import { percent } from "../core/count.ts";
import { mean, wilsonInterval } from "../core/statistics.ts";
import type { ProblemOutcome } from "./events.ts";

export interface Rate {
  /** Mean over problems of the share of samples that passed. */
  rate: number;
  /** Ends of the 95% interval. */
  low: number;
  high: number;
  problems: number;
}

/** "69.6% [65.2, 73.6]". */
export const rateText = ({ rate, low, high }: Omit<Rate, "problems">): string =>
  `${percent(rate)} [${(100 * low).toFixed(1)}, ${(100 * high).toFixed(1)}]`;

/** Undefined without a graded problem. The interval treats problems as the independent trials, which is exact for one sample each. */
export function rateOf(outcomes: readonly ProblemOutcome[]): Rate | undefined {
  const graded = outcomes.filter(({ samples }) => samples > 0);
  const rate = mean(graded.map(({ samples, passed }) => passed / samples));
  if (rate === undefined) return undefined;
  const [low, high] = wilsonInterval(rate * graded.length, graded.length);
  return { rate, low, high, problems: graded.length };
}

/** The rate of each source that has a graded problem, by name. */
export function ratesBySource(outcomes: readonly ProblemOutcome[]): Record<string, Rate> {
  const sources = [...new Set(outcomes.map(({ source }) => source))].sort();
  return Object.fromEntries(
    sources.flatMap((source) => {
      const rate = rateOf(outcomes.filter((outcome) => outcome.source === source));
      return rate ? [[source, rate]] : [];
    }),
  );
}
