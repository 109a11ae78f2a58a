// Which shape of a step would have taught more for what a run paid: the run's own solve rates say how often the rewards of a group of a
// given size differ, and its own costs say what such a step takes.
import type { Spending } from "./spending.ts";

export interface Shape {
  prompts: number;
  samples: number;
  /** Groups of a step whose rewards are expected to differ. */
  mixed: number;
  /** The same, each group counted by 1 − 1/samples: of n answers, that much of the signal is left beside a baseline made of them. */
  signal: number;
  /** What a step takes, evaluation left out. */
  cost: number;
  /** Signal for what a step takes, the run's own shape being 1. */
  worth: number;
}

const sizes = [2, 4, 8, 16, 32, 64];

/** The run's own shape, and those with as many answers, the most worth first. */
export function shapesOf(spending: Spending): { own: Shape; others: Shape[] } {
  const { problems, answers, steps } = spending;
  const perStep = answers / steps;
  const own = shapeOf(spending, problems / steps, answers / Math.max(1, problems));
  const others = sizes
    .filter((samples) => samples * 2 <= perStep && Math.round(perStep / samples) !== Math.round(problems / steps))
    .map((samples) => shapeOf(spending, Math.round(perStep / samples), samples));
  const relative = (shape: Shape) => ({ ...shape, worth: own.signal > 0 ? shape.worth / own.worth : 1 });
  return { own: relative(own), others: others.map(relative).sort((a, b) => b.worth - a.worth) };
}

function shapeOf({ outcomes, costs, promptTokens, answerTokens }: Spending, prompts: number, samples: number): Shape {
  const graded = outcomes.filter((outcome) => outcome.graded > 0);
  const chance = graded.reduce((sum, outcome) => sum + mixedChance(outcome, samples), 0) / Math.max(1, graded.length);
  const mixed = prompts * chance;
  const signal = mixed * (1 - 1 / samples);
  const cost =
    prompts * promptTokens * costs.promptToken +
    prompts * samples * (answerTokens * costs.answerToken + costs.answer) +
    mixed * samples * (promptTokens + answerTokens) * costs.trainedToken +
    costs.step;
  return { prompts, samples, mixed, signal, cost, worth: cost > 0 ? signal / cost : 0 };
}

/**
 * The chance that `samples` answers to a problem are neither all right nor all wrong, from a group of `graded` answers of which `passed`
 * were right: without bias where fewer are drawn than were seen; beyond that by the Beta-binomial law from a flat prior.
 */
export function mixedChance({ graded, passed }: { graded: number; passed: number }, samples: number): number {
  const size = Math.round(samples);
  let [allRight, allWrong] = [1, 1];
  for (let drawn = 0; drawn < size; drawn++) {
    if (size <= graded) {
      allRight *= Math.max(0, passed - drawn) / (graded - drawn);
      allWrong *= Math.max(0, graded - passed - drawn) / (graded - drawn);
    } else {
      allRight *= (passed + 1 + drawn) / (graded + 2 + drawn);
      allWrong *= (graded - passed + 1 + drawn) / (graded + 2 + drawn);
    }
  }
  return 1 - allRight - allWrong;
}

/** Below this much more for the same price a run's shape is as good as any: estimates are not that fine. */
const notable = 1.15;

/** What a run's time or money went to, and which shape would have taught more for it, in lines. */
export function describeSpending(spending: Spending): string[] {
  const { parts, total, unit, taughtNothing, skipped, problems } = spending;
  const amount = (value: number) => (unit === "dollars" ? `$${value.toPrecision(3)}` : `${value.toFixed(1)} s`);
  const share = (value: number) => `${Math.round((100 * value) / Math.max(1e-12, total))}%`;
  const named = Object.entries(parts).filter(([, value]) => value >= 0.005 * total);
  const lines = [
    `${amount(total)} went to ${named.map(([name, value]) => `${name} ${share(value)}`).join(", ")}`,
    `${skipped} of ${problems} groups taught nothing: ${share(taughtNothing)} of it`,
  ];
  if (!spending.outcomes.some(({ graded }) => graded > 0)) return lines;
  const { own, others } = shapesOf(spending);
  const step = ({ prompts, samples, mixed, cost }: Shape) =>
    `${short(prompts)} × ${short(samples)}: ${mixed.toFixed(1)} groups that teach a step, ${amount(cost)}`;
  const best = others[0];
  return [
    ...lines,
    `shape ${step(own)}`,
    best && best.worth >= notable
      ? `${step(best)}: ${best.worth.toFixed(1)} times the signal for the same ${unit === "dollars" ? "money" : "time"}; prompts_per_step=${best.prompts} completions_per_prompt=${best.samples}`
      : `no other shape with as many answers would have taught notably more for the same ${unit === "dollars" ? "money" : "time"}`,
  ];
}

const short = (value: number) => String(Math.round(value * 10) / 10);
