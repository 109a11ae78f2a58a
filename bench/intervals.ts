// Intervals of a few seeds. Runs differ by their seed alone, so what counts is the scatter over seeds, not over problems.
import { mean } from "../src/core/statistics.ts";

/** The 97.5% quantile of Student's t, by degrees of freedom. */
const quantiles = [
  12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.16, 2.145, 2.131,
];

/** Rounds degrees of freedom down: an interval is never too narrow for that. */
const studentT = (freedom: number) =>
  freedom < 1 ? Number.POSITIVE_INFINITY : (quantiles[Math.floor(freedom) - 1] ?? 2.12);

export interface Interval {
  middle: number;
  low: number;
  high: number;
}

/** A mean with its 95% interval. */
export function meanInterval(values: readonly number[]): Interval {
  const middle = mean(values) ?? Number.NaN;
  const half = values.length < 2 ? Number.POSITIVE_INFINITY : studentT(values.length - 1) * errorOf(values);
  return { middle, low: middle - half, high: middle + half };
}

/** How many times larger `theirs` are than `ours`: the ratio of medians, with Welch's 95% interval on the logarithms. */
export function ratioInterval(ours: readonly number[], theirs: readonly number[]): Interval {
  const [a, b] = [ours.map(Math.log), theirs.map(Math.log)];
  const [va, vb] = [errorOf(a) ** 2, errorOf(b) ** 2];
  const freedom =
    va + vb === 0
      ? a.length + b.length - 2
      : (va + vb) ** 2 / (va ** 2 / Math.max(1, a.length - 1) + vb ** 2 / Math.max(1, b.length - 1));
  const half = Math.min(a.length, b.length) < 2 ? Number.POSITIVE_INFINITY : studentT(freedom) * Math.sqrt(va + vb);
  const difference = (mean(b) ?? Number.NaN) - (mean(a) ?? Number.NaN);
  return {
    middle: median(theirs) / median(ours),
    low: Math.exp(difference - half),
    high: Math.exp(difference + half),
  };
}

export function median(values: readonly number[]): number {
  const sorted = [...values].sort((a, b) => a - b);
  const half = sorted.length >> 1;
  return sorted.length % 2 === 1 ? sorted[half]! : (sorted[half - 1]! + sorted[half]!) / 2;
}

/** The standard error of a mean. */
function errorOf(values: readonly number[]): number {
  if (values.length < 2) return 0;
  const middle = mean(values)!;
  const variance = values.reduce((sum, value) => sum + (value - middle) ** 2, 0) / (values.length - 1);
  return Math.sqrt(variance / values.length);
}
