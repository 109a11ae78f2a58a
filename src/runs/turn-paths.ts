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
  const pathTo = (leaf: number): number[] => {
    const path: number[] = [];
    for (let turn: number | null | undefined = leaf; turn !== null && turn !== undefined; turn = parents.get(turn))
      path.unshift(turn);
    return path;
  };
  const paths = [...counted].sort((a, b) => a - b).map(pathTo);
  const inside = new Set(paths.flatMap((path) => path.slice(0, -1)));
  const left = new Set(counted);
  return paths
    .filter((path) => !inside.has(path.at(-1)!))
    .map((path) => {
      const own = new Set(path.filter((turn) => left.delete(turn)));
      return { path, own };
    });
}
