// A whole run as text: how it went, its steps, its evaluations, the problems it could not solve; and one problem over the run.
import { visibleLine } from "../core/visible.ts";
import { summarizeOutcomes } from "../rl/evaluate.ts";
import { Meter } from "../rl/meter.ts";
import { costLines, groupLine } from "../rl/report.ts";
import { clock, sparkline } from "../runs/display.ts";
import { type Attempt, drillBatch, type ProblemHistory, Problems } from "../runs/drill.ts";
import { readJournal } from "../runs/read-journal.ts";
import type { MetricsRecord } from "../runs/records.ts";
import { RunView } from "../runs/view.ts";
import type { Tokenizer } from "../tokenizer/index.ts";
import { block, percent, statusesOf } from "./show-batch.ts";
import { showCommand } from "./show-command.ts";
import { textTable } from "./text-table.ts";

/** Steps and problems that are listed. */
const mostSteps = 12;
const mostProblems = 8;

export function describeRun(run: string): string {
  const view = new RunView();
  const problems = new Problems();
  const meter = new Meter();
  for (const { event } of readJournal(run)) {
    view.take(event);
    problems.take(event);
    meter.take(event);
  }
  const steps = view.records.filter((record) => record["groups_total"] !== undefined);
  const evaluations = [...view.evaluations].sort(([a], [b]) => a - b);
  const started = view.sessions.filter((session) => session.started);
  const last = started.at(-1);
  const state = last?.outcome
    ? `${last.outcome}${last.error ? `: ${visibleLine(last.error, 200)}` : ""}`
    : last
      ? `not ended; last word ${ago(last.lastAt)} ago`
      : "did not begin";
  const lines = [
    `${run}: ${visibleLine(String(view.config["model_name"] ?? "?"), 80)} on ${visibleLine(String(view.config["engine"] ?? "?"), 20)}`,
    `  ${steps.length} steps in ${clock(view.seconds)}${started.length > 1 ? ` over ${started.length} starts` : ""}; ${state}`,
    "",
  ];
  for (const [label, name] of [
    ["reward", "mean_reward"],
    ["correct", "mean_correct"],
    ["format", "format_rate"],
  ] as const) {
    const values = steps.flatMap((record) => (record[name] === undefined ? [] : [record[name]]));
    if (values.length > 0)
      lines.push(
        `  ${label.padEnd(8)} ${sparkline(thinned(values, 60))}  ${values[0]!.toFixed(3)} → ${values.at(-1)!.toFixed(3)}`,
      );
  }
  if (evaluations.length > 0) {
    const rows = evaluations.map(([step, outcomes]) => {
      const { pass1, formatRate } = summarizeOutcomes(outcomes);
      const rate = pass1
        ? `${(100 * pass1.rate).toFixed(1)}% [${(100 * pass1.low).toFixed(1)}, ${(100 * pass1.high).toFixed(1)}]`
        : "nothing graded";
      return [String(step), rate, String(outcomes.length), percent(formatRate) ?? ""];
    });
    lines.push("", ...indented(textTable(["evaluation", "Pass@1", "problems", "format"], rows, "rlrr")));
  }
  if (steps.length > 0) lines.push("", ...groupLine(steps), "", ...indented(stepTable(steps)));
  lines.push(...hardest(problems));
  const cost = costLines({ meter });
  if (cost.length > 0) lines.push("", ...cost);
  const next = steps.at(-1)?.step;
  lines.push("", `  one step: ${showCommand(run, `step=${next ?? 0}`)}`);
  if (evaluations.length > 0)
    lines.push(`  one evaluation: ${showCommand(run, `evaluation=${evaluations.at(-1)![0]}`)}`);
  return lines.join("\n");
}

/** The newest steps. */
function stepTable(steps: readonly MetricsRecord[]): string[] {
  const shown = steps.slice(-mostSteps);
  const show = (record: MetricsRecord, name: string, digits = 0) => record[name]?.toFixed(digits) ?? "–";
  const rows = shown.map((record) => [
    String(record.step),
    show(record, "mean_reward", 3),
    percent(record["mean_correct"]) ?? "–",
    percent(record["format_rate"]) ?? "–",
    show(record, "groups_mixed"),
    show(record, "groups_all_pass"),
    show(record, "groups_all_fail"),
    show(record, "groups_ungraded"),
    show(record, "loss", 4),
    show(record, "sample/tokens_mean"),
    show(record, "time/total", 1),
  ]);
  const header = ["step", "reward", "correct", "format", "mixed", "right", "wrong", "ungraded", "loss", "tokens", "s"];
  const lines = textTable(header, rows, "rrrrrrrrrrr");
  const before = steps.length - shown.length;
  return before > 0 ? [...lines.slice(0, 1), `… ${before} steps before`, ...lines.slice(1)] : lines;
}

