// What the head of a run's page shows, as the page gets it.

import type { RunIndex } from "./run-index.ts";
import { writerOf } from "./run-list.ts";

/** The figures that the overview draws; others are asked for by name. */
export const chartedNames: readonly string[] = [
  "mean_reward",
  "mean_correct",
  "format_rate",
  "groups_total",
  "groups_mixed",
  "groups_all_pass",
  "groups_all_fail",
  "groups_ungraded",
  "loss",
  "optim/lr",
  "optim/kl_sample_train_v1",
  "optim/kl_sample_train_v2",
  "optim/kl_k3",
  "optim/entropy",
  "optim/effective_sample_size",
  "optim/ratio_max",
  "sample/tokens_mean",
  "sample/tokens_p95",
  "sample/truncated_rate",
  "tokens/trained",
  "cost/total",
  "cost/step",
  "pipeline/lag",
  "pipeline/train_idle_frac",
  "pipeline/sample_idle_frac",
  "pipeline/bound_ratio",
  "time/total",
  "time/sample",
  "time/train",
  "time/weights",
  "time/grade_tail",
  "grade/ungraded_rate",
];

export type RunState = "running" | "finished" | "interrupted" | "failed" | "ended";

/** What changes with every event: where the run is. */
export function pulseOf(index: RunIndex) {
  const { fold } = index;
  return {
    state: stateOf(index),
    pid: writerOf(index.path) ?? null,
    step: fold.columns.length > 0 ? fold.columns.step(fold.columns.length - 1) : -1,
    rows: fold.columns.length,
    lastAt: fold.lastAt,
    sinceStep: { ...fold.sinceStep },
    walked: index.isWalking ? index.progress : 1,
    problem: index.problem ?? null,
  };
}

/** What changes now and then. */
export function infoOf(index: RunIndex) {
  const { fold } = index;
  return {
    config: fold.config,
    sessions: fold.sessions,
    seconds:
      fold.sessions.reduce((sum, { openedAt, lastAt, started }) => (started ? sum + lastAt - openedAt : sum), 0) / 1000,
    metricNames: fold.columns.names.sort(),
    evaluations: [...fold.evaluations.values()]
      .sort((a, b) => a.step - b.step)
      .map(({ step, final, metrics, start, end }) => ({ step, final, metrics, start, end })),
    checkpoints: fold.checkpoints.map(({ name, step, final }) => ({ name, step, final: final ?? false })),
    controls: { paused: fold.paused },
    causes: fold.findings.causes.map(({ root: { finding, ...root }, symptoms, level }) => ({
      ...finding,
      ...root,
      level,
      symptoms: symptoms.map(({ since, finding: { id, message, steps } }) => ({ id, message, steps, since })),
    })),
    notes: fold.notes.filter(({ level, type }) => level !== "INFO" || type !== "log").slice(-100),
  };
}

function stateOf(index: RunIndex): RunState {
  if (writerOf(index.path) !== undefined) return "running";
  const outcome = index.fold.sessions.at(-1)?.outcome;
  return (outcome as RunState | undefined) ?? "ended";
}
