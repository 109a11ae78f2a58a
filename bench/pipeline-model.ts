// The latency profiles that pipelines are compared under, what the server is told to play them, and the best that a fixed lag can
// do: the event model of docs/pipeline.md's rule, batch n from policy version max(0, n − lag), played with the server's own draws.
import { Random } from "../src/core/random.ts";
import { hashOf } from "../src/engine/simulated/script.ts";

/** Seconds. A group's latency is lognormal. */
export interface Profile {
  name: string;
  medianS: number;
  p95S: number;
  gradeS: number;
  trainS: number;
  syncS: number;
}

export const profiles: readonly Profile[] = [
  { name: "60 s, p95 90", medianS: 60, p95S: 90, gradeS: 4, trainS: 40, syncS: 6 },
  { name: "60 s, p95 240", medianS: 60, p95S: 240, gradeS: 4, trainS: 40, syncS: 6 },
  { name: "40 s, p95 60, train 90", medianS: 40, p95S: 60, gradeS: 4, trainS: 90, syncS: 6 },
  { name: "40 s, p95 80, grade 60, train 30", medianS: 40, p95S: 80, gradeS: 60, trainS: 30, syncS: 6 },
];

const sigmaOf = ({ medianS, p95S }: Profile) => Math.log(p95S / medianS) / 1.6448536269514722;

/** The options of `./whet serve engine=simulated` that play a profile, `scale` of a second for each of its seconds. */
export function serverOptions(profile: Profile, scale: number, seed: number): string[] {
  return [
    "engine=simulated",
    `seed=${seed}`,
    `sampling_latency=lognormal:${1000 * profile.medianS}:${sigmaOf(profile)}`,
    // An update is two requests: forward_backward and optim_step.
    `training_latency=constant:${500 * profile.trainS}`,
    `sync_latency=constant:${1000 * profile.syncS}`,
    `time_scale=${scale}`,
  ];
}

/** The prompt of a group. Both trainers send the same ones, so they wait the same times. */
export const promptOf = (batch: number, group: number) => Int32Array.of(1, batch, group);

/** Seconds until the slowest group of each batch is sampled, as the server draws them. */
export function slowestGroups(profile: Profile, seed: number, batches: number, groups: number): number[] {
  return Array.from({ length: batches }, (_, batch) =>
    Math.max(
      ...Array.from({ length: groups }, (_, group) => {
        const random = new Random("latency", seed, hashOf(promptOf(batch, group)), "");
        return profile.medianS * Math.exp(sigmaOf(profile) * random.normal());
      }),
    ),
  );
}

/** When each update would be done, in seconds, if everything but the latencies took no time. */
export function idealUpdates(profile: Profile, sampleS: readonly number[], lag: number): number[] {
  const done: number[] = [];
  for (const [batch, sample] of sampleS.entries()) {
    const version = Math.max(0, batch - lag);
    const begun = version === 0 ? 0 : done[version - 1]!;
    const ready = begun + profile.syncS + sample + profile.gradeS;
    done.push(Math.max(ready, done[batch - 1] ?? 0) + profile.trainS);
  }
  return done;
}

/** Seconds that a batch's step takes at least: the trainer must train, and a batch passes all stages in lag + 1 steps. */
export function boundOf(profile: Profile, sampleS: number, lag: number): number {
  const { syncS, gradeS, trainS } = profile;
  return Math.max(trainS, (syncS + sampleS + gradeS + trainS) / (lag + 1));
}

/**
 * The updates that a pace is taken over: from the first, a whole number of rounds. The first lag + 1 batches begin together, so
 * updates come in rounds of lag + 1.
 */
export function paceWindow(updates: number, lag: number): { first: number; last: number } {
  const rounds = Math.floor((updates - 1) / (lag + 1));
  return { first: 0, last: rounds > 0 ? rounds * (lag + 1) : updates - 1 };
}

/** Seconds per update over the window. */
export function paceOf(doneS: readonly number[], lag: number): number {
  const { first, last } = paceWindow(doneS.length, lag);
  return (doneS[last]! - doneS[first]!) / (last - first);
}
