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

/** The indices of sequences in lexicographic order: those that begin alike are neighbours. */
export function lexicographic(sequences: readonly Int32Array[]): number[] {
  return sequences.map((_, index) => index).sort((a, b) => compare(sequences[a]!, sequences[b]!) || a - b);
}

/** How many tokens each of the members has in common with the one before it; 0 for the first. */
export function sharedTokens(members: readonly number[], sequences: readonly Int32Array[]): number[] {
  return members.map((index, i) => (i === 0 ? 0 : commonPrefix(sequences[members[i - 1]!]!, sequences[index]!)));
}

/** The tree of sequences in lexicographic order. */
export function treeOf(members: number[], sequences: readonly Int32Array[]): PrefixTree {
  const tree: PrefixTree = { members, tokens: [], positions: [], parents: [], nodes: [] };
  const shared = sharedTokens(members, sequences);
  for (const [i, index] of members.entries()) {
    const sequence = sequences[index]!;
    const nodes = new Int32Array(sequence.length);
    const known = shared[i]!;
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

function commonPrefix(a: Int32Array, b: Int32Array): number {
  let length = 0;
  while (length < a.length && length < b.length && a[length] === b[length]) length++;
  return length;
}

function compare(a: Int32Array, b: Int32Array): number {
  const common = commonPrefix(a, b);
  return (a[common] ?? -1) - (b[common] ?? -1);
}
