// From graded groups to one training batch: baselines, advantages, which groups teach something, datums.
import { type AdvantageName, batchAdvantages, computeAdvantages, shouldSkip } from "./advantages.ts";
import type { TrainConfig } from "./config.ts";
import { advantageArray, makeDatum, type TrainingExample } from "./datums.ts";
import type { Completion, Group } from "./rollout.ts";

/** Below this share of graded completions a group is dropped: the survivors would be a biased sample. */
const minimumGradedShare = 0.75;

export type GroupOutcome = "mixed" | "all-pass" | "all-fail" | "ungraded";

export interface JudgedGroup {
  group: Group;
  outcome: GroupOutcome;
  /** True: nothing of this group is trained on. */
  skipped: boolean;
  /** Per completion; null where it has none (ungraded, or the group was dropped). */
  advantages: (number | null)[];
}

export interface Batch {
  groups: JudgedGroup[];
  examples: BatchExample[];
}

/** A training example, and which completion it is: the group's place in the batch and the sample's in the group. */
export interface BatchExample extends TrainingExample {
  group: number;
  sample: number;
}

/** Decides what each group teaches and builds the datums. An ungraded completion is in neither baseline nor loss. */
export function buildBatch(
  groups: readonly Group[],
  config: Pick<TrainConfig, "advantage" | "loss_scale" | "mask_truncated">,
): Batch {
  const judged = judgeGroups(groups, config.advantage);
  const chosen: { completion: Completion; group: number; sample: number; advantage: number }[] = [];
  for (const [index, { group, advantages, skipped }] of judged.entries()) {
    if (skipped) continue;
    for (const [sample, completion] of group.completions.entries()) {
      const advantage = advantages[sample];
      if (advantage === null || advantage === undefined || completion.tokens.length === 0) continue;
      if (config.mask_truncated && completion.truncated) continue;
      chosen.push({ completion, group: index, sample, advantage });
    }
  }
  const scale = lossScale(config.loss_scale, chosen);
  const advantagesOf = sharedAdvantages();
  const examples = chosen.map(({ completion, group, sample, advantage }) => {
    const advantages = advantagesOf(groups[group]!, advantage * scale);
    const datum = makeDatum(completion.sequence, groups[group]!.prompt.length, advantages);
    return { ...datum, group, sample };
  });
  return { groups: judged, examples };
}

/** One array per group and advantage, as long as the group's longest sequence: a batch of long answers holds few of them. */
function sharedAdvantages(): (group: Group, advantage: number) => Float32Array {
  const known = new Map<Group, Map<number, Float32Array>>();
  return (group, advantage) => {
    const ofGroup = known.get(group) ?? new Map<number, Float32Array>();
    known.set(group, ofGroup);
    const { length } = group.prompt;
    const longest = group.completions.reduce((most, { tokens }) => Math.max(most, tokens.length), 0);
    const array = ofGroup.get(advantage) ?? advantageArray(length, length + longest, advantage);
    ofGroup.set(advantage, array);
    return array;
  };
}

function judgeGroups(groups: readonly Group[], name: AdvantageName): JudgedGroup[] {
  const graded = groups.map((group) => {
    const members = group.completions.flatMap(({ grade }, index) =>
      grade.reward === null ? [] : [{ index, reward: grade.reward }],
    );
    const usable = members.length >= Math.max(2, minimumGradedShare * group.completions.length);
    return { group, members: usable ? members : [], usable };
  });
  const advantagesOfGroups = batchAdvantages(
    graded.map(({ members }) => members.map(({ reward }) => reward)),
    name,
  );
  return graded.map(({ group, members, usable }, position) => {
    const advantages = Array<number | null>(group.completions.length).fill(null);
    for (const [rank, { index }] of members.entries()) advantages[index] = advantagesOfGroups[position]![rank]!;
    const rewards = members.map(({ reward }) => reward);
    return {
      group,
      outcome: usable ? outcomeOf(group) : "ungraded",
      skipped: shouldSkip(computeAdvantages(rewards)),
      advantages,
    };
  });
}

function outcomeOf(group: Group): GroupOutcome {
  const graded = group.completions.filter(({ grade }) => grade.verdict !== "ungraded");
  const passed = graded.filter(({ grade }) => grade.verdict === "pass").length;
  return passed === 0 ? "all-fail" : passed === graded.length ? "all-pass" : "mixed";
}

function lossScale(mode: TrainConfig["loss_scale"], chosen: readonly { completion: Completion }[]): number {
  if (mode === "none" || chosen.length === 0) return 1;
  if (mode === "per_datum") return 1 / chosen.length;
  return 1 / chosen.reduce((sum, { completion }) => sum + completion.tokens.length, 0);
}
