// What a person wants to know at the end of a run, computed from its records alone, so that a resumed run reports like an unbroken one.
import { countOf, percent, thousands } from "../core/count.ts";
import { mean } from "../core/statistics.ts";
import { bar, clock, sparkline } from "../runs/display.ts";
import { type Rate, rateText } from "../runs/rates.ts";
import type { MetricsRecord } from "../runs/records.ts";
import type { Comparison, Evaluation } from "./evaluate.ts";
import type { Meter } from "./meter.ts";
import { dollars } from "./prices.ts";

interface ReportInput {
  history: readonly MetricsRecord[];
  /** The first and the last evaluation of the run. */
  before?: Evaluation | undefined;
  after?: Evaluation | undefined;
  comparison?: Comparison | undefined;
  runPath: string;
  /** Seconds in which a process worked on the run, and how many processes that were. */
  seconds: number;
  sessions: number;
  /** Seconds in which each stage was under way, and in which none was as "other": `RunView.secondsOf`. */
  secondsOf: Readonly<Record<string, number>>;
  /** What the run has cost. */
  meter: Meter;
}

/** One row of the smoke test: what a correctly wired pipeline shows early on. */
interface SmokeRow {
  steps: string;
  expectation: string;
  observed: string;
  /** undefined: the run was too short to tell. */
  holds: boolean | undefined;
}

const numbers = (history: readonly MetricsRecord[], name: string, from = 0, to = Number.POSITIVE_INFINITY) =>
  history.flatMap((record) => {
    const value = record[name];
    return record.step >= from && record.step < to && value !== undefined ? [value] : [];
  });

const arrow = (from: number | undefined, to: number | undefined) =>
  from === undefined || to === undefined ? "–" : `${from.toFixed(3)} → ${to.toFixed(3)}`;

/** The four patterns to expect of the first 50 steps. */
export function smokeTest({ history, before, after }: Pick<ReportInput, "history" | "before" | "after">): SmokeRow[] {
  // A step's rate is noisy, so two steps are taken together at each end.
  const format = numbers(history, "format_rate", 0, 5);
  const formatFirst = mean(format.slice(0, 2));
  const formatLast = mean(format.slice(-2));
  const reward = numbers(history, "mean_reward", 4, 15);
  const early = mean(numbers(history, "mean_correct", 9, 14));
  const late = mean(numbers(history, "mean_correct", 25, 30));
  const enough = history.length > 0;
  return [
    {
      steps: "1–5",
      expectation: "format rate rises sharply",
      observed: arrow(formatFirst, formatLast),
      holds: format.length < 5 ? undefined : formatLast! >= 0.95 || formatLast! - formatFirst! >= 0.1,
    },
    {
      steps: "5–15",
      expectation: "mean reward trends upward",
      observed: reward.length < 2 ? "–" : `slope ${slope(reward).toFixed(4)} per step`,
      holds: reward.length < 11 ? undefined : slope(reward) > 0,
    },
    {
      steps: "10–30",
      expectation: "mean correct rises",
      observed: arrow(early, late),
      holds: early === undefined || late === undefined ? undefined : late > early,
    },
    {
      steps: "20–50",
      expectation: "Pass@1 improves on the baseline",
      observed: arrow(before?.pass1?.rate, after?.pass1?.rate),
      holds:
        !enough || !before?.pass1 || !after?.pass1 || history.at(-1)!.step < 20
          ? undefined
          : after.pass1.rate > before.pass1.rate,
    },
  ];
}

/** The slope of a least-squares line through equally spaced values. */
function slope(values: readonly number[]): number {
  const center = (values.length - 1) / 2;
  const average = mean(values)!;
  let covariance = 0;
  let variance = 0;
  for (const [index, value] of values.entries()) {
    covariance += (index - center) * (value - average);
    variance += (index - center) ** 2;
  }
  return covariance / variance;
}

