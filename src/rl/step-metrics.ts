// The numbers of one step. Names without a slash are the core ones; the rest are grouped by slash.
import type { Batch } from "./batch.ts";
import { mean, quantile } from "./statistics.ts";

/** Everything that can be said about a batch before it is trained on. Missing is not zero: a value without data is left out. */
export function batchMetrics(batch: Batch): Record<string, number> {
  const completions = batch.groups.flatMap(({ group }) => group.completions);
  const graded = completions.filter(({ grade }) => grade.verdict !== "ungraded");
  const outcomes = batch.groups.map(({ outcome }) => outcome);
  const groupShare = (outcome: string) => outcomes.filter((value) => value === outcome).length / (outcomes.length || 1);
  const tokens = completions.map((completion) => completion.tokens.length);
  const metrics: Record<string, number | undefined> = {
    mean_reward: mean(graded.map(({ grade }) => grade.reward!)),
    mean_correct: mean(graded.map(({ grade }) => (grade.verdict === "pass" ? 1 : 0))),
    format_rate: mean(completions.map(({ grade }) => (grade.formatOk ? 1 : 0))),
    groups_skipped: batch.groups.filter(({ skipped }) => skipped).length,
    groups_total: batch.groups.length,
    n_datums: batch.examples.length,
    groups_all_fail: outcomes.filter((outcome) => outcome === "all-fail").length,
    groups_all_pass: outcomes.filter((outcome) => outcome === "all-pass").length,
    groups_mixed: outcomes.filter((outcome) => outcome === "mixed").length,
    groups_ungraded: outcomes.filter((outcome) => outcome === "ungraded").length,
    "env/all/by_group/frac_mixed": groupShare("mixed"),
    "env/all/by_group/frac_all_good": groupShare("all-pass"),
    "env/all/by_group/frac_all_bad": groupShare("all-fail"),
    "sample/tokens_mean": mean(tokens),
    "sample/tokens_p95": quantile(tokens, 0.95),
    "sample/tokens_max": quantile(tokens, 1),
    "sample/truncated_rate": mean(completions.map(({ truncated }) => (truncated ? 1 : 0))),
    "sample/prompt_tokens_mean": mean(batch.groups.map(({ group }) => group.task.prompt.length)),
    "grade/ungraded_rate":
      completions.length === 0 ? undefined : (completions.length - graded.length) / completions.length,
    "grade/wall_p50": quantile(seconds(graded, "wallMs"), 0.5),
    "grade/wall_p95": quantile(seconds(graded, "wallMs"), 0.95),
    "grade/queue_p95": quantile(seconds(graded, "queueMs"), 0.95),
    "grade/tests_run_mean": mean(graded.map(({ grade }) => grade.ran)),
    "grade/cached_rate": mean(graded.map(({ grade }) => (grade.cached ? 1 : 0))),
  };
  for (const { grade } of completions) {
    count(metrics, `grade/status/${grade.status}`);
    for (const flag of grade.flags) count(metrics, `grade/flags/${flag}`);
  }
  for (const { group } of batch.groups) count(metrics, `data/source/${group.task.source}`, 1 / batch.groups.length);
  return Object.fromEntries(
    Object.entries(metrics).filter((entry): entry is [string, number] => entry[1] !== undefined),
  );
}

const seconds = (graded: readonly { grade: { wallMs: number; queueMs: number } }[], key: "wallMs" | "queueMs") =>
  graded.map(({ grade }) => grade[key] / 1000);

function count(metrics: Record<string, number | undefined>, name: string, amount = 1): void {
  metrics[name] = (metrics[name] ?? 0) + amount;
}
