// The numbers of one step. Names without a slash are the core ones; the rest are grouped by slash. All of it follows from what the
// journal has of the step, so a replay gives the same numbers.

import { mean, quantile } from "../core/statistics.ts";
import type { Span, UpdateRule } from "../runs/events.ts";
import { coveredMs, spanMetrics } from "../runs/timing.ts";
import type { Batch, GroupOutcome } from "./batch.ts";
import type { TrainConfig } from "./config.ts";
import { ownValues, type TrainingExample } from "./datums.ts";
import { PolicyDrift } from "./diagnostics.ts";
import { firstAsked } from "./fill.ts";
import { referenceMetrics } from "./references.ts";
import type { Completion, Group } from "./rollout.ts";
import { actionTokens, type TrainStepResult } from "./train-step.ts";

/** What a step is judged by. */
interface StepFacts {
  step: number;
  /** Prompts consumed before it. */
  datasetOffset: number;
  datasetSize: number;
  config: Pick<TrainConfig, "max_steps" | "max_lag" | "tail" | "fill_batch" | "prompts_per_step">;
  rule: Pick<UpdateRule, "adam">;
  batch: Batch;
  /** The update's figures (updateMetrics). Undefined: no group taught anything, so nothing was trained. */
  update: Readonly<Record<string, number>> | undefined;
  spans: readonly Span[];
  /** What only the moment could tell, by metric name. */
  observed: Readonly<Record<string, number>>;
  /** The steps so far, this one last: where the pipeline stands is an average over up to 20 of them. */
  steps: readonly { spans: readonly Span[] }[];
}

export const recentSteps = 20;

export function stepMetrics(facts: StepFacts): Record<string, number> {
  const { step, config, batch, update, datasetOffset, datasetSize } = facts;
  const { max_steps: maxSteps } = config;
  const asked = firstAsked(config);
  return {
    ...batchMetrics(batch),
    ...(asked === undefined ? {} : fillMetrics(batch, asked)),
    "optim/lr": facts.rule.adam.learningRate,
    ...update,
    ...referenceMetrics(batch),
    "progress/batch": step,
    ...(maxSteps > 0 ? { "progress/done_frac": (step + 1) / maxSteps } : {}),
    "data/offset": datasetOffset,
    "data/epoch": Math.floor(datasetOffset / datasetSize),
    ...pipelineMetrics(facts),
    ...facts.observed,
    ...spanMetrics(facts.spans),
  };
}

/** Everything that can be said about a batch before it is trained on. Missing is not zero: a value without data is left out. */
export function batchMetrics(batch: Batch): Record<string, number> {
  const completions = batch.groups.flatMap(({ group }) => group.completions);
  // What was given has no verdict of its own.
  const judged = batch.groups.filter(({ group }) => !group.given).flatMap(({ group }) => group.completions);
  const graded = judged.filter(({ grade }) => grade.verdict !== "ungraded");
  const ended = (as: GroupOutcome) => batch.groups.filter(({ outcome }) => outcome === as).length;
  const share = (as: GroupOutcome) => ended(as) / (batch.groups.length || 1);
  const tokens = completions.map((completion) => completion.tokens.length);
  const metrics: Record<string, number | undefined> = {
    mean_reward: mean(graded.map(({ grade }) => grade.reward!)),
    mean_correct: mean(graded.map(({ grade }) => (grade.verdict === "pass" ? 1 : 0))),
    format_rate: mean(judged.map(({ grade }) => (grade.formatOk ? 1 : 0))),
    groups_skipped: batch.groups.filter(({ skipped }) => skipped).length,
    groups_total: batch.groups.length,
    n_datums: batch.examples.length,
    groups_all_fail: ended("all-fail"),
    groups_all_pass: ended("all-pass"),
    groups_mixed: ended("mixed"),
    groups_ungraded: ended("ungraded"),
    "env/all/by_group/frac_mixed": share("mixed"),
    "env/all/by_group/frac_all_good": share("all-pass"),
    "env/all/by_group/frac_all_bad": share("all-fail"),
    "sample/tokens_mean": mean(tokens),
    "sample/tokens_p95": quantile(tokens, 0.95),
    "sample/tokens_max": quantile(tokens, 1),
    "sample/truncated_rate": mean(completions.map(({ truncated }) => (truncated ? 1 : 0))),
    "sample/prompt_tokens_mean": mean(batch.groups.map(({ group }) => group.prompt.length)),
    "grade/ungraded_rate": judged.length === 0 ? undefined : (judged.length - graded.length) / judged.length,
    "grade/wall_p50": quantile(seconds(graded, "wallMs"), 0.5),
    "grade/wall_p95": quantile(seconds(graded, "wallMs"), 0.95),
    "grade/queue_p95": quantile(seconds(graded, "queueMs"), 0.95),
    "grade/tests_run_mean": mean(graded.map(({ grade }) => grade.ran)),
    "grade/cached_rate": mean(graded.map(({ grade }) => (grade.cached ? 1 : 0))),
  };
  Object.assign(metrics, episodeMetrics(completions));
  const rewards = graded.flatMap(({ grade }) => (grade.rewards ? [grade.rewards] : []));
  for (const name of new Set(rewards.flatMap((each) => Object.keys(each))))
    metrics[`reward/${name}`] = mean(rewards.flatMap((each) => each[name] ?? []));
  for (const { grade } of completions) {
    count(metrics, `grade/status/${grade.status}`);
    for (const flag of grade.flags) count(metrics, `grade/flags/${flag}`);
  }
  for (const { group } of batch.groups) count(metrics, `data/source/${group.source}`, 1 / batch.groups.length);
  return Object.fromEntries(
    Object.entries(metrics).filter((entry): entry is [string, number] => entry[1] !== undefined),
  );
}