/** The text printed when a run ends. */
export function renderReport(input: ReportInput): string {
  const { history, before, after, comparison } = input;
  const trained = history.filter((record) => record["groups_total"] !== undefined);
  const isRewarded = trained.some((record) => record["mean_reward"] !== undefined);
  const sessions = input.sessions > 1 ? `, over ${input.sessions} starts` : "";
  const steps = countOf(trained.length, "step");
  const lines: string[] = [`${steps} in ${clock(input.seconds)}${sessions}`, ""];
  if (after) lines.push(...evaluationLines(before, after, comparison), "");
  lines.push(...curveLines(trained));
  if (isRewarded) lines.push("", "  what to expect of a working pipeline");
  for (const row of isRewarded ? smokeTest(input) : []) {
    const answer = row.holds === undefined ? "too short to tell" : row.holds ? "yes" : "no";
    lines.push(`    steps ${row.steps.padEnd(6)} ${row.expectation.padEnd(32)} ${row.observed.padEnd(24)} ${answer}`);
  }
  lines.push(
    "",
    ...groupLine(trained),
    ...timeLines(input.seconds, input.secondsOf),
    ...costLines(input),
    "",
    `  files    ${input.runPath}`,
  );
  return lines.join("\n");
}

/** The curves of a run, a line each; of one that is not rewarded, its loss. */
export function curveLines(steps: readonly MetricsRecord[]): string[] {
  const isRewarded = steps.some((record) => record["mean_reward"] !== undefined);
  const curves = { reward: "mean_reward", correct: "mean_correct", format: "format_rate" };
  return Object.entries({ ...curves, ...(isRewarded ? {} : { loss: "loss" }) }).flatMap(([label, name]) => {
    const values = numbers(steps, name);
    if (values.length === 0) return [];
    return [`  ${label.padEnd(8)} ${sparkline(thinned(values))}  ${arrow(values[0], values.at(-1))}`];
  });
}

function evaluationLines(
  before: Evaluation | undefined,
  after: Evaluation,
  comparison: Comparison | undefined,
): string[] {
  const row = (label: string, from: Rate | undefined, to: Rate) => {
    const change = from ? `   ${signed(100 * (to.rate - from.rate))} points` : "";
    return `  ${label.padEnd(24)} ${from ? `${rateText(from)} → ` : ""}${rateText(to)}${change}`;
  };
  const lines = [
    after.pass1
      ? row(`Pass@1, ${after.pass1.problems} problems`, before?.pass1, after.pass1)
      : "  Pass@1: nothing could be graded",
  ];
  const sources = Object.entries(after.bySource);
  if (sources.length > 1)
    for (const [source, rate] of sources)
      lines.push(row(`  ${source} (${rate.problems})`, before?.bySource[source], rate));
  if (comparison) {
    const p = comparison.pValue < 0.001 ? "p < 0.001" : `p = ${comparison.pValue.toFixed(3)}`;
    lines.push(
      `  problem by problem: ${comparison.gained} gained, ${comparison.lost} lost (McNemar's exact test, ${p})`,
    );
  }
  lines.push(`  format rate ${before ? `${percent(before.formatRate)} → ` : ""}${percent(after.formatRate)}`);
  for (const [name, value] of Object.entries(after.figures)) {
    const was = before?.figures[name];
    lines.push(`  ${name} ${was === undefined ? "" : `${was.toFixed(3)} → `}${value.toFixed(3)}`);
  }
  if (after.ungradedProblems > 0)
    lines.push(`  could not be graded and not counted: ${countOf(after.ungradedProblems, "problem")}`);
  return lines;
}

const signed = (value: number) => `${value >= 0 ? "+" : ""}${value.toFixed(1)}`;

/** How the groups came out, which adds up to all of them; and how many taught something, which says nothing about right and wrong. */
export function groupLine(steps: readonly MetricsRecord[]): string[] {
  const total = (name: string) => numbers(steps, name).reduce((sum, value) => sum + value, 0);
  const all = total("groups_total");
  if (all === 0) return [];
  const part = (name: string, label: string) =>
    total(name) > 0 ? [`${total(name)} ${label} (${Math.round((100 * total(name)) / all)}%)`] : [];
  const outcomes = [
    ...part("groups_mixed", "mixed"),
    ...part("groups_all_pass", "all right"),
    ...part("groups_all_fail", "all wrong"),
    ...part("groups_ungraded", "ungraded"),
  ];
  return [`  groups   ${outcomes.join(", ")}; ${all - total("groups_skipped")} of ${all} taught something`];
}

