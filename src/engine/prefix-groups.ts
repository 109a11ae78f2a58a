// Finds what the sequences of a batch have in common: sequences that begin alike form a group, whose prefix is computed once.

export interface PrefixGroup {
  /** Indices into the batch. */
  members: number[];
  /** Tokens that all members begin with; 0 in a group of one. */
  prefixLength: number;
}

/** What sharing must save, in tokens, to be worth the bookkeeping of a group. */
const minimumSaving = 16;
/** Groups larger than this are cut; it bounds the search, which is quadratic in it. */
const maximumGroup = 512;

/**
 * Cuts sequences in lexicographic order into groups so that the tokens saved are as many as possible, by dynamic programming over that
 * order. `shared`: how many tokens each has in common with the one before it.
 */
export function findPrefixGroups(order: readonly number[], shared: readonly number[]): PrefixGroup[] {
  const best = new Float64Array(order.length + 1);
  const start = new Int32Array(order.length + 1);
  for (let end = 1; end <= order.length; end++) {
    best[end] = best[end - 1]!;
    start[end] = end - 1;
    let prefix = Number.POSITIVE_INFINITY;
    for (let from = end - 2; from >= Math.max(0, end - maximumGroup); from--) {
      prefix = Math.min(prefix, shared[from + 1]!);
      if (prefix === 0) break;
      const saving = best[from]! + (end - from - 1) * prefix - minimumSaving;
      if (saving > best[end]!) {
        best[end] = saving;
        start[end] = from;
      }
    }
  }
  const groups: PrefixGroup[] = [];
  for (let end = order.length; end > 0; end = start[end]!) {
    const from = start[end]!;
    const prefixLength = end - from === 1 ? 0 : Math.min(...shared.slice(from + 1, end));
    groups.push({ members: order.slice(from, end), prefixLength });
  }
  return groups.reverse();
}
