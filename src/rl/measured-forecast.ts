// What a run will take: tokens, time and money, from lengths and times that were measured, on a few answers or in a recorded run.
import { entryOf } from "../core/maps.ts";
import type { JournalEntry, Span } from "../runs/events.ts";
import { undoSteps } from "../runs/rewinds.ts";
import { coveredMs } from "../runs/timing.ts";
import { addTokens, costOf, sampledTokens, type Tariff, type TokenUse, tokensBy } from "./prices.ts";

/** What one step and one evaluated problem take, on average. */
export interface Measured {
  /** Where the figures are from, for people. */
  basis: string;
  step: TokenUse & { seconds: number };
  /** Undefined: nothing was measured. */
  problem: (TokenUse & { seconds: number }) | undefined;
}

interface MeasuredForecast {
  steps: number;
  evaluations: number;
  tokens: TokenUse;
  seconds: number;
  /** US dollars; undefined without a price. */
  cost: number | undefined;
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
  const tokens = tokensBy((kind) => Math.round(sum((part) => part[kind])));
  const cost = tariff && costOf(tariff, tokens).total;
  return { steps, evaluations, tokens, seconds: sum(({ seconds }) => seconds), cost };
}

/** Steps that a recorded run is judged by. */
const window = 20;

/** The averages of a recorded run's last steps and of its evaluations; undefined where it has no step. */
export function measuredIn(entries: Iterable<JournalEntry>): Measured | undefined {
  const batches = new Map<number, TokenUse>();
  const steps: (TokenUse & { seconds: number })[] = [];
  const evaluated = tokensBy(() => 0);
  let problems = 0;
  let next = 0;
  const evaluating: Span[] = [];
  const stepping: Span[] = [];
  const of = (batch: number) => entryOf(batches, batch, () => tokensBy(() => 0));
  for (const { event } of entries) {
    if (event.type === "group-sampled" || event.type === "turn-sampled") {
      // What was carried over is sampled while the next step is.
      addTokens(event.phase === "train" ? of(Math.max(event.batch, next)) : evaluated, sampledTokens(event));
      if (event.phase === "eval" && event.type === "group-sampled") problems++;
    } else if (event.type === "update-submitted") of(event.step).train = event.tokens;
    else if (event.type === "rewound") {
      next = Math.min(next, event.to);
      undoSteps(event.to, batches);
    } else if (event.type === "evaluated") evaluating.push({ name: "evaluate", start: event.start, end: event.end });
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
      ...tokensBy((kind) => mean((step) => step[kind])),
      // Of all steps: those beside an evaluation take longer, and the first ones are.
      seconds: steps.reduce((sum, { seconds }) => sum + seconds, 0) / steps.length,
    },
    problem:
      problems === 0
        ? undefined
        : {
            ...tokensBy((kind) => evaluated[kind] / problems),
            // What runs beside the steps is in their time already.
            seconds: (coveredMs([...evaluating, ...stepping]) - coveredMs(stepping)) / 1000 / problems,
          },
  };
}