/** Figures of answers in several turns; none where there are none. */
function episodeMetrics(completions: readonly Completion[]): Record<string, number | undefined> {
  const played = completions.flatMap((completion) => {
    const { episode } = completion.grade;
    return episode ? [{ ...episode, sequences: completion.sequences.length }] : [];
  });
  if (played.length === 0) return {};
  const sum = (pick: (episode: (typeof played)[number]) => number) => played.reduce((all, one) => all + pick(one), 0);
  const each = (pick: Parameters<typeof sum>[0]) => sum(pick) / played.length;
  const own = played.map(({ ownMs }) => ownMs / 1000);
  const calls = sum(({ toolCalls }) => toolCalls);
  const metrics: Record<string, number | undefined> = {
    "episode/turns_mean": each(({ turns }) => turns.length),
    "episode/turns_max": Math.max(...played.map(({ turns }) => turns.length)),
    "episode/context_tokens_mean": each(({ contextTokens }) => contextTokens),
    "episode/sequences_mean": each(({ sequences }) => sequences),
    "episode/rewrites_mean": each(({ rewrites }) => rewrites.length),
    "episode/tool_calls_mean": calls / played.length,
    "episode/tool_error_rate": calls === 0 ? undefined : sum(({ toolErrors }) => toolErrors) / calls,
    "episode/malformed_mean": each(({ malformed }) => malformed),
    "episode/diverged": sum(({ diverged }) => diverged) || undefined,
    "episode/own_time_p50": quantile(own, 0.5),
    "episode/own_time_p95": quantile(own, 0.95),
  };
  for (const { stop } of played) count(metrics, `episode/stop/${stop}`, 1 / played.length);
  const names = new Set(played.flatMap((episode) => Object.keys(episode.metrics)));
  for (const name of names) metrics[`env/${name}`] = mean(played.flatMap((episode) => episode.metrics[name] ?? []));
  return metrics;
}

/** What it took to fill the batch with groups that teach. */
function fillMetrics({ groups }: Batch, firstAsked: number): Record<string, number> {
  const tokens = groups.map(({ group }) => group.completions.reduce((sum, answer) => sum + answer.tokens.length, 0));
  const sum = (some: readonly number[]) => some.reduce((all, count) => all + count, 0);
  return {
    "fill/groups": Math.max(0, groups.length - firstAsked),
    "fill/missing": Math.max(0, firstAsked - groups.filter(({ skipped }) => !skipped).length),
    "fill/tokens_frac": sum(tokens.slice(firstAsked)) / Math.max(1, sum(tokens)),
  };
}

/** The update, and how far the policy that sampled was from the one that was trained. */
export function updateMetrics(
  examples: readonly TrainingExample[],
  { lossSum, server, logprobs }: TrainStepResult,
): Record<string, number> {
  const tokens = actionTokens(examples);
  const drift = new PolicyDrift();
  let offset = 0;
  // What was given was never sampled: there is nothing to have drifted from.
  const isSampled = examples.some(({ given }) => !given);
  for (const example of logprobs && isSampled ? examples : []) {
    const sampled = ownValues(example, "logprobs");
    drift.add(sampled, logprobs!.subarray(offset, offset + sampled.length));
    offset += sampled.length;
  }
  return {
    ...server,
    ...(isSampled ? drift.metrics() : {}),
    ...(lossSum === undefined ? {} : { loss: lossSum / Math.max(1, tokens), loss_sum: lossSum }),
    "tokens/trained": tokens,
  };
}