/** Problems that training met most often without a right answer. */
function hardest(problems: Problems): string[] {
  const rows = problems.all
    .map((problem) => ({ problem, ...counted(problem.attempts.filter(({ phase }) => phase === "train")) }))
    .filter(({ graded }) => graded > 0)
    .sort((a, b) => a.passed / a.graded - b.passed / b.graded || b.graded - a.graded)
    .slice(0, mostProblems);
  if (rows.length === 0) return [];
  const cells = rows.map(({ problem, passed, graded, statuses }) => [
    `${passed}/${graded}`,
    String(problem.attempts.length),
    statuses,
    visibleLine(problem.id, 60),
  ]);
  return ["", "  hardest problems", ...indented(textTable(["passed", "groups", "why not", "problem"], cells, "rrll"))];
}

/** A problem: what it asks, and every attempt. */
export function describeProblem(run: string, problem: ProblemHistory, tokenizer: Tokenizer | string): string {
  const { id, source, attempts } = problem;
  const whole = counted(attempts);
  const lines = [
    `${visibleLine(id, 200)} (${visibleLine(source, 60)})`,
    `  ${whole.passed} of ${whole.graded} graded answers passed, in ${attempts.length} groups`,
  ];
  const rates = attempts.filter(({ phase }) => phase === "train").map((attempt) => counted([attempt]));
  const known = rates.filter(({ graded }) => graded > 0).map(({ passed, graded }) => passed / graded);
  if (known.length > 1) lines.push(`  solve rate over time ${sparkline(thinned(known, 60), 0, 1)}`);
  lines.push("", "prompt", ...promptOf(run, attempts[0]!, tokenizer), "");
  const rows = attempts.map((attempt) => [
    `${attempt.phase === "train" ? "step" : "evaluation"} ${attempt.batch}`,
    String(attempt.group),
    String(attempt.policy),
    `${attempt.passed}/${attempt.samples - attempt.ungraded}`,
    attempt.outcome ?? "",
    String(Math.round(attempt.tokens / Math.max(1, attempt.samples))),
    statusesOf(Object.entries(attempt.statuses).flatMap(([status, count]) => Array<string>(count).fill(status))),
  ]);
  lines.push(
    ...indented(textTable(["when", "group", "policy", "passed", "outcome", "tokens", "why not"], rows, "lrrrlrl")),
  );
  const last = attempts.at(-1)!;
  const key = last.phase === "train" ? "step" : "evaluation";
  lines.push("", `  the last: ${showCommand(run, `${key}=${last.batch}`, `group=${last.group}`)}`);
  return lines.join("\n");
}

function promptOf(run: string, { phase, batch, group }: Attempt, tokenizer: Tokenizer | string): string[] {
  if (typeof tokenizer === "string") return [`  (cannot be shown: ${tokenizer})`];
  const found = drillBatch(run, phase, batch).groups.find(({ sampled }) => sampled.group === group);
  const prompt = found?.arrays()["prompt"];
  if (!(prompt instanceof Int32Array)) return ["  (its tokens were dropped from the journal: keep_journal=checkpoint)"];
  return block(tokenizer.decode(prompt));
}

function counted(attempts: readonly Attempt[]): { passed: number; graded: number; statuses: string } {
  const statuses = attempts.flatMap((attempt) =>
    Object.entries(attempt.statuses).flatMap(([status, count]) => Array<string>(count).fill(status)),
  );
  return {
    passed: attempts.reduce((sum, { passed }) => sum + passed, 0),
    graded: attempts.reduce((sum, { samples, ungraded }) => sum + samples - ungraded, 0),
    statuses: statusesOf(statuses),
  };
}

const indented = (lines: readonly string[]) => lines.map((line) => `  ${line}`);

const ago = (at: number) => clock((Date.now() - at) / 1000);

function thinned(values: readonly number[], most: number): number[] {
  if (values.length <= most) return [...values];
  return Array.from({ length: most }, (_, index) => values[Math.floor((index * values.length) / most)]!);
}
