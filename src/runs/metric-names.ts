// Every metric of a run: what it means, and whether it is drawn. docs/metrics.md is made from it, the dashboard and the report draw its
// curves, and a test holds a real run's records against it. Words in capitals stand for what differs: a status, a source, a number.

export interface MetricSection {
  title: string;
  about?: string;
  metrics: Readonly<Record<string, string>>;
  /** What stands under the table. */
  after?: string;
}

export const metricSections: readonly MetricSection[] = [
  {
    title: "Core",
    metrics: {
      mean_reward: "mean reward of the graded completions",
      "reward/NAME": "of several rewards (`reward_weights`): the mean of the one with that name, before its weight",
      mean_correct: "share of graded completions that passed every test",
      format_rate: "share of completions with a code block",
      groups_total: "groups of the step: one per prompt",
      groups_skipped: "groups whose rewards are all equal, which teach nothing",
      groups_mixed: "groups in which some passed and some failed",
      groups_all_pass: "groups in which all passed",
      groups_all_fail: "groups in which all failed",
      groups_ungraded: "groups with too few verdicts to be used",
      n_datums: "completions trained on",
      loss: "the server's loss per completion token; absent when nothing was trained",
      loss_sum: "the server's loss, summed",
    },
  },
  {
    title: "Policy",
    about:
      "Over all completion tokens trained on, with q the sampler's and p the trainer's log-probability of the same token:",
    metrics: {
      "optim/kl_sample_train_v1":
        "mean of q − p. Near 0 when sampler and trainer agree; growing means that training is off-policy",
      "optim/kl_sample_train_v2": "half the mean of (q − p)²",
      "optim/kl_k3": "mean of r − 1 − (p − q), r = exp(p − q); never negative",
      "optim/entropy": "−mean of q",
      "optim/ratio_mean": "mean of the importance ratios r",
      "optim/ratio_max": "the largest r",
      "optim/ratio_frac_outside_0.8_1.2": "share of tokens whose r is outside 0.8 to 1.2",
      "optim/effective_sample_size": "(Σr)² / (n·Σr²): 1 on-policy, less when few tokens dominate",
      "optim/frac_q_zero": "share of tokens that the sampler was certain of",
      "optim/kl_start":
        "mean of log π_policy − log π_reference over the trained tokens: how far the policy is from kl_reference (kl_coef)",
      "optim/kl_teacher": "the same for the teacher",
      "optim/mismatch_frac": "share of trained tokens that mismatch= capped or left out",
      "optim/lr": "learning rate",
      "optim/NAME": "whatever the server reports for the optimizer step, such as the gradient's norm",
    },
  },
  {
    title: "Sampling, grading, data",
    metrics: {
      "sample/tokens_mean": "completion lengths: mean",
      "sample/tokens_p95": "completion lengths: 95% are not longer",
      "sample/tokens_max": "completion lengths: the longest",
      "sample/truncated_rate": "share cut at the token limit",
      "sample/prompt_tokens_mean": "prompt lengths: mean",
      "grade/status/STATUS": "completions by status: `pass`, `wrong_answer`, `format_error`, `time_limit` …",
      "grade/ungraded_rate": "share without a verdict; more than 0.2 stops the run",
      "grade/wall_p50": "seconds from answer to verdict: half are not slower",
      "grade/wall_p95": "seconds from answer to verdict: 95% are not slower",
      "grade/queue_p95": "seconds of that spent waiting in line",
      "grade/tests_run_mean": "tests run per completion",
      "grade/cached_rate": "share of verdicts that were known already",
      "grade/flags/FLAG":
        "programs that mention something suspicious (audit only; verdicts do not depend on it); `weak-tests`: answers to problems whose tests a know-nothing program would pass",
      "env/all/by_group/frac_mixed": "share of groups in which some passed",
      "env/all/by_group/frac_all_good": "share of groups in which all passed",
      "env/all/by_group/frac_all_bad": "share of groups in which none passed",
      "data/epoch": "pass over the data, from 0",
      "data/offset": "problems used so far",
      "data/source/SOURCE": "share of the step's problems that come from there",
      "progress/batch": "the step",
      "progress/done_frac": "share of `max_steps` that is done",
      "tokens/trained": "completion tokens trained on",
    },
  },
  {
    title: "Episodes",
    about: "Of answers that came about in several turns, with an [environment](environments.md).",
    metrics: {
      "episode/turns_mean": "answers of the model per episode",
      "episode/turns_max": "the most of them",
      "episode/context_tokens_mean": "tokens per episode that the model was shown behind its first prompt",
      "episode/sequences_mean":
        "sequences per episode: more than 1 where the chat format writes earlier turns otherwise",
      "episode/rewrites_mean": "junctions per episode at which a sequence began anew",
      "episode/tool_calls_mean": "calls of tools per episode",
      "episode/tool_error_rate": "share of them that gave an error",
      "episode/malformed_mean": "answers per episode with a call that could not be read",
      "episode/diverged": "turns that were sampled before a restart and not asked for again after it",
      "episode/own_time_p50": "seconds of an episode in which no answer was awaited: half are not slower",
      "episode/own_time_p95": "seconds of an episode in which no answer was awaited: 95% are not slower",
      "episode/stop/REASON":
        "share of episodes that ended because of it: `done`, `max_turns`, `context`, `truncated`, `malformed`, `timeout`, `stopped`",
      "env/NAME": "mean of what the environment logged or gave as a metric under that name",
    },
  },
  {
    title: "Evaluation",
    metrics: {
      "eval/pass@1": "Pass@1",
      "eval/pass@1_low": "lower end of its 95% Wilson interval",
      "eval/pass@1_high": "upper end of it",
      "eval/pass@K": "unbiased pass@k, with `eval_num_samples` > 1",
      "eval/SOURCE/pass@1": "per source",
      "eval/format_rate": "share of answers with a code block",
      "eval/truncated_rate": "share of answers cut at the token limit",
      "eval/n": "problems counted",
      "eval/ungraded": "problems without a verdict, not counted",
      "eval/mean_reward": "mean reward of episodes",
      "eval/episode/turns_mean": "answers of the model per episode",
      "eval/env/NAME": "mean of what the environment logged or gave as a metric under that name",
    },
    after:
      "`evaluations/step_000010.jsonl` has one line per problem, so that two evaluations can be compared pair by pair;\n" +
      "`evaluations/step_000010.answers.jsonl` has every answer with its verdict.",
  },
  {
    title: "Money",
    about:
      "Sums over the whole run up to the end of the step, evaluations included ([what is counted](runs.md#what-is-counted)). `cost/` is in US dollars and absent where no price is known.",
    metrics: {
      "tokens/prefill_total": "prompt tokens read, each prompt once for all its samples",
      "tokens/prefill_cached_total": "those of them that the server had cached",
      "tokens/sampled_total": "tokens sampled",
      "tokens/trained_total": "tokens of all sequences trained on, prompts included",
      "tokens/under_way_total": "the most, beside those, that answers under way when the step ended can come to",
      "cost/total": "what the run has cost so far",
      "cost/step": "what of it was spent since the step before",
      "cost/prefill": "what of it went into reading prompts",
      "cost/sample": "what of it went into sampling",
      "cost/train": "what of it went into training",
      "cost/eval": "what of it went into evaluations",
      "cost/wasted": "what of it went into what was done again or given up",
      "cost/lost": "estimate, beside the total, of what was asked for and never answered because a process ended",
      "cost/under_way": "the most, beside the total, that answers under way when the step ended can cost",
      "cost/per_mixed_group": "the total over the groups with right and wrong answers so far",
    },
  },
  {
    title: "Pipeline and journal",
    metrics: {
      "pipeline/lag":
        "policy versions between the sampler and the trainer, at most `max_lag`; with `tail=carry` one more",
      "pipeline/carried_groups": "with `tail=carry`: groups that were carried over from earlier steps",
      "pipeline/tail_frac": "share of the step in which nothing was waited for but the last quarter of its groups",
      "pipeline/in_flight_groups": "groups being sampled or graded when the step ended",
      "pipeline/train_idle_frac": "share of the step in which nothing was trained",
      "pipeline/sample_idle_frac": "share of the step in which no answer was awaited",
      "pipeline/bound_ratio":
        "the best possible pace over the actual one, over the last 20 steps: 1 is as fast as the stages allow",
      "journal/bytes": "size of the journal",
      "journal/disk_free": "bytes that can still be written where the run lies",
      "journal/append_p99_ms": "99% of its last 1,000 appends were on disk within this time",
    },
    after: "The best possible step takes max(train, (weights + sample + grade_tail + train) / (max_lag + 1)) seconds.",
  },
  {
    title: "Filling batches",
    about: "With `fill_batch=true`: what it took until enough groups taught.",
    metrics: {
      "fill/groups": "problems that were asked in place of those whose answers all got the same reward",
      "fill/missing": "groups that were still missing when four times prompts_per_step had been asked",
      "fill/tokens_frac": "share of the sampled tokens that went to the further problems",
      "time/fill": "seconds from the verdicts of the groups that were asked first to those of the last one",
    },
  },
  {
    title: "Time",
    about: "In seconds. With `max_lag` the sampling of a step began before the step before it ended.",
    metrics: {
      "time/weights": "publishing the policy for the sampler",
      "time/evaluate": "the evaluation of this step's policy",
      "time/sample": "from the first request to the last answer",
      "time/grade": "grading, which runs beside sampling",
      "time/grade_tail": "what grading adds after the last answer",
      "time/carried":
        "with `tail=carry`: from the first request to the last verdict of what was carried over from earlier steps",
      "time/train": "the update",
      "time/total": "from the end of the step before to the end of this one",
      "time/other": "what none of them covers: the loop's own work",
      "time/NAME": "any other span of `timing.jsonl`, which has each with its start and end",
    },
  },
];

