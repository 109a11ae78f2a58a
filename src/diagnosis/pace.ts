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

/**
 * The version that a batch is sampled from, and the last update that its groups may be in, lag + 1 versions later: the one after their
 * own; where batches begin in rounds of lag + 1, the first of the next round. `start`: the version that sampling began with.
 */
export function reachOf(batch: number, lag: number, rounds = false, start = 0): { version: number; last: number } {
  const last = batch + 1 + (rounds ? lag - ((batch - start) % (lag + 1)) : 0);
  return { version: Math.max(start, last - lag - 1), last };
}

/** When the update of each batch would be done. `share`: of its groups that a batch waits for. */
export function updateTimes(batches: readonly BatchTimes[], lag: number, share = 1, rounds = false): number[] {
  const done: number[] = [];
  let carried: readonly { at: number; last: number }[] = [];
  for (const [batch, { groups, sync, train }] of batches.entries()) {
    const { version, last } = reachOf(batch, lag, rounds);
    const begun = (version === 0 ? 0 : done[version - 1]!) + sync;
    const judged = groups.map((seconds) => begun + seconds).sort((a, b) => a - b);
    const isLast = batch === batches.length - 1;
    const enough = judged[enoughOf(judged.length, isLast ? 1 : share) - 1] ?? begun;
    const due = carried.filter((group) => isLast || group.last <= batch);
    const start = Math.max(done[batch - 1] ?? 0, enough, ...due.map(({ at }) => at));
    carried = [...carried, ...judged.map((at) => ({ at, last }))].filter(({ at }) => at > start);
    done.push(start + train);
  }
  return done;
}

/** Seconds per update with tail=carry, and in rounds; `inRounds`: whether these are faster by a twentieth. */
export function carryPaces(batches: readonly BatchTimes[], lag: number, share: number) {
  const paceAt = (rounds: boolean) => paceOf(updateTimes(batches, lag, share, rounds), lag);
  const [once, rounds] = [paceAt(false), paceAt(true)];
  return { once, rounds, inRounds: once / rounds >= 1.05 };
}

/**
 * The last update that a pace is taken over, from the first one: a whole number of rounds, without the last update, which waits for all.
 * The first lag + 1 batches begin together, so updates come in rounds of lag + 1.
 */
export function lastPaced(updates: number, lag: number): number {
  const rounds = Math.floor((updates - 2) / (lag + 1));
  return rounds > 0 ? rounds * (lag + 1) : updates - 2;
}

/** Seconds per update. */
export function paceOf(doneS: readonly number[], lag: number): number {
  const last = lastPaced(doneS.length, lag);
  return (doneS[last]! - doneS[0]!) / last;
}
