// A whole run as text: how it went, its steps, its evaluations, the problems it could not solve; and one problem over the run.
import { spanOf } from "../../core/count.ts";
import { visibleLine } from "../../core/visible.ts";
import { summarizeOutcomes } from "../../rl/evaluate.ts";
import { Meter } from "../../rl/meter.ts";
import { costLines, curveLines, groupLine, thinned } from "../../rl/report.ts";
import { type BatchGroup, type Phase, type ReadableRun, readBatch } from "../../runs/batch.ts";
import { clock, sparkline } from "../../runs/display.ts";
import { type Problem, problemsOf } from "../../runs/problems.ts";
import { rateText } from "../../runs/rates.ts";
import { readJournal } from "../../runs/read-journal.ts";
import type { MetricsRecord } from "../../runs/records.ts";
import { startedFrom } from "../../runs/started-from.ts";
import type { Tokenizer } from "../../tokenizer/index.ts";
import { block, percent, showCommand, statusesOf, wordFor } from "./show-batch.ts";
import { textTable } from "./table.ts";

/** Steps and problems that are listed. */
const maxSteps = 12;
const maxProblems = 8;

export function describeRun(run: string, readable: ReadableRun): string {
  const { view } = readable;
  const meter = Meter.over(readJournal(run));
  const steps = view.records.filter((record) => record["groups_total"] !== undefined);
  const evaluations = [...view.evaluations.values()].sort((a, b) => a.step - b.step);
  const from = startedFrom(view.config);
  const started = view.sessions.filter((session) => session.started);
  const last = started.at(-1);
  const state = last?.outcome
    ? `${last.outcome}${last.error ? `: ${visibleLine(last.error, 200)}` : ""}`
    : last
      ? `not ended; last written ${spanOf((Date.now() - last.lastAt) / 1000)} ago`
      : "did not begin";
  const lines = [
    `${run}: ${visibleLine(String(view.config["model_name"] ?? "?"), 80)} on ${visibleLine(String(view.config["engine"] ?? "?"), 20)}`,
    ...(from === undefined ? [] : [`  began with ${visibleLine(from, 200)}`]),
    `  ${steps.length} steps in ${clock(view.seconds)}${started.length > 1 ? ` over ${started.length} starts` : ""}; ${state}`,
    "",
  ];
  lines.push(...curveLines(steps));
  if (evaluations.length > 0) {
    const rows = evaluations.map(({ step, outcomes }) => {
      const { pass1, formatRate } = summarizeOutcomes(outcomes);
      return [
        String(step),
        pass1 ? rateText(pass1) : "nothing graded",
        String(outcomes.length),
        percent(formatRate) ?? "",
      ];
    });
    lines.push("", ...indented(textTable(["evaluation", "Pass@1", "problems", "format"], rows, "rlrr")));
  }
  if (steps.length > 0) lines.push("", ...groupLine(steps), "", ...indented(stepTable(steps)));
  lines.push(...hardest(readable));
  const cost = costLines({ meter });
  if (cost.length > 0) lines.push("", ...cost);
  const next = steps.at(-1)?.step;
  lines.push("", `  one step: ${showCommand(run, `step=${next ?? 0}`)}`);
  if (evaluations.length > 0)
    lines.push(`  one evaluation: ${showCommand(run, `evaluation=${evaluations.at(-1)!.step}`)}`);
  return lines.join("\n");
}

