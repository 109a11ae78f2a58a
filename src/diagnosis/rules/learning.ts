// Rules about training that harms the policy: mostly a learning rate that is too high, or answers that are too old for an unclipped loss.
import { whet } from "../../core/program.ts";
import type { Evidence, StepFigures } from "../evidence.ts";
import {
  bestMean,
  binomialTail,
  evidenceOf,
  harm,
  harmOrDisagreement,
  lower,
  meanOf,
  medianOf,
  percent,
  type Rule,
  rateOf,
  short,
  spanOf,
  sumOf,
  valuesOf,
} from "../rule.ts";

const solved = (steps: readonly StepFigures[]) => sumOf(steps, "groups_mixed") + sumOf(steps, "groups_all_pass");
const judged = (steps: readonly StepFigures[]) => sumOf(steps, "groups_total") - sumOf(steps, "groups_ungraded");

/** So unlikely by chance that one run in many thousands of steps sees it. */
const byChance = 1e-6;

const collapse: Rule = {
  id: "collapse",
  levels: ["error"],
  curable: true,
  symptomOf: harmOrDisagreement,
  when: "the share of problems with a right answer falls within two steps as chance alone does not explain (binomial, less than 1 in a million)",
  means:
    "an update broke the policy: the learning rate is too high. Groups are suddenly all equal, so nothing is learned from here on",
  remedy: "go back to a checkpoint before it with a smaller learning rate; on_error=rollback does so by itself",
  check(evidence) {
    const now = evidence.last(2);
    const before = evidence.steps.slice(-12, -2);
    if (now.length < 2 || before.length === 0) return undefined;
    const [earlier, trials] = [solved(before), judged(before)];
    // A rate that few groups vouch for is taken to be lower than it looks.
    const rate = earlier / (trials + 2);
    const [hits, groups] = [solved(now), judged(now)];
    if (groups === 0 || rate === 0 || hits / groups > rate / 2) return undefined;
    // Each of the two steps must have fallen: one hard batch is no collapse.
    if (now.some((step) => solved([step]) > (judged([step]) * rate) / 2)) return undefined;
    if (binomialTail(hits, groups, rate) > byChance) return undefined;
    // It may have begun to fall before: the policies of those steps are no place to go back to.
    let onset = evidence.steps.length - 2;
    while (onset > 1 && solved([evidence.steps[onset - 1]!]) < 0.7 * judged([evidence.steps[onset - 1]!]) * rate)
      onset--;
    return {
      level: "error",
      message: `right answers came for ${earlier} of ${trials} problems, and now for ${hits} of ${groups}`,
      steps: spanOf(evidence.steps.slice(onset)),
      command: lower(evidence),
      figures: [...evidenceOf([...before.slice(-1), ...now], "mean_correct", "format_rate"), rateOf(evidence)],
    };
  },
};

const lossExploding: Rule = {
  id: "loss-exploding",
  levels: ["error"],
  curable: true,
  symptomOf: harmOrDisagreement,
  when: "the loss is not a number, or per token above 0.3 (more than advantages alone can make) and 20 times its size in the first or the latest steps",
  means: "importance ratios or gradients run away: the learning rate is too high",
  remedy:
    "reduce the learning rate (the usual one for large models is 1e-5 to 4e-5), or use loss_fn=ppo, which bounds the ratios",
  check(evidence) {
    const [step] = evidence.last(1);
    const loss = step?.figures["loss"];
    if (step === undefined || loss === undefined) return undefined;
    // The first steps too: a loss that grows steadily is soon its own usual.
    const sizes = [evidence.first(6, "loss").slice(0, 5), evidence.steps.slice(-21, -1)].map((steps) =>
      medianOf(valuesOf(steps, "loss").map(Math.abs)),
    );
    const usual = Math.min(...sizes.filter(Number.isFinite));
    const exploded =
      !Number.isFinite(loss) || (Math.abs(loss) > 0.3 && evidence.steps.length > 1 && !(Math.abs(loss) < 20 * usual));
    if (!exploded) return undefined;
    return {
      level: "error",
      message: `the loss per token is ${short(loss)}${Number.isFinite(usual) ? `, usually ${short(usual)}` : ""}`,
      steps: spanOf([step]),
      command: lower(evidence),
      figures: [...evidenceOf(evidence.last(3), "loss"), rateOf(evidence)],
    };
  },
};

