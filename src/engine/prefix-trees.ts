// Sequences that begin alike, as a tree: what any two of them have in common is there once. The answers of one group say much the
// same; a tree of them has far fewer tokens than their common prompt and every answer apart.

export interface PrefixTree {
  /** Indices into the batch. */
  members: number[];
  /** Of every node: its token, its position in the sequences it is part of, and the node before it (-1: none). Parents come first. */
  tokens: number[];
  positions: number[];
  parents: number[];
  /** For each member, the node of every token. */
  nodes: Int32Array[];
}

/** What neighbours must have in common to be of one tree. */
const minShared = 16;

/** Cuts the batch into families whose members begin alike. In lexicographic order they are neighbours. */
export function families(sequences: readonly Int32Array[]): number[][] {
  const order = sequences.map((_, index) => index).sort((a, b) => compare(sequences[a]!, sequences[b]!) || a - b);
  const found: number[][] = [];
  for (const [i, index] of order.entries()) {
    const related = i > 0 && commonPrefix(sequences[order[i - 1]!]!, sequences[index]!) >= minShared;
    if (related) found.at(-1)!.push(index);
    else found.push([index]);
  }
  return found;
}

/** How many tokens the tree of sequences in lexicographic order has. */
export function treeSize(members: readonly number[], sequences: readonly Int32Array[]): number {
  return members.reduce((total, index, i) => {
    const known = i === 0 ? 0 : commonPrefix(sequences[members[i - 1]!]!, sequences[index]!);
    return total + sequences[index]!.length - known;
  }, 0);
}

/** The tree of sequences in lexicographic order. */
export function treeOf(members: number[], sequences: readonly Int32Array[]): PrefixTree {
  const tree: PrefixTree = { members, tokens: [], positions: [], parents: [], nodes: [] };
  for (const [i, index] of members.entries()) {
    const sequence = sequences[index]!;
    const nodes = new Int32Array(sequence.length);
    const known = i === 0 ? 0 : commonPrefix(sequences[members[i - 1]!]!, sequence);
    if (known > 0) nodes.set(tree.nodes[i - 1]!.subarray(0, known));
    for (let position = known; position < sequence.length; position++) {
      nodes[position] = tree.tokens.length;
      tree.tokens.push(sequence[position]!);
      tree.positions.push(position);
      tree.parents.push(position === 0 ? -1 : nodes[position - 1]!);
    }
    tree.nodes.push(nodes);
  }
  return tree;
}

export function commonPrefix(a: Int32Array, b: Int32Array): number {
  let length = 0;
  while (length < a.length && length < b.length && a[length] === b[length]) length++;
  return length;
}

export function compare(a: Int32Array, b: Int32Array): number {
  const common = commonPrefix(a, b);
  return (a[common] ?? -1) - (b[common] ?? -1);
}