/** The newest steps. */
function stepTable(steps: readonly MetricsRecord[]): string[] {
  const shown = steps.slice(-maxSteps);
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
function hardest(readable: ReadableRun): string[] {
  const rows = [...problemsOf(readable.view).values()]
    .map((problem) => ({ problem, ...countsOf(problem) }))
    .filter(({ graded }) => graded > 0)
    .sort((a, b) => a.passed / a.graded - b.passed / b.graded || b.graded - a.graded)
    .slice(0, maxProblems);
  if (rows.length === 0) return [];
  // A batch may have several of them.
  const batches = new Map<number, readonly BatchGroup[]>();
  const groupsOf = (step: number) => {
    const groups = batches.get(step) ?? readBatch(readable, "train", step).groups;
    batches.set(step, groups);
    return groups;
  };
  const cells = rows.map(({ problem: { id, attempts, evaluations }, passed, graded }) => [
    `${passed}/${graded}`,
    String(attempts.length + evaluations.length),
    statusesOf(attempts.flatMap(({ step, group }) => statusesIn(groupsOf(step)[group]))),
    visibleLine(id, 60),
  ]);
  return ["", "  hardest problems", ...indented(textTable(["passed", "groups", "why not", "problem"], cells, "rrll"))];
}

/** Answers of training with a verdict, and those that passed. */
const countsOf = ({ attempts }: Problem) => ({
  passed: attempts.reduce((sum, { passed }) => sum + passed, 0),
  graded: attempts.reduce((sum, { graded }) => sum + graded, 0),
});

const statusesIn = (group: BatchGroup | undefined): string[] =>
  group?.graded.flatMap((event) => (event ? [event.grade.status] : [])) ?? [];

/** A problem: what it asks, and every attempt. */
export function describeProblem(
  run: string,
  readable: ReadableRun,
  { id, attempts, evaluations }: Problem,
  tokenizer: Tokenizer | string,
): string {
  const tries = [
    ...evaluations.map(({ samples: graded, ...rest }) => ({ ...rest, graded, phase: "eval" as Phase, outcome: "" })),
    ...attempts.map((attempt) => ({ ...attempt, phase: "train" as Phase })),
  ]
    .sort((a, b) => a.step - b.step)
    .map((attempt) => {
      const [group] = readBatch(readable, attempt.phase, attempt.step, attempt.group).groups;
      return { ...attempt, found: group };
    });
  const sum = (pick: (attempt: (typeof tries)[number]) => number) =>
    tries.reduce((all, attempt) => all + pick(attempt), 0);
  const first = tries.find(({ found }) => found)?.found;
  const lines = [
    `${visibleLine(id, 200)}${first ? ` (${visibleLine(first.sampled.source, 60)})` : ""}`,
    `  ${sum(({ passed }) => passed)} of ${sum(({ graded }) => graded)} graded answers passed, in ${tries.length} groups`,
  ];
  const known = attempts.filter(({ graded }) => graded > 0).map(({ passed, graded }) => passed / graded);
  if (known.length > 1) lines.push(`  solve rate over time ${sparkline(thinned(known), 0, 1)}`);
  lines.push("", "prompt", ...promptOf(first, tokenizer), "");
  const rows = tries.map(({ phase, step, group, graded, passed, outcome, found }) => {
    const samples = found?.sampled.samples ?? [];
    const tokens = samples.reduce((all, sample) => all + sample.tokens, 0);
    return [
      `${wordFor(phase)} ${step}`,
      String(group),
      String(found?.sampled.policy ?? "–"),
      `${passed}/${graded}`,
      outcome,
      String(Math.round(tokens / Math.max(1, samples.length))),
      statusesOf(statusesIn(found)),
    ];
  });
  lines.push(
    ...indented(textTable(["when", "group", "policy", "passed", "outcome", "tokens", "why not"], rows, "lrrrlrl")),
  );
  const last = tries.at(-1)!;
  lines.push("", `  the last: ${showCommand(run, `${wordFor(last.phase)}=${last.step}`, `group=${last.group}`)}`);
  return lines.join("\n");
}

function promptOf(group: BatchGroup | undefined, tokenizer: Tokenizer | string): string[] {
  if (typeof tokenizer === "string") return [`  (cannot be shown: ${tokenizer})`];
  const prompt = group?.arrays()["prompt"];
  if (!(prompt instanceof Int32Array)) return ["  (its tokens were dropped from the journal: keep_journal=checkpoint)"];
  return block(tokenizer.decode(prompt));
}

const indented = (lines: readonly string[]) => lines.map((line) => `  ${line}`);