/** Stages by the spans that measure them. Grading that runs beside sampling counts for what it adds. */
const stageLabels: Readonly<Record<string, string>> = {
  weights: "weight sync",
  sample: "sampling",
  grade_tail: "grading",
  carried: "carried over",
  train: "training",
  evaluate: "evaluation",
  save: "checkpoints",
  other: "everything else",
};

/** What the time went to. Each share is of the whole; stages that ran beside each other add up to more. */
function timeLines(whole: number, secondsOf: Readonly<Record<string, number>>): string[] {
  const rows = Object.entries(stageLabels)
    .map(([name, label]) => ({ label, seconds: secondsOf[name] ?? 0 }))
    .filter(({ seconds }) => whole > 0 && seconds / whole >= 0.001);
  const beside = rows.reduce((sum, { seconds }) => sum + seconds, 0) > 1.01 * whole;
  return [
    ...rows.map(({ label, seconds }, index) => {
      const share = percent(seconds / whole).padStart(6);
      return `  ${index === 0 ? "time    " : "        "} ${label.padEnd(16)} ${bar(seconds, whole, 24)} ${share}  ${clock(seconds)}`;
    }),
    ...(beside ? ["           of the whole run; stages run beside each other"] : []),
  ];
}

/** Tokens and dollars; per group with right and wrong answers, and per point of Pass@1 that was gained. */
export function costLines({ meter, before, after }: Pick<ReportInput, "meter" | "before" | "after">): string[] {
  const { prefill, cachedPrefill, sample, train } = meter.tokens;
  if (prefill + sample + train === 0) return [];
  const { spent } = meter;
  const lines = [
    [
      "tokens",
      `${thousands(prefill)} read${cachedPrefill > 0 ? ` (${thousands(cachedPrefill)} cached)` : ""}, ${thousands(sample)} sampled, ${thousands(train)} trained on`,
    ],
  ];
  if (!spent)
    lines.push(["cost", "not known: price_prefill= price_sample= price_train= set a price per million tokens"]);
  else if (spent.total === 0) lines.push(["cost", `nothing (${meter.tariff?.basis ?? "no price"})`]);
  else {
    lines.push([
      "cost",
      `${dollars(spent.total)}: prefill ${dollars(spent.prefill)}, sampling ${dollars(spent.sample)}, training ${dollars(spent.train)}; evaluations took ${dollars(spent.eval)} of it`,
    ]);
    const rates: string[] = [];
    if (meter.mixedGroups > 0) rates.push(`${dollars(spent.total / meter.mixedGroups)} per mixed group`);
    const points = before?.pass1 && after?.pass1 ? 100 * (after.pass1.rate - before.pass1.rate) : undefined;
    if (points !== undefined)
      rates.push(points > 0 ? `${dollars(spent.total / points)} per point of Pass@1` : "no point of Pass@1 gained");
    if (rates.length > 0) lines.push(["", rates.join(", ")]);
    if (spent.wasted > 0) lines.push(["", `${dollars(spent.wasted)} of it for what was done again or given up`]);
    if (spent.lost > 0)
      lines.push(["", `about ${dollars(spent.lost)} more for what was under way when a process ended`]);
  }
  return lines.map(([label, text]) => `  ${label!.padEnd(8)} ${text}`);
}

/** As many values as a line of text has room for, each the mean of its share. */
export function thinned(values: readonly number[], most = 60): number[] {
  if (values.length <= most) return [...values];
  const from = (index: number) => Math.floor((index * values.length) / most);
  return Array.from({ length: most }, (_, index) => mean(values.slice(from(index), from(index + 1)))!);
}
