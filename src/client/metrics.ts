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
  switch (reduction) {
    case "sum":
      metrics[name] = values.reduce((total, value) => total + value, 0);
      return;
    case "min":
      metrics[name] = Math.min(...values);
      return;
    case "max":
      metrics[name] = Math.max(...values);
      return;
    case "mean":
      metrics[name] = weightedMean(values, weights);
      return;
    case "slack":
      metrics[name] = Math.max(...values) - weightedMean(values, weights);
      return;
    case "unique":
      for (const [index, value] of values.entries()) metrics[index === 0 ? name : `${name}_${index}`] = value;
      return;
    case "hash2":
      if (!values.every(Number.isFinite)) return;
      metrics[name] = Number(
        BigInt.asUintN(
          64,
          values.reduce((total, value) => total + BigInt(Math.trunc(value)), 0n),
        ),
      );
      return;
    case "last":
      metrics[name] = values.at(-1)!;
      return;
    default:
      if (values.length === 1) metrics[name] = values[0]!;
  }
}

function weightedMean(values: readonly number[], weights: readonly number[]): number {
  const total = weights.reduce((sum, weight) => sum + weight, 0);
  if (total === 0) return values.reduce((sum, value) => sum + value, 0) / values.length;
  return values.reduce((sum, value, index) => sum + value * weights[index]!, 0) / total;
}
