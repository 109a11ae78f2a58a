// Going back. A run that is rewound to step N does the steps from N on anew, and with them what comes of them: the policies after
// version N, which N steps made. Groups that were carried over into step N are dropped: they were of batches that count, and their part
// of step N or a later one does not. What going back undoes is decided here alone.

/** A group's batch: of training a step, of an evaluation the policy version that it measures. */
interface Batch {
  phase: "train" | "eval";
  batch: number;
}

type Place = Pick<Batch, "batch"> & { group: number };

/** Takes away what going back to step `to` drops of what updates, by their steps, left to later ones. */
export function dropCarried<Left extends Place>(
  to: number,
  updates: ReadonlyMap<number, { carried: readonly Left[] }>,
): void {
  const dropped = updates.get(to - 1)?.carried ?? [];
  const isDropped = ({ batch, group }: Place) => dropped.some((one) => one.batch === batch && one.group === group);
  if (dropped.length > 0)
    for (const update of updates.values()) update.carried = update.carried.filter((left) => !isDropped(left));
}

type ByNumber = Map<number, unknown> | Set<number>;

export const isStepUndone = (step: number, to: number): boolean => step >= to;
export const isVersionUndone = (version: number, to: number): boolean => version > to;

/** Whether going back to step `to` undoes a group. */
export const isGroupUndone = ({ phase, batch }: Batch, to: number): boolean =>
  phase === "train" ? isStepUndone(batch, to) : isVersionUndone(batch, to);

/** Takes away what going back to step `to` undoes of what is known by step. */
export const undoSteps = (to: number, ...known: readonly ByNumber[]): void =>
  undo(known, (key) => isStepUndone(key, to));

/** The same of what is known by policy version. */
export const undoVersions = (to: number, ...known: readonly ByNumber[]): void =>
  undo(known, (key) => isVersionUndone(key, to));

function undo(known: readonly ByNumber[], isUndone: (key: number) => boolean): void {
  for (const one of known) for (const key of [...one.keys()]) if (isUndone(key)) one.delete(key);
}
