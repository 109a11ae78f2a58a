// The latency profiles that pipelines are compared under, what the server is told to play them, and what each batch takes then, by the
// server's own draws: for the event model of the pipeline's rule (src/diagnosis/pace.ts).
import { Random } from "../src/core/random.ts";
import type { BatchTimes } from "../src/diagnosis/pace.ts";
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
  { name: "60 s, p95 600", medianS: 60, p95S: 600, gradeS: 4, trainS: 40, syncS: 6 },
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

/** What the batches take, as the server draws it. */
export function batchTimes(profile: Profile, seed: number, batches: number, groups: number): BatchTimes[] {
  const { medianS, gradeS, syncS: sync, trainS: train } = profile;
  return Array.from({ length: batches }, (_, batch) => {
    const seconds = Array.from({ length: groups }, (_, group) => {
      const random = new Random("latency", seed, hashOf(promptOf(batch, group)), "");
      return medianS * Math.exp(sigmaOf(profile) * random.normal()) + gradeS;
    });
    return { groups: seconds, sync, train };
  });
}

/** Seconds that a batch's step takes at least: the trainer must train, and a batch passes all stages in lag + 1 steps. */
export const boundOf = ({ groups, sync, train }: BatchTimes, lag: number): number =>
  Math.max(train, (sync + Math.max(...groups) + train) / (lag + 1));
