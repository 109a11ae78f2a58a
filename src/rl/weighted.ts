// Several rewards for one answer: R = Σ w · r over what is judged by name, with the weights of reward_weights (1 unless given). Tests
// give `tests` (1, or with reward=fraction the share that passes) beside the format penalty; a reward function gives names of its own;
// `length` is −(tokens of the answer) / max_tokens, which counts only with a weight.
import { correctnessOf } from "../grading/reward.ts";
import type { Grade } from "../runs/events.ts";
import type { TrainConfig } from "./config.ts";
import { shapeOverlong, type Zone } from "./overlong.ts";
import { TrainError } from "./resume.ts";

type Judge = "tests" | "environment";

/** What becomes of a verdict on a trained answer. */
export const trainedGrade = (grade: Grade, tokens: number, config: Rules & Zone, by: Judge): Grade =>
  shapeOverlong(weighRewards(grade, tokens, config, by), tokens, config);

type Rules = Pick<TrainConfig, "reward_weights" | "reward" | "max_tokens">;

/** A verdict with its rewards by name, and their weighted sum; one without a reward stays as it is. */
export function weighRewards(grade: Grade, tokens: number, rules: Rules, by: Judge): Grade {
  const { reward_weights: weights, max_tokens: most } = rules;
  if (grade.reward === null || Object.keys(weights).length === 0) return grade;
  const given = by === "tests" ? { tests: correctnessOf(grade, rules.reward === "fraction") } : (grade.rewards ?? {});
  const rewards: Readonly<Record<string, number>> = {
    ...given,
    ...("length" in weights && { length: -Math.min(1, tokens / most) }),
  };
  let { reward } = grade;
  for (const [name, weight] of Object.entries(weights)) {
    const value = rewards[name];
    if (value === undefined)
      throw new TrainError(
        "rl/no-such-reward",
        `reward_weights has ${name}, and a verdict has no reward of that name; it has ${Object.keys(rewards).join(", ") || "none by name"}. Give it in rewards (0 counts), or leave it out of reward_weights.`,
      );
    // The others are in the sum with a weight of 1.
    reward += (Object.hasOwn(given, name) ? weight - 1 : weight) * value;
  }
  return { ...grade, reward, rewards };
}
