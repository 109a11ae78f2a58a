// The curves of a run, for the page and the report alike: one entry is one chart. A figure that is to be drawn needs a line here.
// @ts-check

/**
 * `lines`: figure, label, colour; `stacked`: areas one upon another, the first on the ground; `range`: at least this far; `share`: shown as
 * a percentage; `empty`: what stands there without figures.
 * @type {readonly import("./curves.d.ts").Curve[]}
 */
export const curves = [
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
