// What a run will take: tokens, time and money, from lengths and times that were measured, on a few answers or in a recorded run.
import type { JournalEntry, Span } from "../runs/events.ts";
import { coveredMs } from "../runs/timing.ts";
import type { TrainConfig } from "./config.ts";
import { costOf, type Tariff, type TokenUse } from "./prices.ts";

/** What one step and one evaluated problem take, on average. */
export interface Measured {
  /** Where the figures are from, for people. */
  basis: string;
  step: TokenUse & { seconds: number };
  /** Undefined: nothing was measured. */
  problem: (TokenUse & { seconds: number }) | undefined;
}

export interface MeasuredForecast {
  steps: number;
  evaluations: number;
  tokens: TokenUse;
  seconds: number;
  /** US dollars; undefined without a price. */
  cost: number | undefined;
}

/** Evaluations of a run: before the first step, every so many steps, and at the end. */
export function evaluationsOf({ eval_every: every }: Pick<TrainConfig, "eval_every">, steps: number): number {
  if (every <= 0) return 0;
  return Math.floor(steps / every) + 1 + (steps % every === 0 ? 0 : 1);
}

/** A run of `steps` steps and its evaluations of `problems` problems each. */
export function forecastRun(
  { step, problem }: Measured,
  steps: number,
  evaluations: number,
  problems: number,
  tariff: Tariff | undefined,
): MeasuredForecast {
  const sum = (pick: (part: TokenUse & { seconds: number }) => number) =>
    steps * pick(step) + (problem ? evaluations * problems * pick(problem) : 0);
  const tokens = {
    prefill: Math.round(sum(({ prefill }) => prefill)),
    cachedPrefill: Math.round(sum(({ cachedPrefill }) => cachedPrefill)),
    sample: Math.round(sum(({ sample }) => sample)),
    train: Math.round(sum(({ train }) => train)),
  };
  const cost = tariff && Object.values(costOf(tariff, tokens)).reduce((all, part) => all + part, 0);
  return { steps, evaluations, tokens, seconds: sum(({ seconds }) => seconds), cost };
}

/** Steps that a recorded run is judged by. */
const window = 20;

/** The averages of a recorded run's last steps and of its evaluations; undefined where it has no step. */
export function measuredIn(entries: Iterable<JournalEntry>): Measured | undefined {
  const batches = new Map<number, TokenUse>();
  const steps: (TokenUse & { seconds: number })[] = [];
  const evaluated: TokenUse = { prefill: 0, cachedPrefill: 0, sample: 0, train: 0 };
  let problems = 0;
  let next = 0;
  const evaluating: Span[] = [];
  const stepping: Span[] = [];
  const of = (batch: number) => {
    const use = batches.get(batch) ?? { prefill: 0, cachedPrefill: 0, sample: 0, train: 0 };
    batches.set(batch, use);
    return use;
  };
  for (const { event } of entries) {
    if (event.type === "group-sampled") {
      // What was carried over is sampled while the next step is.
      const use = event.phase === "train" ? of(Math.max(event.batch, next)) : evaluated;
      use.prefill += event.promptTokens;
      use.cachedPrefill += event.cachedTokens;
      use.sample += event.samples.reduce((sum, { tokens }) => sum + tokens, 0);
      if (event.phase === "eval") problems++;
    } else if (event.type === "turn-sampled") {
      const use = event.phase === "train" ? of(Math.max(event.batch, next)) : evaluated;
      use.prefill += event.promptTokens;
      use.cachedPrefill += event.cachedTokens;
      use.sample += event.tokens;
    } else if (event.type === "update-submitted") of(event.step).train = event.tokens;
    else if (event.type === "rewound") next = Math.min(next, event.to);
    else if (event.type === "evaluated") evaluating.push({ name: "evaluate", start: event.start, end: event.end });
    else if (event.type === "step-done") {
      const seconds = event.metrics["time/total"] ?? 0;
      stepping.push({ name: "total", start: event.at - 1000 * seconds, end: event.at });
      steps.push({ ...of(event.step), seconds });
      batches.delete(event.step);
      next = event.step + 1;
    }
  }
  const last = steps.slice(-window);
  if (last.length === 0) return undefined;
  const mean = (pick: (step: TokenUse & { seconds: number }) => number) =>
    last.reduce((sum, step) => sum + pick(step), 0) / last.length;
  return {
    basis: `the last ${last.length} of ${steps.length} steps and ${problems} evaluated problems of that run`,
    step: {
      prefill: mean(({ prefill }) => prefill),
      cachedPrefill: mean(({ cachedPrefill }) => cachedPrefill),
      sample: mean(({ sample }) => sample),
      train: mean(({ train }) => train),
      // Of all steps: those beside an evaluation take longer, and the first ones are.
      seconds: steps.reduce((sum, { seconds }) => sum + seconds, 0) / steps.length,
    },
    problem:
      problems === 0
        ? undefined
        : {
            prefill: evaluated.prefill / problems,
            cachedPrefill: evaluated.cachedPrefill / problems,
            sample: evaluated.sample / problems,
            train: 0,
            // What runs beside the steps is in their time already.
            seconds: (coveredMs([...evaluating, ...stepping]) - coveredMs(stepping)) / 1000 / problems,
          },
  };
}
