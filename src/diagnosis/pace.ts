// How fast a run would be: its times played by the pipeline's rule (rl/pipeline.ts), everything else free. What the diagnosis forecasts with,
// and what `./whet bench pipeline` compares with.

/** What a batch takes, in seconds. */
export interface BatchTimes {
  /** By group: from the policy being there to the last verdict. */
  groups: readonly number[];
  /** Until its policy is there. */
  sync: number;
  train: number;
}

/** The groups of `count` that a batch waits for. */
export const enoughOf = (count: number, share: number): number => Math.max(1, Math.ceil(share * count - 1e-9));

/** When the update of each batch would be done. `share`: of its groups that a batch waits for. */
export function updateTimes(batches: readonly BatchTimes[], lag: number, share = 1): number[] {
  const done: number[] = [];
  let carried: readonly number[] = [];
  for (const [batch, { groups, sync, train }] of batches.entries()) {
    const version = Math.max(0, batch - lag);
    const begun = (version === 0 ? 0 : done[version - 1]!) + sync;
    const judged = groups.map((seconds) => begun + seconds).sort((a, b) => a - b);
    const isLast = batch === batches.length - 1;
    const enough = judged[enoughOf(judged.length, isLast ? 1 : share) - 1] ?? begun;
    const start = Math.max(done[batch - 1] ?? 0, enough, ...carried);
    carried = judged.filter((at) => at > start);
    done.push(start + train);
  }
  return done;
}

/**
 * The updates that a pace is taken over: from the first, a whole number of rounds, without the last one, which waits for all. The first
 * lag + 1 batches begin together, so updates come in rounds of lag + 1.
 */
export function paceWindow(updates: number, lag: number): { first: number; last: number } {
  const rounds = Math.floor((updates - 2) / (lag + 1));
  return { first: 0, last: rounds > 0 ? rounds * (lag + 1) : updates - 2 };
}

/** Seconds per update over the window. */
export function paceOf(doneS: readonly number[], lag: number): number {
  const { first, last } = paceWindow(doneS.length, lag);
  return (doneS[last]! - doneS[first]!) / (last - first);
}