/** Entropy of the first trained steps against that of the newest ones. */
function entropies(
  evidence: Evidence,
): { first: StepFigures[]; last: StepFigures[]; least: number; most: number } | undefined {
  const last = evidence.last(2, "optim/entropy");
  const early = evidence.first(7, "optim/entropy");
  if (early.length < 4) return undefined;
  const first = early.slice(0, Math.min(5, early.length - 2));
  const usual = medianOf(valuesOf(first, "optim/entropy"));
  const ratios = valuesOf(last, "optim/entropy").map((entropy) => entropy / usual);
  return { first, last, least: Math.min(...ratios), most: Math.max(...ratios) };
}

const entropyRunaway: Rule = {
  id: "entropy-runaway",
  levels: ["warning", "error"],
  curable: true,
  symptomOf: harmOrDisagreement,
  when: "the sampled answers' entropy is 4 times that of the first steps for two steps, and fewer answers are right; error from 8 times on",
  means: "the policy drifts into noise: the learning rate is too high",
  remedy: "reduce the learning rate",
  check(evidence) {
    const entropy = entropies(evidence);
    // Of the two newest steps the milder: one odd batch is not enough.
    if (!entropy || entropy.least < 4) return undefined;
    const { first, last, least: ratio } = entropy;
    const [before, now] = [meanOf(first, "mean_correct"), meanOf(last, "mean_correct")];
    if (!(now < 0.8 * before)) return undefined;
    return {
      level: ratio >= 8 ? "error" : "warning",
      message: `entropy is ${short(ratio)} times that of the first steps, and ${percent(now)} of the answers are right instead of ${percent(before)}`,
      steps: spanOf(last),
      command: lower(evidence),
      figures: [...evidenceOf([...first, ...last], "optim/entropy"), rateOf(evidence)],
    };
  },
};

const entropyCollapse: Rule = {
  id: "entropy-collapse",
  levels: ["warning"],
  symptomOf: harm,
  when: "the entropy is a tenth of that of the first steps for two steps, and no more answers are right than then",
  means: "the policy gives one answer whatever the problem, so groups are equal and nothing more is learned",
  remedy: "reduce the learning rate, raise the number of completions per problem, or start from an earlier checkpoint",
  check(evidence) {
    const entropy = entropies(evidence);
    if (!entropy || entropy.most > 0.1) return undefined;
    const { first, last, most: ratio } = entropy;
    const [before, now] = [meanOf(first, "mean_correct"), meanOf(last, "mean_correct")];
    if (!(now <= before + 0.05)) return undefined;
    return {
      level: "warning",
      message: `entropy fell to ${percent(ratio)} of that of the first steps while ${percent(now)} of the answers are right (${percent(before)} then)`,
      steps: spanOf(last),
      command: lower(evidence),
      figures: evidenceOf([...first, ...last], "optim/entropy"),
    };
  },
};

