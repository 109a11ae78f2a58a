// Rules about what the rewards can teach: too hard, too easy, all equal, or not what they seem.
import { whet } from "../../core/program.ts";
import type { Evidence, StepFigures } from "../evidence.ts";
import {
  bestMean,
  evidenceOf,
  harm,
  harmOrDisagreement,
  ifLost,
  meanOf,
  overMeans,
  percent,
  type Rule,
  short,
  spanOf,
  sumOf,
} from "../rule.ts";

/** What leaves no answer right, or ever fewer. */
const unsolved = [
  ...harmOrDisagreement,
  "entropy-collapse",
  "format-low",
  "truncated-answers",
  "timeouts-dominate",
  "weak-tests",
];

/** Steps at the end, without a gap, for which something holds. */
const lastStretch = ({ steps }: Evidence, holds: (step: StepFigures) => boolean): StepFigures[] =>
  steps.slice(steps.findLastIndex((step) => !holds(step)) + 1);

const completions = (evidence: Evidence) => evidence.setting("completions_per_prompt", 16);

/** Given answers have no rewards. A reward function of the user's need not call any answer right: then only equal rewards teach nothing. */
const counts = (evidence: Evidence, { figures }: StepFigures) =>
  evidence.config["method"] !== "sft" && (evidence.config["sandbox"] !== "own reward" || figures["n_datums"] === 0);

const flatAtZero: Rule = {
  id: "reward-flat-zero",
  levels: ["warning", "error"],
  symptomOf: unsolved,
  when: "no answer was right for 4 steps, or at most 5% of those of 8 steps; error when none was for 8 steps",
  means:
    "the problems are too hard, so there is no positive signal; or the policy collapsed, or no answer can pass (wrong renderer, broken tests)",
  remedy: "train on easier problems, raise completions_per_prompt; look at answers first",
  ofReward: {
    means: "the problems are too hard, the policy collapsed, or the reward function calls no answer right",
    remedy: "look at answers and at what the reward function says of them; train on easier problems",
  },
  check(evidence) {
    const steps = lastStretch(evidence, (step) => step.figures["mean_correct"] === 0 && counts(evidence, step));
    const recent = evidence.last(8).filter((step) => counts(evidence, step));
    if (steps.length < 4 && recent.length === 8 && meanOf(recent, "mean_correct") <= 0.05)
      return {
        level: "warning",
        message: `${short(100 * meanOf(recent, "mean_correct"))}% of the answers of 8 steps were right`,
        steps: spanOf(recent),
        figures: evidenceOf(recent, "mean_correct", "groups_mixed"),
        command: evidence.command("show", `step=${evidence.step}`),
        ...ifLost(evidence),
      };
    if (steps.length < 4) return undefined;
    return {
      level: steps.length >= 8 ? "error" : "warning",
      message: `not one of ${sumOf(steps, "groups_total") * completions(evidence)} answers in ${steps.length} steps was right`,
      steps: spanOf(steps),
      figures: evidenceOf(steps.slice(-8), "mean_correct", "mean_reward", "format_rate"),
      command: evidence.command("show", `step=${evidence.step}`),
      ...ifLost(evidence),
    };
  },
};

const flatAtOne: Rule = {
  id: "reward-flat-one",
  levels: ["note", "warning"],
  symptomOf: ["weak-tests"],
  when: "99% of the answers were right for 5 steps; a note where training brought it there, a warning where it began so",
  means: "too easy: the model solves everything, so groups are equal and nothing is learned",
  remedy: "use a harder subset, or stop here",
  check(evidence) {
    const steps = lastStretch(evidence, ({ figures }) => (figures["mean_correct"] ?? 0) >= 0.99);
    if (steps.length < 5) return undefined;
    const began = meanOf(evidence.steps.slice(0, 5), "mean_correct") >= 0.98;
    return {
      level: began ? "warning" : "note",
      message: `${percent(meanOf(steps, "mean_correct"))} of the answers in ${steps.length} steps were right${began ? ", from the first step on" : ""}`,
      steps: spanOf(steps),
      figures: evidenceOf(steps.slice(-8), "mean_correct"),
    };
  },
};

