// Lays the sequences of a batch out for `packedAttention`: which sequences run together, and where every token goes. Tokens are
// packed without padding; only attention sees sequences padded to a common length.
import { concat } from "../core/arrays.ts";
import type { BlockKind } from "./packed-attention.ts";
import type { PrefixGroup } from "./prefix-groups.ts";
import type { PrefixTree } from "./prefix-trees.ts";
import { shareBatch, tokensOf } from "./sharing.ts";

/** Hides a key: far below every score, and finite, so that nothing becomes NaN. */
const HIDDEN = -1e30;

export interface PackedBlock {
  kind: BlockKind;
  groups: number;
  members: number;
  length: number;
  /** 0 in plain blocks. */
  prefixLength: number;
  /** [group, member, length] */
  rows: Int32Array;
  /** [row] */
  places: Int32Array;
  /** Shared blocks only: [group, prefix], [row]. */
  prefixRows?: Int32Array;
  prefixPlaces?: Int32Array;
  /** plain: [length, length]; shared: [group, length, prefix + length]; tree: [group, length, length] */
  bias: Float32Array;
}

/** One run of the training graph. */
export interface PackedRun {
  /** Tokens and their positions, prefixes once; the last row is the dummy. */
  tokens: Int32Array;
  positions: Int32Array;
  /** [row]: the place of each row among the places of all blocks, one block after the other. */
  places: Int32Array;
  blocks: PackedBlock[];
  /** Which of the batch's sequences are in this run, and for each the row of every token. */
  sequences: { index: number; rows: Int32Array }[];
}

/** A tree's attention looks at every pair of its tokens. */
export const largestTree = 1024;

/** Splits a batch into runs of about `budget` tokens. Every sequence is in exactly one run. */
export function packBatch(sequences: readonly Int32Array[], budget: number): PackedRun[] {
  const { trees, groups } = shareBatch(sequences, Math.min(largestTree, budget));
  const shared = groups
    .filter((group) => group.members.length > 1)
    .flatMap((group) => cutGroup(group, sequences, budget));
  const alone = groups.filter((group) => group.members.length === 1).map((group) => group.members[0]!);
  return [
    // Half the tokens a run: a step's trees are few, and one run is one thread's. Neighbours in size share a run.
    ...fill(
      trees.sort((a, b) => a.tokens.length - b.tokens.length || a.members[0]! - b.members[0]!),
      budget / 2,
      ({ tokens }) => tokens.length,
    ).map((run) => packTrees(run)),
    ...fill(shared, budget, (group) => tokensOf(group, sequences)).map((run) => packShared(run, sequences)),
    // Neighbours in length share a run, so that little is padded.
    ...fill(
      alone.sort((a, b) => sequences[a]!.length - sequences[b]!.length || a - b),
      budget,
      (index) => sequences[index]!.length,
    ).map((run) => packPlain(run, sequences)),
  ];
}

/** Cuts a group that is larger than the budget. Each part computes the prefix again, so no part is smaller than its prefix. */
function cutGroup(
  { members, prefixLength }: PrefixGroup,
  sequences: readonly Int32Array[],
  budget: number,
): PrefixGroup[] {
  const room = Math.max(budget - prefixLength, prefixLength);
  return fill(members, room, (index) => sequences[index]!.length - prefixLength).map((part) => ({
    members: part,
    prefixLength,
  }));
}

/** Puts items into bins in order; a bin is closed before it would pass the budget. */
function fill<Item>(items: readonly Item[], budget: number, size: (item: Item) => number): Item[][] {
  const bins: Item[][] = [];
  let used = Number.POSITIVE_INFINITY;
  for (const item of items) {
    if (used + size(item) > budget) {
      bins.push([]);
      used = 0;
    }
    bins.at(-1)!.push(item);
    used += size(item);
  }
  return bins;
}

function packPlain(indices: readonly number[], sequences: readonly Int32Array[]): PackedRun {
  const rows = new RowList();
  const placed = indices.map((index) => ({ index, rows: rows.append(sequences[index]!, (i) => i) }));
  const block = plainBlock(
    placed.map((sequence) => sequence.rows),
    rows.dummy(),
  );
  return finishRun(rows, [block], placed);
}

function packShared(groups: readonly PrefixGroup[], sequences: readonly Int32Array[]): PackedRun {
  const rows = new RowList();
  const prefixes = groups.map(({ members, prefixLength }) =>
    rows.append(sequences[members[0]!]!.subarray(0, prefixLength), (i) => i),
  );
  const own = groups.map(({ members, prefixLength }) =>
    members.map((index) => rows.append(sequences[index]!.subarray(prefixLength), (i) => prefixLength + i)),
  );
  const placed = groups.flatMap(({ members }, group) =>
    members.map((index, member) => ({ index, rows: concat(Int32Array, [prefixes[group]!, own[group]![member]!]) })),
  );
  const dummy = rows.dummy();
  return finishRun(rows, [plainBlock(prefixes, dummy), sharedBlock(prefixes, own, dummy)], placed);
}

