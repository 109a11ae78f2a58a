// Advantages of one group: how much better each completion did than its siblings. No critic; the group's mean is the baseline.

/** The threshold under which an advantage counts as zero: far below any reward difference, above rounding. */
const negligible = 1e-8;
/** Keeps a division by a spread or a mean of zero finite. */
const epsilon = 1e-6;

/** Every way to compute advantages. */
export const advantageNames = ["mean", "grpo_std", "rloo", "batch_std", "maxrl", "none"] as const;

/**
 * How rewards become advantages, with m the group's mean and s its population standard deviation:
 * `mean` r − m · `grpo_std` (r − m)/s · `rloo` (r − m)·G/(G−1) · `batch_std` (r − m)/(spread over the whole batch) ·
 * `maxrl` (r − m)/m · `none` r.
 */
export type AdvantageName = (typeof advantageNames)[number];

/** Each reward's distance from the group's mean; not divided by the spread, so magnitudes keep their meaning. */
export function computeAdvantages(rewards: readonly number[]): number[] {
  const mean = average(rewards);
  return rewards.map((reward) => reward - mean);
}

/** True where nothing can be learned from a group: every advantage is zero. */
export function shouldSkip(advantages: readonly number[]): boolean {
  return advantages.every((advantage) => Math.abs(advantage) <= negligible);
}

/** Advantages of a whole batch, one list per group. Which groups to skip is decided on the centered rewards, whatever the variant. */
export function batchAdvantages(rewardsOfGroups: readonly (readonly number[])[], name: AdvantageName): number[][] {
  const centered = rewardsOfGroups.map(computeAdvantages);
  const batchSpread = name === "batch_std" ? deviation(centered.flat()) : 0;
  return rewardsOfGroups.map((rewards, index) => variant(name, rewards, centered[index]!, batchSpread));
}

function variant(name: AdvantageName, rewards: readonly number[], group: number[], batchSpread: number): number[] {
  switch (name) {
    case "mean":
      return group;
    case "grpo_std":
      return scale(group, 1 / (deviation(group) + epsilon));
    case "rloo":
      return scale(group, group.length > 1 ? group.length / (group.length - 1) : 1);
    case "batch_std":
      return scale(group, 1 / (batchSpread + epsilon));
    case "maxrl":
      // The penalty for a bad format can make the mean negative; its size is what scales, its sign must not turn the gradient around.
      return scale(group, 1 / (Math.abs(average(rewards)) + epsilon));
    case "none":
      return [...rewards];
  }
}

const average = (values: readonly number[]) => values.reduce((sum, value) => sum + value, 0) / (values.length || 1);

/** Population standard deviation of values whose mean is zero. */
const deviation = (centered: readonly number[]) => Math.sqrt(average(centered.map((value) => value * value)));

const scale = (values: readonly number[], factor: number) => values.map((value) => value * factor);
