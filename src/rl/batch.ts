// From graded groups to one training batch: baselines, advantages, which groups teach something, datums.
import type { UpdateRule } from "../runs/events.ts";
import { type AdvantageName, batchAdvantages, computeAdvantages, shouldSkip } from "./advantages.ts";
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

/** The part of an update's rule that makes examples of groups. */
export type BatchRule = Pick<UpdateRule, "advantage" | "lossScale" | "maskTruncated">;

/** Decides what each group teaches and builds the datums. An ungraded completion is in neither baseline nor loss. */
export function buildBatch(groups: readonly Group[], rule: BatchRule): Batch {
  const judged = judgeGroups(groups, rule.advantage as AdvantageName);
  const chosen: { completion: Completion; group: number; sample: number; advantage: number }[] = [];
  for (const [index, { group, advantages, skipped }] of judged.entries()) {
    if (skipped) continue;
    for (const [sample, completion] of group.completions.entries()) {
      const advantage = advantages[sample];
      if (advantage === null || advantage === undefined || completion.tokens.length === 0) continue;
      if (rule.maskTruncated && completion.truncated) continue;
      chosen.push({ completion, group: index, sample, advantage });
    }
  }
  const scale = lossScale(rule.lossScale, chosen);
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

/** One answer, and where it stands: the group's place in the batch and the sample's in the group. */
interface Member {
  group: number;
  sample: number;
  grade: Completion["grade"];
}

/** Judges each problem by all of its answers: those of its group, and of the group that continues it. */
function judgeGroups(groups: readonly Group[], name: AdvantageName): JudgedGroup[] {
  const problems = new Map<number, Member[]>();
  for (const [group, { continues = group, completions }] of groups.entries()) {
    const members = problems.get(continues) ?? [];
    members.push(...completions.map(({ grade }, sample) => ({ group, sample, grade })));
    problems.set(continues, members);
  }
  const graded = new Map(
    [...problems].map(([place, members]) => {
      const rewarded = members.filter(({ grade }) => grade.reward !== null);
      const usable = rewarded.length >= Math.max(2, minimumGradedShare * members.length);
      return [place, { outcome: usable ? outcomeOf(members) : ("ungraded" as const), members: usable ? rewarded : [] }];
    }),
  );
  const rewards = [...graded.values()].map(({ members }) => members.map(({ grade }) => grade.reward!));
  const advantagesOfGroups = groups.map(({ completions }) => Array<number | null>(completions.length).fill(null));
  for (const [index, advantages] of batchAdvantages(rewards, name).entries())
    for (const [rank, { group, sample }] of [...graded.values()][index]!.members.entries())
      advantagesOfGroups[group]![sample] = advantages[rank]!;
  const skipped = new Map(
    [...graded.keys()].map((place, index) => [place, shouldSkip(computeAdvantages(rewards[index]!))]),
  );
  return groups.map((group, index) => {
    const place = group.continues ?? index;
    return {
      group,
      outcome: graded.get(place)!.outcome,
      skipped: skipped.get(place)!,
      advantages: advantagesOfGroups[index]!,
    };
  });
}

function outcomeOf(members: readonly Member[]): GroupOutcome {
  const graded = members.filter(({ grade }) => grade.verdict !== "ungraded");
  const passed = graded.filter(({ grade }) => grade.verdict === "pass").length;
  return passed === 0 ? "all-fail" : passed === graded.length ? "all-pass" : "mixed";
}

function lossScale(mode: UpdateRule["lossScale"], chosen: readonly { completion: Completion }[]): number {
  if (mode === "none" || chosen.length === 0) return 1;
  if (mode === "per_datum") return 1 / chosen.length;
  return 1 / chosen.reduce((sum, { completion }) => sum + completion.tokens.length, 0);
}
