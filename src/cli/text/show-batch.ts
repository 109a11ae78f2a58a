// A step or an evaluation as text: its groups; and one group: its answers, side by side.

import { whet } from "../../core/program.ts";
import { shellCommand } from "../../core/shell.ts";
import { mean } from "../../core/statistics.ts";
import { visible, visibleLine } from "../../core/visible.ts";
import type { Batch, BatchGroup, Phase } from "../../runs/batch.ts";
import { clock } from "../../runs/display.ts";
import { writtenOf } from "../../runs/turns.ts";
import type { RunView } from "../../runs/view.ts";
import { textTable } from "./table.ts";

export const wordFor = (phase: Phase) => (phase === "train" ? "step" : "evaluation");

/** `step=3` or `evaluation=25`: how a batch is named on the command line. */
export const batchKey = ({ phase, batch }: Pick<Batch, "phase" | "batch">) => `${wordFor(phase)}=${batch}`;

/** A command for what comes next, ready to paste. */
export const showCommand = (run: string, ...words: readonly string[]): string =>
  shellCommand(`${whet} show`, `run=${run}`, ...words);

export const number = (value: number | null | undefined, digits = 3) =>
  value === null || value === undefined ? "–" : value.toFixed(digits);

/** A step: its figures and its groups. */
export function describeBatch(run: string, view: RunView, batch: Batch): string {
  const evaluation = batch.phase === "eval";
  const done = evaluation ? undefined : view.steps.find(({ step }) => step === batch.batch);
  const metrics = done?.metrics ?? {};
  const lines = [
    evaluation
      ? `evaluation after ${batch.batch} steps: ${batch.groups.length} problems`
      : `step ${batch.batch}: ${batch.groups.length} groups${done ? "" : view.updates.has(batch.batch) ? ", being trained" : ", being sampled and graded"}`,
  ];
  const facts: [string, string | undefined][] = [
    ["reward", metrics["mean_reward"]?.toFixed(3)],
    ["correct", percent(metrics["mean_correct"])],
    ["format", percent(metrics["format_rate"])],
    ["loss", metrics["loss"]?.toFixed(4)],
    ["KL", metrics["optim/kl_sample_train_v1"]?.toExponential(1)],
    ["effective samples", percent(metrics["optim/effective_sample_size"])],
    ["lag", metrics["pipeline/lag"]?.toString()],
    ["turns", metrics["episode/turns_mean"]?.toFixed(1)],
    ["time", metrics["time/total"] === undefined ? undefined : clock(metrics["time/total"])],
    ["learning rate", metrics["optim/lr"]?.toString()],
  ];
  const known = facts.filter(([, value]) => value !== undefined).map(([name, value]) => `${name} ${value}`);
  if (known.length > 0) lines.push(`  ${known.join(", ")}`);
  const rows = batch.groups.map((group) => {
    const { sampled, judged, trainedIn } = group;
    const grades = group.graded.flatMap((event) => (event ? [event.grade] : []));
    const graded = grades.filter(({ verdict }) => verdict !== "ungraded");
    const rewards = graded.flatMap(({ reward }) => (reward === null ? [] : [reward]));
    return [
      String(sampled.group),
      `${graded.filter(({ verdict }) => verdict === "pass").length}/${sampled.samples.length}`,
      (judged
        ? judged.outcome + (judged.skipped && judged.outcome === "mixed" ? " (skipped)" : "")
        : outcomeSoFar(group)) + (trainedIn === batch.batch ? "" : `, with step ${trainedIn}`),
      rewards.length === 0 ? "–" : `${Math.min(...rewards).toFixed(2)} … ${Math.max(...rewards).toFixed(2)}`,
      String(Math.round(mean(sampled.samples.map((_, sample) => writtenOf(group, sample).tokens)) ?? 0)),
      statusesOf(grades.map(({ status }) => status)),
      visibleLine(sampled.problem, 60),
    ];
  });
  const header = ["group", "passed", "outcome", "rewards", "tokens", "why not", "problem"];
  lines.push("", ...textTable(header, rows, "rrllrl").map((line) => `  ${line}`));
  const trained = evaluation ? [] : (view.updates.get(batch.batch)?.groups ?? []);
  for (const earlier of new Set(trained.map((entry) => entry.batch))) {
    if (earlier === batch.batch) continue;
    const places = trained.flatMap((entry) => (entry.batch === earlier ? [entry.group] : [])).join(", ");
    const command = showCommand(run, batchKey({ ...batch, batch: earlier }));
    lines.push("", `  trained on with group ${places} of step ${earlier}: ${command}`);
  }
  const first = batch.groups.find(({ judged }) => judged?.outcome === "mixed") ?? batch.groups[0]!;
  lines.push("", `  one group: ${showCommand(run, batchKey(batch), `group=${first.sampled.group}`)}`);
  return lines.join("\n");
}