const groupsEqual: Rule = {
  id: "groups-equal",
  levels: ["note", "warning", "error"],
  symptomOf: [...unsolved, "reward-flat-zero", "reward-flat-one"],
  when: "at most 5% of the groups of 5 steps had right and wrong answers; error after 10 steps, a note where nearly every answer is right because of training",
  means:
    "groups whose rewards are all equal teach nothing: problems are too easy or too hard, or too few completions per problem to tell",
  remedy:
    "look at the rewards per problem; mix data of other difficulty, raise completions_per_prompt, or let a batch ask further problems (fill_batch=true)",
  check(evidence) {
    const equal = ({ figures }: StepFigures) => (figures["groups_mixed"] ?? 0) === 0;
    const recent = evidence.last(5);
    const mixed = sumOf(recent, "groups_mixed") / Math.max(1, sumOf(recent, "groups_total"));
    if (recent.length < 5 || mixed > 0.05 || !recent.every((step) => counts(evidence, step))) return undefined;
    const stretch = lastStretch(evidence, equal);
    const solved = meanOf(recent, "mean_correct") >= 0.95;
    const learned = solved && meanOf(evidence.steps.slice(0, 5), "mean_correct") < 0.95;
    return {
      level: learned ? "note" : stretch.length >= 10 && !solved ? "error" : "warning",
      message:
        `of ${sumOf(recent, "groups_total")} groups in ${recent.length} steps, ${sumOf(recent, "groups_mixed")} had right and wrong answers: ` +
        `${sumOf(recent, "groups_all_pass")} all right, ${sumOf(recent, "groups_all_fail")} all wrong`,
      steps: spanOf(recent),
      figures: evidenceOf(recent, "groups_mixed", "groups_all_pass", "groups_all_fail"),
      ...(solved
        ? { means: flatAtOne.means, remedy: flatAtOne.remedy }
        : { command: evidence.again(`completions_per_prompt=${2 * completions(evidence)}`) }),
      ...ifLost(evidence),
    };
  },
};

const rewardWithoutPass1: Rule = {
  id: "reward-without-pass1",
  levels: ["warning", "error"],
  symptomOf: ["weak-tests", "flags-rising"],
  when: "between two evaluations 15 points more answers became right in training, more than the evaluation's uncertainty, and Pass@1 gained less than a fifth of that; error where flagged programs pass",
  means:
    "reward hacking (hard-coded outputs, answers that exploit weak tests), problems learned by heart, or tests of another kind than the training problems",
  remedy: "look at the programs that pass; certify the training problems",
  ofReward: {
    means: "answers that the reward function likes and that solve nothing, or problems learned by heart",
    remedy: "look at the answers that have the reward",
  },
  check(evidence) {
    const [first, last] = [evidence.evaluations[0], evidence.evaluations.at(-1)];
    if (!first || !last || first === last) return undefined;
    const [before, after] = [first.figures["eval/pass@1"], last.figures["eval/pass@1"]];
    if (before === undefined || after === undefined) return undefined;
    const between = evidence.steps.filter(({ step }) => step >= first.step && step < last.step);
    if (between.length < 6) return undefined;
    const window = Math.min(5, Math.floor(between.length / 2));
    const [low, high] = [between.slice(0, window), between.slice(-window)].map((steps) =>
      meanOf(steps, "mean_correct"),
    );
    const rise = high! - low!;
    const uncertainty = (last.figures["eval/pass@1_high"] ?? 1) - (last.figures["eval/pass@1_low"] ?? 0);
    if (!(rise >= 0.15 && rise >= uncertainty && after - before < rise / 5)) return undefined;
    const flagged = evidence.flaggedPasses.filter(({ step }) => step >= between.at(-1)!.step - window).slice(-8);
    return {
      level: flagged.length > 0 ? "error" : "warning",
      message: `right answers in training went from ${percent(low!)} to ${percent(high!)}, Pass@1 from ${percent(before)} to ${percent(after)}`,
      steps: [first.step, last.step],
      figures: [
        ...evidenceOf([first, last], "eval/pass@1"),
        { name: "mean_correct", step: between[0]!.step, value: low! },
        { name: "mean_correct", step: between.at(-1)!.step, value: high! },
      ],
      samples: flagged,
      command: evidence.command("show", `step=${flagged.at(-1)?.step ?? evidence.step}`),
    };
  },
};

