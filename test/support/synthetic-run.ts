// Journals for tests: a healthy run, and the same with one thing changed.

import type { NewEvent, RunEvent, UpdateRule } from "../../src/runs/events.ts";
import type { Finding } from "../../src/runs/findings.ts";

export type Figures = Record<string, number>;

/** A step of a run that learns: 8 groups of 16 answers. `noise` gives numbers from 0 to 1. */
export function healthyStep(step: number, noise: () => number = () => 0.5): Figures {
  const correct = Math.min(0.97, 0.4 + 0.02 * step + 0.2 * (noise() - 0.5));
  const allPass = Math.min(7, Math.floor(step / 5 + noise()));
  const format = Math.min(1, 0.7 + 0.02 * step + 0.1 * (noise() - 0.5));
  return {
    mean_reward: correct - 0.1 * (1 - format),
    mean_correct: correct,
    format_rate: format,
    groups_total: 8,
    groups_mixed: 8 - allPass,
    groups_all_pass: allPass,
    groups_all_fail: 0,
    groups_ungraded: 0,
    loss: 0.03 * (noise() - 0.5),
    "optim/lr": 2.5e-3,
    "optim/entropy": Math.max(0.01, 0.035 - 0.0005 * step) * (0.6 + 0.8 * noise()),
    "optim/kl_sample_train_v2": 1e-14,
    "optim/effective_sample_size": 1,
    "sample/truncated_rate": 0,
    "sample/tokens_mean": 42,
    "grade/status/pass": Math.round(128 * correct),
    "grade/status/wrong_answer": 128 - Math.round(128 * correct),
    "grade/ungraded_rate": 0,
    "pipeline/lag": 0,
    "pipeline/train_idle_frac": 0.5,
    "pipeline/sample_idle_frac": 0.5,
    "journal/disk_free": 100 * 2 ** 30,
    "time/total": 2,
    "time/grade_tail": 0.2,
  };
}

/** A record of an evaluation of `problems` problems. */
export function evaluation(rate: number, problems = 450): Figures {
  const half = 1.96 * Math.sqrt((rate * (1 - rate)) / problems);
  return { "eval/pass@1": rate, "eval/pass@1_low": rate - half, "eval/pass@1_high": rate + half };
}

export const config: Record<string, unknown> = {
  prompts_per_step: 8,
  completions_per_prompt: 16,
  learning_rate: 2.5e-3,
  max_steps: 50,
  max_tokens: 112,
  train_problems: 2400,
  eval_problems: 450,
  train_data: "starter",
  renderer_name: "qwen3_instruct",
};

/** An update as the defaults make it. */
export const updateRule: UpdateRule = {
  advantage: "mean",
  lossScale: "none",
  maxTokens: 112,
  maskTruncated: false,
  adam: { learningRate: 1e-4, beta1: 0.9, beta2: 0.95, eps: 1e-12, weightDecay: 0, gradClipNorm: 0 },
  lossFn: "importance_sampling",
  lossFnConfig: {},
  substeps: 1,
  mismatch: "none",
  mismatchCap: 2,
  references: [],
  rewarded: true,
};

/** Time passes by a second with every event. */
export function journal(events: readonly NewEvent[]): RunEvent[] {
  return events.map((event, index) => ({ ...event, at: startedAt + 1000 * index }) as RunEvent);
}

export const startedAt = Date.UTC(2026, 10, 1);

export const opened: NewEvent[] = [
  { type: "opened", pid: 1 },
  { type: "started", session: 0, config, changes: [] },
];

export const stepDone = (step: number, metrics: Figures): NewEvent => ({
  type: "step-done",
  step,
  datasetOffset: 8 * step,
  spans: [],
  observed: {},
  metrics,
});

/** A step with a mean reward of a tenth of its number. */
export const rewarded = (step: number, metrics: Figures = {}): NewEvent =>
  stepDone(step, { mean_reward: step / 10, ...metrics });

export const log = (message: string): NewEvent => ({ type: "log", level: "INFO", message });

/** An update on one answer. */
export const submitted = (step: number): NewEvent => ({
  type: "update-submitted",
  step,
  rule: updateRule,
  examples: 1,
  tokens: 1,
  readTokens: 0,
  nextOffset: 8 * (step + 1),
  groups: [
    {
      batch: step,
      group: 0,
      problem: "p0",
      outcome: "mixed",
      skipped: false,
      advantages: [0.5],
      trained: [0],
      graded: 1,
      passed: 1,
    },
  ],
  carried: [],
});

export const evaluated = (step: number, metrics: Figures): NewEvent => ({
  type: "evaluated",
  step,
  final: false,
  outcomes: [],
  metrics,
  start: 0,
  end: 1,
});

/** A run of `count` healthy steps with changes from a step on. */
export function run(
  count: number,
  change: (step: number, figures: Figures) => Figures = (_, same) => same,
): NewEvent[] {
  return [...opened, ...Array.from({ length: count }, (_, step) => stepDone(step, change(step, healthyStep(step))))];
}

export const ids = (findings: readonly { finding: Finding }[]) => findings.map(({ finding }) => finding.id);