/** A group: its answers and what became of each. */
export function describeGroup(run: string, batch: Batch, group: BatchGroup): string {
  const { sampled, judged } = group;
  const lines = [
    `${batchKey(batch)} group ${sampled.group}: ${visibleLine(sampled.problem, 100)} (${visibleLine(sampled.source, 40)})`,
    `  answered by policy ${sampled.policy}, temperature ${sampled.temperature}` +
      `, prompt of ${sampled.promptTokens} tokens, in ${((sampled.end - sampled.start) / 1000).toFixed(1)} s`,
  ];
  if (judged)
    lines.push(
      `  ${judged.outcome}${judged.skipped ? ": every reward is the same, so it taught nothing" : ", trained on"}`,
    );
  const hasEpisodes = group.graded.some((event) => event?.grade.episode);
  const rows = sampled.samples.map((_, sample) => {
    const grade = group.graded[sample]?.grade;
    const { tokens, truncated } = writtenOf(group, sample);
    return [
      String(sample),
      grade?.verdict ?? "not graded yet",
      grade?.status ?? "",
      grade ? `${grade.passed}/${grade.total}` : "",
      number(grade?.reward, 2),
      number(judged?.advantages[sample], 3),
      `${tokens}${truncated ? " cut" : ""}`,
      ...(hasEpisodes ? [String(grade?.episode?.turns.length ?? ""), grade?.episode?.stop ?? ""] : []),
      reasonOf(group, sample),
    ];
  });
  const [turns, places] = hasEpisodes ? [["turns", "stop"], "rl"] : [[], ""];
  const header = ["sample", "verdict", "status", "tests", "reward", "advantage", "tokens", ...turns, "why"];
  lines.push(...question(sampled), "", ...textTable(header, rows, `rllrrrr${places}l`).map((line) => `  ${line}`));
  const withReason = group.graded.findIndex((event) => event?.grade.failure !== undefined);
  const failing = withReason >= 0 ? withReason : group.graded.findIndex((event) => event?.grade.verdict === "fail");
  lines.push(
    "",
    `  one answer: ${showCommand(run, batchKey(batch), `group=${sampled.group}`, `sample=${Math.max(0, failing)}`)}`,
    `  this problem over the run: ${showCommand(run, `problem=${sampled.problem}`)}`,
  );
  return lines.join("\n");
}

/** Untrusted text, indented so that it cannot pass for ours. */
export const block = (text: string): string[] =>
  visible(text)
    .replace(/\n$/, "")
    .split("\n")
    .map((line) => `  │ ${line}`);

/** What was asked, where the journal has it. */
export const question = ({ question: text }: BatchGroup["sampled"]): string[] =>
  text === undefined ? [] : ["", "question", ...block(text)];

/** One line about the first failing test. */
function reasonOf(group: BatchGroup, sample: number): string {
  const grade = group.graded[sample]?.grade;
  if (!grade || grade.verdict === "pass")
    return grade && grade.flags.length > 0 ? `flags: ${grade.flags.join(", ")}` : "";
  if (grade.message !== undefined) return visibleLine(grade.message, 60);
  const { failure } = grade;
  if (!failure) return grade.status === "format_error" ? "no closed code block" : "";
  const test = `test ${failure.testIndex + 1}: `;
  const lastError = failure.stderr.trimEnd().split("\n").at(-1) ?? "";
  if (grade.status !== "wrong_answer" && lastError !== "") return test + visibleLine(lastError, 60);
  return `${test}expected ${visibleLine(failure.expected.trim(), 24)}, got ${visibleLine(failure.printed.trim(), 24) || "nothing"}`;
}

function outcomeSoFar({ sampled, graded }: BatchGroup): string {
  const verdicts = graded.flatMap((event) => (event ? [event.grade.verdict] : []));
  if (verdicts.length < sampled.samples.length) return "being graded";
  const passed = verdicts.filter((verdict) => verdict === "pass").length;
  const counted = verdicts.filter((verdict) => verdict !== "ungraded").length;
  return counted === 0 ? "ungraded" : passed === 0 ? "all-fail" : passed === counted ? "all-pass" : "mixed";
}

/** `wrong_answer 3, time_limit 1`. */
export function statusesOf(statuses: readonly string[]): string {
  const counts = new Map<string, number>();
  for (const status of statuses) if (status !== "pass") counts.set(status, (counts.get(status) ?? 0) + 1);
  return [...counts]
    .sort(([, a], [, b]) => b - a)
    .map(([status, count]) => `${status} ${count}`)
    .join(", ");
}

export const percent = (value: number | undefined) =>
  value === undefined ? undefined : `${(100 * value).toFixed(0)}%`;
