// Puts the results of one batch's requests together.
import type { ForwardBackwardOutput } from "../protocol/index.ts";

/** One result for the whole batch: outputs in order, metrics reduced as their names say. */
export function combineOutputs(parts: readonly ForwardBackwardOutput[]): ForwardBackwardOutput {
  const metrics: Record<string, number> = {};
  for (const name of Object.keys(parts[0]!.metrics)) {
    const values = parts.map((part) => part.metrics[name]);
    if (!values.every((value) => value !== undefined)) continue;
    const weights = parts.map((part) => part.lossFnOutputs.length);
    reduceMetric(name, values, weights, metrics);
  }
  return {
    lossFnOutputType: parts[0]!.lossFnOutputType,
    lossFnOutputs: parts.flatMap((part) => part.lossFnOutputs),
    metrics,
  };
}

/** Writes the reduction of one metric's values into `metrics`; a reduction that is not known drops it, unless there is one value. */
function reduceMetric(name: string, values: number[], weights: number[], metrics: Record<string, number>): void {
  const reduction = name.slice(name.indexOf(":") + 1);
  if (reduction === "unique") {
    for (const [index, value] of values.entries()) metrics[index === 0 ? name : `${name}_${index}`] = value;
    return;
  }
  const reduce = Object.hasOwn(reductions, reduction) ? reductions[reduction]! : onlyOne;
  const reduced = reduce(values, weights);
  if (reduced !== undefined) metrics[name] = reduced;
}

/** How the values of several requests become one; undefined: not at all. */
type Reduction = (values: readonly number[], weights: readonly number[]) => number | undefined;

const onlyOne: Reduction = (values) => (values.length === 1 ? values[0] : undefined);

const reductions: Readonly<Record<string, Reduction>> = {
  sum: (values) => values.reduce((total, value) => total + value, 0),
  min: (values) => Math.min(...values),
  max: (values) => Math.max(...values),
  mean: weightedMean,
  slack: (values, weights) => Math.max(...values) - weightedMean(values, weights),
  last: (values) => values.at(-1),
  hash2(values) {
    if (!values.every(Number.isFinite)) return undefined;
    const total = values.reduce((sum, value) => sum + BigInt(Math.trunc(value)), 0n);
    return Number(BigInt.asUintN(64, total));
  },
};

function weightedMean(values: readonly number[], weights: readonly number[]): number {
  const total = weights.reduce((sum, weight) => sum + weight, 0);
  if (total === 0) return values.reduce((sum, value) => sum + value, 0) / values.length;
  return values.reduce((sum, value, index) => sum + value * weights[index]!, 0) / total;
}