const meanings: readonly [pattern: RegExp, meaning: string][] = metricSections
  .flatMap(({ metrics }) => Object.entries(metrics))
  // A name that is spelled out says more than one with a place in it.
  .toSorted(([a], [b]) => Number(/[A-Z]{2}|@K/.test(a)) - Number(/[A-Z]{2}|@K/.test(b)))
  .map(([name, meaning]) => {
    const literal = name.replaceAll(/[.*+?^${}()|[\]\\]/g, "\\$&");
    return [new RegExp(`^${literal.replaceAll(/[A-Z]{2,}/g, ".+").replace(/@K$/, "@\\d+")}$`), meaning];
  });

/** What a metric means; undefined for a name that no run of this version writes. */
export const metricMeaning = (name: string): string | undefined =>
  meanings.find(([pattern]) => pattern.test(name))?.[1];

/** A chart of some metrics. */
export interface MetricChart {
  title: string;
  hint?: string;
  lines: readonly (readonly [name: string, label: string, color: string])[];
  /** Areas one upon another, the first on the ground. */
  stacked?: boolean;
  /** The axis covers at least this. */
  range?: readonly [low: number | null, high: number | null];
  /** Shown as a percentage. */
  share?: boolean;
  /** The text without figures. */
  empty?: string;
  /** Without figures it is not there. */
  optional?: boolean;
}

