// How many answers each problem of a batch gets. Uniform: the same number each. Adaptive: a few each; what is left of the batch then goes
// to the problems whose first answers differ in reward, since only those teach anything. The second round follows from the rewards of
// this batch alone, never from timing, so a run stays the same whatever the lag and after any kill.
import { computeAdvantages, shouldSkip } from "./advantages.ts";
import type { TrainConfig } from "./config.ts";
import type { Group } from "./rollout.ts";
import type { Task } from "./tasks.ts";

/** No problem gets more answers than this many times its first ones: a batch with one open problem must not become that problem. */
export const mostTimes = 8;

type Sizes = Pick<TrainConfig, "groups" | "batch_size" | "group_size" | "first_samples">;

/** Answers that every problem of a batch gets. */
export function firstSamples({ groups, batch_size, group_size, first_samples }: Sizes): number {
  return groups === "adaptive" ? first_samples : batch_size / group_size;
}

/** The most groups that a batch can have, those of its second round included. */
export function mostGroups({ groups, group_size }: Sizes): number {
  return groups === "adaptive" ? 2 * group_size : group_size;
}

/** A step's shape in words. */
export function shapeOf(sizes: Sizes): string {
  const first = `${sizes.group_size} prompts × ${firstSamples(sizes)}`;
  return sizes.groups === "adaptive" ? `${first}, up to ${sizes.batch_size} where rewards differ` : first;
}

/**
 * The second round of a batch: the same number of further answers to every problem that is open, so that open problems weigh alike. What
 * cannot be shared evenly is left, and so is everything when no problem is open.
 */
export function furtherTasks(tasks: readonly Task[], groups: readonly Group[], config: Sizes): Task[] {
  if (config.groups !== "adaptive") return [];
  const left = config.batch_size - groups.reduce((sum, { completions }) => sum + completions.length, 0);
  const open = groups.flatMap((group, index) => (isOpen(group) ? [index] : []));
  const samples = Math.min((mostTimes - 1) * config.first_samples, Math.floor(left / Math.max(1, open.length)));
  if (samples <= 0) return [];
  return open.map((index) => ({ ...tasks[index]!, samples, continues: index }));
}

/** Whether the answers so far differ in reward. */
function isOpen({ completions }: Group): boolean {
  const rewards = completions.flatMap(({ grade }) => (grade.reward === null ? [] : [grade.reward]));
  return !shouldSkip(computeAdvantages(rewards));
}
