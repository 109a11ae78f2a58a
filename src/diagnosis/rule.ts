// A rule: one thing that can go wrong, how it shows, what it means and what to do. The table is rules.ts; docs/diagnosis.md is made
// from it.
import { whet } from "../core/program.ts";
import type { Finding, FindingLevel } from "../runs/findings.ts";
import type { Evidence, StepFigures } from "./evidence.ts";

export interface Rule {
  /** Stable. */
  id: string;
  /** The levels it may have, for the table. */
  levels: readonly FindingLevel[];
  /** When it speaks, for the table. */
  when: string;
  means: string;
  remedy: string;
  /** The same for a run whose judge is a reward function of its own: it has no sandbox and no tests. */
  ofReward?: { means: string; remedy: string };
  /**
   * The policy was harmed by its training, so an earlier checkpoint and a smaller learning rate can cure it (on_error=rollback). Such a
   * rule looks only at figures that the same seed gives again: at no time, and at no evaluation.
   */
  curable?: boolean;
  /** Rules whose findings bring this one about, the likeliest first. With one of them it is a symptom: shown beneath it, not acted on. */
  symptomOf?: readonly string[];
  /** It is about how a process ended, and over when the next one begins. */
  aboutEnd?: boolean;
  /** Undefined: nothing to say. */
  check(evidence: Evidence): Sighting | undefined;
}

/** What a rule saw. */
type Sighting = Pick<Finding, "level" | "message" | "figures"> &
  Partial<Pick<Finding, "steps" | "samples" | "means" | "remedy" | "command">>;

/** A rule over the means of figures in the newest steps, as many as `over` says, that have the first of them. */
interface MeansRule extends Omit<Rule, "check"> {
  over: number;
  figures: readonly [string, ...string[]];
  /** Gets the means in the order of the figures; NaN for one that no step has. */
  sees(means: readonly number[], evidence: Evidence): Omit<Sighting, "steps" | "figures"> | undefined;
}

export const overMeans = ({ over, figures, sees, ...rule }: MeansRule): Rule => ({
  ...rule,
  check(evidence) {
    const steps = evidence.last(over, figures[0]);
    if (steps.length < over) return undefined;
    const means = figures.map((name) => meanOf(steps, name));
    const seen = sees(means, evidence);
    return seen && { ...seen, steps: spanOf(steps), figures: evidenceOf(steps, ...figures) };
  },
});

/** Commands that begin, go on with or test a run from its settings alone: one that a program trains has its problems and judge in there. */
const isForCommandRuns = (command: string) =>
  ["train", "resume", "doctor", "certify"].some((name) => command.startsWith(`${whet} ${name}`));

/** A finding of a rule. */
export function findingOf(rule: Rule, sighting: Sighting, { config }: Pick<Evidence, "config">): Finding {
  const { id, symptomOf = [] } = rule;
  const { means, remedy } = (config["sandbox"] === "own reward" && rule.ofReward) || rule;
  const { command, ...seen } = sighting;
  const isOwn = config["sandbox"] === "own reward" || config["sandbox"] === "own grader";
  return {
    id,
    means,
    remedy,
    ...(symptomOf.length > 0 && { symptomOf: [...symptomOf] }),
    ...seen,
    ...(command !== undefined && !(isOwn && isForCommandRuns(command)) && { command }),
  };
}

/** How updates that are too large for a policy show, the most telling first: it stands for the cause, the others for what followed. */
export const harm: readonly string[] = [
  "collapse",
  "loss-exploding",
  "entropy-runaway",
  "lag-too-large",
  "format-dropping",
];

/** The same, where sampler and trainer that do not agree may be the cause, too. */
export const harmOrDisagreement: readonly string[] = [...harm, "sampler-trainer-disagree"];

/** What to type where the learning rate is too high. */
export const lower = (evidence: Evidence): string =>
  evidence.again(`learning_rate=${short(evidence.learningRate / 4)}`, "on_error=rollback");

/** What it was, as evidence. */
export const rateOf = ({ learningRate }: Evidence) => ({ name: "optim/lr", value: learningRate });

/** Advice for what was right at the beginning and no longer is: training did it, whatever else the same figures mean in other runs. */
export function ifLost(evidence: Evidence): Partial<Sighting> {
  const before = Math.max(...valuesOf(evidence.steps.slice(0, 3), "mean_correct"));
  const now = evidence.steps.at(-1)?.figures["mean_correct"] ?? Number.NaN;
  if (!(before >= 0.05 && now < before / 2)) return {};
  return {
    means: `training has broken what the model could: ${percent(before)} of a first step's answers were right, and ${percent(now)} are now`,
    remedy: "reduce the learning rate, and go back to a checkpoint before that",
    command: lower(evidence),
  };
}

/** The mean of a figure; NaN without one. */
export function meanOf(steps: readonly StepFigures[], name: string): number {
  const values = valuesOf(steps, name);
  return values.reduce((sum, value) => sum + value, 0) / values.length;
}

export function valuesOf(steps: readonly StepFigures[], name: string): number[] {
  return steps.flatMap(({ figures }) => (figures[name] === undefined ? [] : [figures[name]]));
}

export function medianOf(values: readonly number[]): number {
  const sorted = [...values].sort((a, b) => a - b);
  const middle = Math.floor(sorted.length / 2);
  return sorted.length % 2 === 1 ? sorted[middle]! : (sorted[middle - 1]! + sorted[middle]!) / 2;
}

/** The largest mean of a figure over `window` steps in a row, or over all where there are fewer. */
export function bestMean(steps: readonly StepFigures[], name: string, window: number): number {
  const values = valuesOf(steps, name);
  const width = Math.min(window, values.length);
  let sum = 0;
  let best = Number.NEGATIVE_INFINITY;
  for (const [index, value] of values.entries()) {
    sum += value - (index >= width ? values[index - width]! : 0);
    if (index >= width - 1) best = Math.max(best, sum / width);
  }
  return best;
}

/** The sum of a figure, 0 where it is missing. */
export const sumOf = (steps: readonly StepFigures[], name: string) =>
  steps.reduce((sum, { figures }) => sum + (figures[name] ?? 0), 0);

/** The first and the last of the steps. */
export const spanOf = (steps: readonly StepFigures[]): [number, number] => [steps[0]!.step, steps.at(-1)!.step];

/** A figure of each step, as evidence. */
export const evidenceOf = (steps: readonly StepFigures[], ...names: string[]): Finding["figures"] =>
  names.flatMap((name) =>
    steps.flatMap(({ step, figures }) => (figures[name] === undefined ? [] : [{ name, step, value: figures[name] }])),
  );

export const percent = (share: number) => `${Math.round(100 * share)}%`;
export const short = (value: number) => String(Number(value.toPrecision(3)));

const maxTrials = 1e6;

/** The chance of at most `hits` in `trials` where each hits with probability `rate`. */
export function binomialTail(hits: number, trials: number, rate: number): number {
  // Not numbers of groups: nothing can be said.
  if (!(trials <= maxTrials && hits < trials)) return 1;
  let sum = 0;
  let logTerm = trials * Math.log1p(-rate);
  for (let k = 0; k <= hits; k++) {
    sum += Math.exp(logTerm);
    logTerm += Math.log((trials - k) / (k + 1)) + Math.log(rate) - Math.log1p(-rate);
  }
  return Math.min(1, sum);
}