const pass1Falling: Rule = {
  id: "pass1-falling",
  levels: ["warning"],
  symptomOf: [...unsolved, "correct-falling", "reward-flat-zero"],
  when: "Pass@1 is below the best evaluation before, and the two 95% intervals do not touch",
  means: "training costs more than it gives: overfitting, too much lag or too high a learning rate",
  remedy: "keep the checkpoint of the best evaluation; lower the learning rate from there",
  check(evidence) {
    const last = evidence.evaluations.at(-1);
    const earlier = evidence.evaluations.slice(0, -1);
    if (!last || earlier.length === 0) return undefined;
    const rate = (evaluation: StepFigures) => evaluation.figures["eval/pass@1"] ?? 0;
    const best = earlier.reduce((a, b) => (rate(b) > rate(a) ? b : a));
    if (!((last.figures["eval/pass@1_high"] ?? 1) < (best.figures["eval/pass@1_low"] ?? 0))) return undefined;
    return {
      level: "warning",
      message: `Pass@1 fell from ${percent(rate(best))} after ${best.step} steps to ${percent(rate(last))} after ${last.step}`,
      steps: [best.step, last.step],
      figures: evidenceOf([best, last], "eval/pass@1", "eval/pass@1_low", "eval/pass@1_high"),
      command: evidence.command("eval"),
    };
  },
};

const correctFalling: Rule = {
  id: "correct-falling",
  levels: ["warning"],
  symptomOf: unsolved,
  when: "over 10 steps, 20 points fewer answers are right than in the best 10 of the 100 steps before",
  means:
    "what was learned is being lost: the learning rate is too high for what is left to learn, or the problems have become harder",
  remedy: "lower the learning rate, also while it runs, or go back to the best checkpoint",
  check(evidence) {
    const now = evidence.last(10);
    const before = evidence.steps.slice(-110, -10);
    if (before.length < 10) return undefined;
    const best = bestMean(before, "mean_correct", 10);
    const rate = meanOf(now, "mean_correct");
    if (!(rate <= best - 0.2)) return undefined;
    return {
      level: "warning",
      message: `${percent(rate)} of the answers are right; it was ${percent(best)}`,
      steps: spanOf(now),
      figures: [...evidenceOf(now, "mean_correct"), { name: "best mean of ten steps", value: best }],
      command: evidence.command("control", `learning_rate=${short(evidence.learningRate / 2)}`),
    };
  },
};

const formatLow: Rule = {
  id: "format-low",
  levels: ["error"],
  symptomOf: ["truncated-answers"],
  when: "fewer than 20% of the answers of the first three steps have a code block",
  means:
    "the model does not answer in the form that is graded: wrong renderer or prompt, a base model without chat training, or answers cut before their end",
  remedy: "check the renderer and max_tokens",
  check(evidence) {
    const first = evidence.steps.slice(0, 3);
    if (first.length < 3 || !(meanOf(first, "format_rate") < 0.2)) return undefined;
    return {
      level: "error",
      message: `${percent(meanOf(first, "format_rate"))} of the first answers have a code block (renderer ${String(evidence.config["renderer_name"] ?? "?")})`,
      steps: spanOf(first),
      figures: evidenceOf(first, "format_rate", "sample/truncated_rate"),
      command: `${whet} doctor renderer_name=${String(evidence.config["renderer_name"] ?? "")}`,
    };
  },
};

const truncated = overMeans({
  id: "truncated-answers",
  levels: ["warning", "error"],
  symptomOf: [...harm, "entropy-collapse"],
  when: "30% of the answers of three steps are cut at the token limit; error from 80% on",
  means:
    "max_tokens is too small for this model, or it does not end its answers (wrong renderer, collapse): what is cut can rarely be right",
  remedy:
    "raise max_tokens (and context_window), or set mask_truncated=true so that cut answers are not held against the model",
  over: 3,
  figures: ["sample/truncated_rate", "sample/tokens_mean"],
  sees([rate, length], evidence) {
    if (!(rate! >= 0.3)) return undefined;
    const limit = evidence.setting("max_tokens", 0);
    return {
      level: rate! >= 0.8 ? "error" : "warning",
      message: `${percent(rate!)} of the answers are cut (max_tokens=${limit}, mean length ${short(length!)})`,
      command: evidence.again(`max_tokens=${2 * limit}`),
      ...ifLost(evidence),
    };
  },
});

export const rewardRules: readonly Rule[] = [
  flatAtZero,
  flatAtOne,
  groupsEqual,
  rewardWithoutPass1,
  pass1Falling,
  correctFalling,
  formatLow,
  truncated,
];