const ratiosRunAway: Rule = {
  id: "lag-too-large",
  levels: ["warning", "error"],
  curable: true,
  symptomOf: harmOrDisagreement,
  when:
    "with max_lag or several substeps, for three steps: optim/kl_sample_train_v2 above 0.03 (ratios beyond what PPO would clip) or " +
    "optim/effective_sample_size below 0.5; error above 1 or below 0.2",
  means:
    "the answers come from a policy too far from the one that learns from them: too much lag for this learning rate and loss, so learning is slow or runs away",
  remedy: "set a smaller max_lag, loss_fn=ppo (which bounds the ratios), or a smaller learning rate",
  check(evidence) {
    const steps = evidence.last(3, "optim/effective_sample_size");
    if (steps.length < 3 || steps.at(-1)!.step !== evidence.step) return undefined;
    const lag = Math.max(...valuesOf(steps, "pipeline/lag"), 0);
    if (lag === 0 && evidence.setting("num_substeps", 1) === 1) return undefined;
    // The mildest of the steps: one odd batch is not enough.
    const size = Math.max(...valuesOf(steps, "optim/effective_sample_size"));
    const divergence = Math.min(...valuesOf(steps, "optim/kl_sample_train_v2"));
    if (size >= 0.5 && divergence <= 0.03) return undefined;
    return {
      level: size < 0.2 || divergence > 1 ? "error" : "warning",
      message:
        `policies ${lag} ${lag === 1 ? "version" : "versions"} old answer, and those that learn from it diverge by ${short(divergence)} ` +
        `or more; of the tokens ${percent(size)} count (effective sample size)`,
      steps: spanOf(steps),
      figures: evidenceOf(
        steps,
        "pipeline/lag",
        "optim/kl_sample_train_v2",
        "optim/effective_sample_size",
        "optim/ratio_max",
      ),
      command: evidence.again(`max_lag=${Math.max(0, Math.floor(lag / 4))}`, "loss_fn=ppo"),
    };
  },
};

const disagreement: Rule = {
  id: "sampler-trainer-disagree",
  levels: ["warning", "error"],
  when: "without lag and substeps, optim/kl_sample_train_v2 is above 0.01 for two steps; error above 0.1 (0 in theory, 1e-14 on the embedded engine)",
  means:
    "the sampler and the trainer give the same tokens other probabilities: other weights, another precision or another prompt on one side",
  remedy: "check that the server's sampler and trainer serve the same model; train with loss_fn=ppo meanwhile",
  check(evidence) {
    const steps = evidence.last(2, "optim/kl_sample_train_v2");
    if (steps.length < 2 || Math.max(...valuesOf(steps, "pipeline/lag"), 0) > 0) return undefined;
    if (evidence.setting("num_substeps", 1) > 1) return undefined;
    const least = Math.min(...valuesOf(steps, "optim/kl_sample_train_v2"));
    if (!(least > 0.01)) return undefined;
    return {
      level: least > 0.1 ? "error" : "warning",
      message: `sampler and trainer should agree on the same tokens, but diverge by ${short(least)} or more`,
      steps: spanOf(steps),
      figures: evidenceOf(steps, "optim/kl_sample_train_v2", "optim/ratio_max"),
      command: `${whet} doctor`,
    };
  },
};

const formatDropping: Rule = {
  id: "format-dropping",
  levels: ["warning", "error"],
  curable: true,
  symptomOf: harmOrDisagreement,
  when: "over three steps, 15 points fewer answers have a code block than in the best three of the 50 steps before; error at 40 points",
  means: "the model is degenerating",
  remedy: "check the renderer, reduce the learning rate",
  check(evidence) {
    const now = evidence.last(3);
    const before = evidence.steps.slice(-53, -3);
    if (now.length < 3 || before.length === 0) return undefined;
    const best = bestMean(before, "format_rate", 3);
    const rate = meanOf(now, "format_rate");
    if (!(rate <= best - 0.15)) return undefined;
    return {
      level: rate <= best - 0.4 ? "error" : "warning",
      message: `${percent(rate)} of the answers have a code block; it was ${percent(best)}`,
      steps: spanOf(now),
      command: lower(evidence),
      figures: [...evidenceOf(now, "format_rate"), { name: "best mean of three steps", value: best }],
    };
  },
};

export const learningRules: readonly Rule[] = [
  collapse,
  lossExploding,
  entropyRunaway,
  entropyCollapse,
  ratiosRunAway,
  disagreement,
  formatDropping,
];
