// From graded groups to one training batch: baselines, advantages, which groups teach something, datums.
import { entryOf } from "../core/maps.ts";
import type { Grade, UpdateRule } from "../runs/events.ts";
import { type AdvantageName, batchAdvantages, computeAdvantages, shouldSkip } from "./advantages.ts";
import { advantagesOf, makeExample, type Sequence, type TrainingExample } from "./datums.ts";
import { spread } from "./mask.ts";
import type { ReferenceValues } from "./references.ts";
import type { Completion, Group } from "./rollout.ts";

/** Below this share of graded completions a group is dropped: the survivors would be a biased sample. */
const minimumGradedShare = 0.75;

export type GroupOutcome = "mixed" | "all-pass" | "all-fail" | "ungraded";

/** An answer, as far as judging a group needs it. */
type Judged = Pick<Completion, "grade">;

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
  /** What references think of the examples, where there are any. */
  references?: ReferenceValues;
}

/** A training example, and what it is of: the group's place in the batch, the sample's in the group, the sequence's in the sample. */
export interface BatchExample extends TrainingExample {
  group: number;
  sample: number;
  part: number;
  /** What the terms of its answer are multiplied by. */
  scale: number;
}

/** The part of an update's rule that makes examples of groups. */
export type BatchRule = Pick<
  UpdateRule,
  "advantage" | "lossScale" | "maxTokens" | "maskTruncated" | "lossFn" | "references" | "rewarded"
>;

/** Decides what each group teaches and builds the datums. An ungraded completion is in neither baseline nor loss. */
export function buildBatch(groups: readonly Group[], rule: BatchRule): Batch {
  const judged = judgeGroups(groups, rule);
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
  const scaleOf = lossScale(rule, chosen);
  const advantagesFor = sharedAdvantages();
  const examples = chosen.flatMap(({ completion, group, sample, advantage }) => {
    const scale = scaleOf(completion.tokens.length);
    return completion.sequences.map((sequence, part) => {
      const advantages = advantagesFor(sequence, groups[group]!, rule.rewarded ? advantage * scale : 0);
      return { ...makeExample(sequence, advantages), given: groups[group]!.given, group, sample, part, scale };
    });
  });
  return { groups: judged, examples };
}

/**
 * Advantages by position. Answers behind one prompt have theirs in the same place, up to where they end: one array per group and advantage,
 * as long as the longest, serves them all, so that a batch of long answers holds few.
 */
function sharedAdvantages(): (sequence: Sequence, group: Group, advantage: number) => Float32Array {
  const known = new Map<Group, Map<number, Float32Array>>();
  return (sequence, group, advantage) => {
    const { tokens, mask } = sequence;
    const prompt = group.prompt.length;
    const isTail = mask.length === 1 && mask[0]!.start === prompt - 1 && mask[0]!.end === tokens.length - 1;
    if (!isTail) return advantagesOf(sequence, advantage);
    const ofGroup = entryOf(known, group, () => new Map<number, Float32Array>());
    return entryOf(ofGroup, advantage, () => {
      const end = prompt + Math.max(...group.completions.map(({ tokens }) => tokens.length)) - 1;
      return spread(advantage, [{ start: prompt - 1, end }], end);
    });
  };
}

/** The answers that a group is judged by: those with a reward, or none where too many have none. */
function rewardedSamples(completions: readonly Judged[]): number[] {
  const graded = completions.flatMap(({ grade }, sample) => (grade.reward === null ? [] : [sample]));
  const fewest = Math.min(2, completions.length);
  return graded.length >= Math.max(fewest, minimumGradedShare * completions.length) ? graded : [];
}

const rewardsOf = (completions: readonly Judged[]) =>
  rewardedSamples(completions).map((sample) => completions[sample]!.grade.reward!);

/** Whether a group's answers differ in their rewards, so that something of it is trained on. */
export const teaches = (completions: readonly Judged[]): boolean =>
  !shouldSkip(computeAdvantages(rewardsOf(completions)));

/** Judges each group by its graded answers; by none where too many have no verdict. A teacher, or a demonstration, teaches where rewards are equal, too. */
function judgeGroups(groups: readonly Group[], { advantage, lossFn, references }: BatchRule): JudgedGroup[] {
  const isTaught = lossFn === "cross_entropy" || references.some(({ name }) => name === "teacher");
  const rewarded = groups.map(({ completions }) => rewardedSamples(completions));
  const rewards = groups.map(({ completions }) => rewardsOf(completions));
  const advantages = batchAdvantages(rewards, advantage as AdvantageName);
  return groups.map((group, index) => {
    const ofSamples = Array<number | null>(group.completions.length).fill(null);
    for (const [rank, sample] of rewarded[index]!.entries()) ofSamples[sample] = advantages[index]![rank]!;
    return {
      group,
      outcome: rewarded[index]!.length === 0 ? "ungraded" : outcomeOf(group.completions),
      skipped: isTaught ? rewarded[index]!.length === 0 : !teaches(group.completions),
      advantages: ofSamples,
    };
  });
}

/** How many answers have a verdict, and how many of them are right. */
export function countVerdicts(completions: readonly Judged[]): { graded: number; passed: number } {
  const count = (is: (verdict: Grade["verdict"]) => boolean) =>
    completions.filter(({ grade }) => is(grade.verdict)).length;
  return { graded: count((verdict) => verdict !== "ungraded"), passed: count((verdict) => verdict === "pass") };
}

function outcomeOf(completions: readonly Judged[]): GroupOutcome {
  const { graded, passed } = countVerdicts(completions);
  return passed === 0 ? "all-fail" : passed === graded ? "all-pass" : "mixed";
}

/** The factor of an answer's terms, from its length. */
function lossScale(
  { lossScale, maxTokens }: BatchRule,
  chosen: readonly { completion: Completion }[],
): (tokens: number) => number {
  const answers = Math.max(1, chosen.length);
  switch (lossScale) {
    case "none":
      return () => 1;
    case "per_datum":
      return () => 1 / answers;
    case "per_token": {
      const all = chosen.reduce((sum, { completion }) => sum + completion.tokens.length, 0);
      return () => 1 / all;
    }
    case "per_answer_token":
      return (tokens) => 1 / (answers * tokens);
    case "constant":
      return () => 1 / (answers * maxTokens);
  }
}