/** How the pipeline did: how old the policies were, who waited for whom, and how close the pace is to the best possible one. */
function pipelineMetrics({ step, config, batch, spans, steps }: StepFacts): Record<string, number> {
  const total = durationOf(spans, "total");
  const training = spans.filter(({ name }) => name === "train");
  const recent = steps.slice(-recentSteps);
  const took = recent.reduce((sum, { spans }) => sum + durationOf(spans, "total"), 0);
  const bound = recent.reduce((sum, { spans }) => sum + leastMs(spans, config.max_lag), 0);
  return {
    "pipeline/lag": Math.max(0, ...batch.groups.map(({ group }) => step - group.policy)),
    ...(config.tail === "carry" && {
      "pipeline/carried_groups": batch.groups.filter(({ group }) => group.batch < step).length,
    }),
    "pipeline/tail_frac": total > 0 ? tailMs(batch, spans) / total : 0,
    "pipeline/train_idle_frac": total > 0 ? Math.max(0, 1 - coveredMs(training) / total) : 0,
    "pipeline/bound_ratio": took > 0 ? bound / took : 1,
  };
}

/** How long a step waited for the last quarter of its groups, when it waited for nothing else. */
function tailMs({ groups }: Batch, spans: readonly Span[]): number {
  const ends = groups.map(({ group }) => group.judged.end).sort((a, b) => a - b);
  const began = spans.find(({ name }) => name === "total")?.start ?? 0;
  const most = ends[Math.ceil(0.75 * ends.length) - 1] ?? 0;
  return Math.max(0, (ends.at(-1) ?? 0) - Math.max(most, began));
}

/** The least that a step could have taken: the trainer must train, and a batch passes through all stages in at most lag + 1 steps. */
function leastMs(spans: readonly Span[], maxLag: number): number {
  const train = durationOf(spans, "train");
  const through = ["weights", "sample", "grade_tail"].reduce((sum, name) => sum + durationOf(spans, name), train);
  return Math.max(train, through / (maxLag + 1));
}

/**
 * A batch's stages: sampling, grading, and the grading that was left when the last answer had come, of its own groups; what those took
 * that were carried over into it; with fill_batch, how long it went on after the groups that were asked first.
 */
export function batchSpans(step: number, { groups }: Batch, config: Parameters<typeof firstAsked>[0]): Span[] {
  const asked = firstAsked(config);
  const all = groups.map(({ group }) => group);
  const own = all.filter(({ batch }) => batch === step);
  const carried = all.filter(({ batch }) => batch !== step);
  if (own.length === 0) return [];
  const sampled = { start: first(own, "sampled"), end: last(own, "sampled") };
  const graded = last(own, "judged");
  const spans = [
    { name: "sample", ...sampled },
    { name: "grade", start: Math.min(graded, first(own, "judged")), end: graded },
    { name: "grade_tail", start: sampled.end, end: Math.max(sampled.end, graded) },
  ];
  if (carried.length > 0)
    spans.push({ name: "carried", start: first(carried, "sampled"), end: last(carried, "judged") });
  if (asked !== undefined) spans.push({ name: "fill", start: last(own.slice(0, asked), "judged"), end: graded });
  return spans;
}

type Stage = "sampled" | "judged";
const first = (groups: readonly Group[], stage: Stage) => Math.min(...groups.map((group) => group[stage].start));
const last = (groups: readonly Group[], stage: Stage) => Math.max(...groups.map((group) => group[stage].end));

/** Milliseconds of all spans of a name. */
const durationOf = (spans: readonly Span[], wanted: string) =>
  spans.reduce((sum, { name, start, end }) => (name === wanted ? sum + end - start : sum), 0);

const seconds = (graded: readonly { grade: { wallMs: number; queueMs: number } }[], key: "wallMs" | "queueMs") =>
  graded.map(({ grade }) => grade[key] / 1000);

function count(metrics: Record<string, number | undefined>, name: string, amount = 1): void {
  metrics[name] = (metrics[name] ?? 0) + amount;
}
