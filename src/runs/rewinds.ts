// Going back. A run that is rewound to step N does the steps from N on anew, and with them what comes of them: the policies after
// version N, which N steps made. What that undoes is decided here alone; whoever keeps something by step or by version keeps it in one
// of these maps.

/** A group's batch: of training a step, of an evaluation the policy version that it measures. */
interface Batch {
  phase: "train" | "eval";
  batch: number;
}

export const isStepUndone = (step: number, to: number): boolean => step >= to;
export const isVersionUndone = (version: number, to: number): boolean => version > to;

/** Whether going back to step `to` undoes a group. */
export const isGroupUndone = ({ phase, batch }: Batch, to: number): boolean =>
  phase === "train" ? isStepUndone(batch, to) : isVersionUndone(batch, to);

/** What a run has of its steps. */
export class ByStep<Value> extends Map<number, Value> {
  /** Takes away what going back to step `to` undoes. Returns it. */
  rewind(to: number): Value[] {
    return take(this, (step) => isStepUndone(step, to));
  }
}

/** What a run has of its policy versions. */
export class ByVersion<Value> extends Map<number, Value> {
  rewind(to: number): Value[] {
    return take(this, (version) => isVersionUndone(version, to));
  }
}

function take<Value>(known: Map<number, Value>, isUndone: (key: number) => boolean): Value[] {
  const undone = [...known].filter(([key]) => isUndone(key));
  for (const [key] of undone) known.delete(key);
  return undone.map(([, value]) => value);
}
