// How the sequences of a batch share what they have in common. Those that begin alike can be one tree, in which attention looks at every
// pair of tokens; or answers apart behind a prefix that is computed once; or nothing of each other's. Problems' prompts begin with the
// same instructions, and the answers to one problem with its prompt: so a family is cut where its members first diverge, and each part again,
// as long as that costs less than what it was cut from.
import { findPrefixGroups, type PrefixGroup } from "./prefix-groups.ts";
import { lexicographic, type PrefixTree, sharedTokens, treeOf } from "./prefix-trees.ts";

export interface Sharing {
  trees: PrefixTree[];
  groups: PrefixGroup[];
}

interface Plan {
  /** In pairs of a query and a key. */
  cost: number;
  /** Members of each tree, in lexicographic order. */
  trees: number[][];
  groups: PrefixGroup[];
}

/** What a token costs in the layers, in pairs of a query and a key. */
const pairsPerToken = 600;
/** What neighbours must have in common to be of one family. */
const minShared = 16;
/** Bounds the cuts of a family of many sequences that diverge everywhere. */
const maxCuts = 8;

/** The cheapest of the ways that are looked at; no tree has more than `largestTree` tokens. Every sequence is in one tree or group. */
export function shareBatch(sequences: readonly Int32Array[], largestTree: number): Sharing {
  const sharing: Sharing = { trees: [], groups: [] };
  const order = lexicographic(sequences);
  const shared = sharedTokens(order, sequences);
  for (const family of cutBefore(order, (at) => shared[at]! < minShared)) {
    const { trees, groups } = planOf(family, sequences, largestTree, maxCuts);
    sharing.trees.push(...trees.map((members) => treeOf(members, sequences)));
    sharing.groups.push(...groups);
  }
  return sharing;
}

/** Tokens that a group takes, its prefix once. */
export function tokensOf({ members, prefixLength }: PrefixGroup, sequences: readonly Int32Array[]): number {
  return members.reduce((total, index) => total + sequences[index]!.length - prefixLength, prefixLength);
}

function planOf(
  family: readonly number[],
  sequences: readonly Int32Array[],
  largestTree: number,
  cutsLeft: number,
): Plan {
  const shared = sharedTokens(family, sequences);
  const groups = findPrefixGroups(family, shared);
  const apart: Plan = { cost: groups.reduce((total, group) => total + costOf(group, sequences), 0), trees: [], groups };
  if (family.length === 1) return apart;
  const plans = [apart];
  const size = family.reduce((total, index, i) => total + sequences[index]!.length - shared[i]!, 0);
  if (size <= largestTree) plans.push({ cost: size * pairsPerToken + size ** 2, trees: [[...family]], groups: [] });
  if (cutsLeft > 0) {
    const least = Math.min(...shared.slice(1));
    const parts = cutBefore(family, (at) => shared[at] === least).map((part) =>
      planOf(part, sequences, largestTree, cutsLeft - 1),
    );
    plans.push({
      cost: parts.reduce((total, { cost }) => total + cost, 0),
      trees: parts.flatMap(({ trees }) => trees),
      groups: parts.flatMap(({ groups }) => groups),
    });
  }
  return plans.reduce((best, plan) => (plan.cost < best.cost ? plan : best));
}

/** Cuts a list before every place, but the first, for which `starts` is true. */
function cutBefore(list: readonly number[], starts: (at: number) => boolean): number[][] {
  const parts: number[][] = [];
  for (const [at, index] of list.entries()) {
    if (at === 0 || starts(at)) parts.push([index]);
    else parts.at(-1)!.push(index);
  }
  return parts;
}

function costOf(group: PrefixGroup, sequences: readonly Int32Array[]): number {
  const { members, prefixLength } = group;
  const own = members.map((index) => sequences[index]!.length - prefixLength);
  const pairs = own.reduce((total, length) => total + length * (prefixLength + length), prefixLength ** 2);
  return tokensOf(group, sequences) * pairsPerToken + pairs;
}