/** The charts of the dashboard and of the report, in their order. */
export const metricCharts: readonly MetricChart[] = [
  {
    title: "Reward",
    hint: "mean of a step's answers",
    lines: [
      ["mean_reward", "reward", "blue"],
      ["mean_correct", "correct", "green"],
      ["format_rate", "format", "gray"],
    ],
    range: [0, 1],
  },
  {
    title: "Groups",
    hint: "by how their answers came out",
    lines: [
      ["groups_ungraded", "ungraded", "gray"],
      ["groups_all_fail", "all wrong", "red"],
      ["groups_all_pass", "all right", "green"],
      ["groups_mixed", "mixed", "blue"],
    ],
    stacked: true,
    range: [0, null],
  },
  { title: "Loss", hint: "per trained token", lines: [["loss", "loss", "violet"]] },
  {
    title: "KL, sampler to trainer",
    hint: "near 0 on-policy",
    lines: [
      ["optim/kl_sample_train_v1", "KL", "orange"],
      ["optim/kl_sample_train_v2", "½ (q−p)²", "gray"],
    ],
  },
  {
    title: "Effective sample size",
    hint: "1 on-policy; low when few tokens dominate",
    lines: [["optim/effective_sample_size", "share", "teal"]],
    range: [0, 1],
  },
  {
    title: "Entropy",
    hint: "−mean log-probability of sampled tokens",
    lines: [["optim/entropy", "entropy", "violet"]],
    range: [0, null],
  },
  {
    title: "Tokens per answer",
    lines: [
      ["sample/tokens_mean", "mean", "blue"],
      ["sample/tokens_p95", "95%", "gray"],
    ],
    range: [0, null],
  },
  {
    title: "Cut at the limit",
    hint: "share of answers",
    lines: [["sample/truncated_rate", "cut", "red"]],
    range: [0, 1],
    share: true,
  },
  {
    title: "Episodes",
    hint: "of several turns, means",
    lines: [
      ["episode/turns_mean", "turns", "blue"],
      ["episode/tool_calls_mean", "tool calls", "teal"],
      ["episode/sequences_mean", "sequences", "gray"],
    ],
    range: [0, null],
    optional: true,
  },
  {
    title: "How episodes ended",
    hint: "share, besides those that were done",
    lines: [
      ["episode/stop/max_turns", "out of turns", "orange"],
      ["episode/stop/context", "out of room", "violet"],
      ["episode/stop/truncated", "cut", "red"],
      ["episode/stop/timeout", "out of time", "gray"],
    ],
    range: [0, 1],
    share: true,
    optional: true,
  },
  {
    title: "Time per step",
    hint: "seconds",
    lines: [
      ["time/total", "step", "blue"],
      ["time/sample", "sampling", "teal"],
      ["time/train", "training", "orange"],
      ["time/grade_tail", "grading after", "gray"],
    ],
    range: [0, null],
  },
  {
    title: "Waiting",
    hint: "share of a step in which a stage stood still",
    lines: [
      ["pipeline/train_idle_frac", "trainer idle", "orange"],
      ["pipeline/sample_idle_frac", "sampler idle", "teal"],
    ],
    range: [0, 1],
    share: true,
  },
  {
    title: "Money",
    hint: "US dollars so far",
    lines: [["cost/total", "USD", "green"]],
    range: [0, null],
    empty: "No price is known for this model.",
  },
];
