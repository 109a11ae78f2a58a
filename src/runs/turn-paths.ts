// The turns of an episode as sequences. Turns are a tree: one goes on from another, or begins anew. A path from a root to a leaf is a
// sequence; what several paths share is trained on in the first of them.

/** A turn's place in the tree. */
export interface TurnPlace {
  turn: number;
  /** The turn that it goes on from; null: none. */
  parent: number | null;
}

/** One sequence: the turns it is made of, root first, and those of them that are trained on in it. */
export interface TurnPath {
  path: readonly number[];
  own: ReadonlySet<number>;
}

/** The sequences of the turns that count; the others are shown where one that counts goes on from them, and trained on nowhere. */
export function turnPaths(turns: readonly TurnPlace[], counted: readonly number[]): TurnPath[] {
  const parents = new Map(turns.map(({ turn, parent }) => [turn, parent]));
  const inside = new Set<number>();
  for (const turn of counted)
    for (let at = parents.get(turn) ?? null; at !== null && !inside.has(at); at = parents.get(at) ?? null)
      inside.add(at);
  const left = new Set(counted);
  return counted
    .filter((turn) => !inside.has(turn))
    .sort((a, b) => a - b)
    .map((leaf) => {
      const path: number[] = [];
      for (let at: number | null = leaf; at !== null; at = parents.get(at) ?? null) path.push(at);
      path.reverse();
      const own = new Set(path.filter((turn) => left.delete(turn)));
      return { path, own };
    });
}