function packTrees(trees: readonly PrefixTree[]): PackedRun {
  const rows = new RowList();
  const placed = trees.map(({ tokens, positions }) => rows.append(tokens, (i) => positions[i]!));
  const sequences = trees.flatMap(({ members, nodes }, at) =>
    members.map((index, member) => ({ index, rows: nodes[member]!.map((node) => placed[at]![node]!) })),
  );
  return finishRun(rows, [treeBlock(trees, placed, rows.dummy())], sequences);
}

/** The run's tokens as they are laid out. */
class RowList {
  readonly tokens: number[] = [];
  readonly positions: number[] = [];

  append(tokens: Int32Array | readonly number[], positionOf: (index: number) => number): Int32Array {
    const rows = Int32Array.from(tokens, (_, i) => this.tokens.length + i);
    for (const [i, token] of tokens.entries()) {
      this.tokens.push(token);
      this.positions.push(positionOf(i));
    }
    return rows;
  }

  /** Ends the list with the dummy row. */
  dummy(): number {
    this.tokens.push(0);
    this.positions.push(0);
    return this.tokens.length - 1;
  }
}

function plainBlock(sequences: readonly Int32Array[], dummy: number): PackedBlock {
  const length = paddedLength(sequences, sequences.length);
  const block = { kind: "plain", groups: sequences.length, members: 1, length, prefixLength: 0 } as const;
  const rows = spread(sequences, length, dummy);
  const bias = new Float32Array(length * length);
  for (let query = 0; query < length; query++) bias.fill(HIDDEN, query * length + query + 1, (query + 1) * length);
  return { ...block, rows, places: invert(rows, dummy), bias };
}

function sharedBlock(prefixes: readonly Int32Array[], own: readonly Int32Array[][], dummy: number): PackedBlock {
  const [groups, members] = [own.length, Math.max(...own.map((group) => group.length))];
  const padded = own.flatMap((group) => Array.from({ length: members }, (_, i) => group[i] ?? new Int32Array(0)));
  const length = paddedLength(padded, groups * members);
  const prefixLength = paddedLength(prefixes, groups);
  const rows = spread(padded, length, dummy);
  const prefixRows = spread(prefixes, prefixLength, dummy);

  const keys = prefixLength + length;
  const bias = new Float32Array(groups * length * keys).fill(HIDDEN);
  for (let group = 0; group < groups; group++) {
    for (let query = 0; query < length; query++) {
      const start = (group * length + query) * keys;
      bias.fill(0, start, start + prefixes[group]!.length);
      bias.fill(0, start + prefixLength, start + prefixLength + query + 1);
    }
  }
  const places = invert(rows, dummy);
  const prefixPlaces = invert(prefixRows, dummy);
  return { kind: "shared", groups, members, length, prefixLength, rows, places, prefixRows, prefixPlaces, bias };
}

/** A token looks at what its parent looks at, and at itself. */
function treeBlock(trees: readonly PrefixTree[], placed: readonly Int32Array[], dummy: number): PackedBlock {
  const length = paddedLength(placed, placed.length);
  const rows = spread(placed, length, dummy);
  const bias = new Float32Array(trees.length * length * length).fill(HIDDEN);
  for (const [group, { parents }] of trees.entries()) {
    const start = group * length * length;
    for (const [node, parent] of parents.entries()) {
      const row = start + node * length;
      if (parent >= 0) bias.copyWithin(row, start + parent * length, start + parent * length + parent + 1);
      bias[row + node] = 0;
    }
  }
  const block = { kind: "tree", groups: trees.length, members: 1, length, prefixLength: 0 } as const;
  return { ...block, rows, places: invert(rows, dummy), bias };
}

/** The longest length, and one more where no sequence would be padded: rows from elsewhere need a padding place to point at. */
function paddedLength(sequences: readonly Int32Array[], count: number): number {
  const longest = sequences.reduce((length, sequence) => Math.max(length, sequence.length), 0);
  const total = sequences.reduce((sum, sequence) => sum + sequence.length, 0);
  return total === count * longest ? longest + 1 : longest;
}

function spread(sequences: readonly Int32Array[], length: number, dummy: number): Int32Array {
  const rows = new Int32Array(sequences.length * length).fill(dummy);
  for (const [i, sequence] of sequences.entries()) rows.set(sequence, i * length);
  return rows;
}

/** Where each row went; the dummy and rows that went nowhere point at a place that holds the dummy. */
function invert(rows: Int32Array, dummy: number): Int32Array {
  const places = new Int32Array(dummy + 1).fill(rows.indexOf(dummy));
  for (const [place, row] of rows.entries()) if (row !== dummy) places[row] = place;
  return places;
}

function finishRun(rows: RowList, blocks: PackedBlock[], sequences: PackedRun["sequences"]): PackedRun {
  const dummy = rows.tokens.length - 1;
  const placed = concat(
    Int32Array,
    blocks.map((block) => block.rows),
  );
  return {
    tokens: Int32Array.from(rows.tokens),
    positions: Int32Array.from(rows.positions),
    places: invert(placed, dummy),
    blocks,
    sequences,
  };
}
