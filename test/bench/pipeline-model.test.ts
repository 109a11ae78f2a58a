import { expect, test } from "vitest";
import { batchTimes, boundOf, type Profile, profiles } from "../../bench/pipeline-model.ts";
import { mean } from "../../src/core/statistics.ts";
import { carryPaces, lastPaced, paceOf, updateTimes } from "../../src/diagnosis/pace.ts";

const seeds = [1, 2, 3, 4, 5];
const profileOf = (name: string): Profile => profiles.find((profile) => profile.name === name)!;
/** 8 groups per batch, 200 steps, mean of five seeds. */
const over = (profile: Profile, figure: (times: ReturnType<typeof batchTimes>) => number) =>
  mean(seeds.map((seed) => figure(batchTimes(profile, seed, 200, 8))))!;

// Speed over sequential at lag 1, 2, 4 and 8.
test.each([
  ["60 s, p95 90", [1.96, 2.84, 3.37, 3.37]],
  ["60 s, p95 240", [1.76, 2.44, 3.52, 4.98]],
  ["40 s, p95 60, train 90", [1.74, 1.75, 1.75, 1.75]],
  ["40 s, p95 80, grade 60, train 30", [1.96, 2.88, 4.52, 5.59]],
] as const)("%s gains what a fixed lag can gain", (name, expected) => {
  for (const [at, lag] of [1, 2, 4, 8].entries()) {
    const speed = over(profileOf(name), (times) => updateTimes(times, 0).at(-1)! / updateTimes(times, lag).at(-1)!);
    expect(Math.abs(speed / expected[at]! - 1), `lag ${lag}: ${speed}`).toBeLessThan(0.05);
  }
});

// Updates an hour over those that wait for all groups.
test.each([
  ["60 s, p95 240", 0, 1.53],
  ["60 s, p95 240", 1, 1.33],
  ["60 s, p95 240", 2, 1.22],
  ["60 s, p95 240", 4, 1.14],
  ["60 s, p95 90", 1, 1.17],
] as const)("%s at lag %i gains what carrying over can gain", (name, lag, expected) => {
  const paceAt = (share: number) =>
    over(profileOf(name), (times) => 3600 / paceOf(updateTimes(times, lag, share), lag));
  expect(Math.abs(paceAt(0.75) / paceAt(1) / expected - 1)).toBeLessThan(0.02);
});

test("a group is carried over once, and then waited for", () => {
  const batch = (...groups: number[]) => ({ groups, sync: 0, train: 10 });
  const times = [batch(1, 1, 1, 100), batch(1, 1, 1, 1), batch(1, 1, 1, 1)];
  expect(updateTimes(times, 0)).toEqual([110, 121, 132]);
  // The second update waits for the first batch's last group.
  expect(updateTimes(times, 0, 0.75)).toEqual([11, 110, 121]);
});

// Of the same, in rounds over one by one; slower where tails are short.
test.each([
  ["60 s, p95 600", 1, 1.06],
  ["60 s, p95 600", 2, 1.09],
  ["60 s, p95 600", 4, 1.11],
  ["60 s, p95 90", 1, 0.75],
] as const)("%s at lag %i gains what rounds can gain", (name, lag, expected) => {
  const [once, rounds] = (["once", "rounds"] as const).map((which) =>
    over(profileOf(name), (times) => 3600 / carryPaces(times, lag, 0.75)[which]),
  );
  expect(Math.abs(rounds! / once! / expected - 1)).toBeLessThan(0.02);
});

test("in rounds a group is carried on until the first batch of the next round, and then waited for", () => {
  const [late, even] = [
    [1, 1, 1, 100],
    [1, 1, 1, 1],
  ].map((groups) => ({ groups, sync: 0, train: 10 }));
  const times = [late!, even!, even!, even!, even!];
  expect(updateTimes(times, 1, 0.75)).toEqual([11, 110, 120, 130, 140]);
  // The first two begin together, the next two after both, and the third update waits.
  expect(updateTimes(times, 1, 0.75, true)).toEqual([11, 21, 110, 120, 131]);
  // The last one waits for all.
  expect(updateTimes(times.slice(0, 2), 1, 0.75, true)).toEqual([11, 110]);
});

test("with equal latencies the ideal pace is the bound, at every lag", () => {
  for (const { syncS: sync, trainS: train, medianS } of profiles)
    for (const lag of [0, 1, 2, 4]) {
      const times = Array.from({ length: 16 }, () => ({ groups: [medianS, medianS], sync, train }));
      for (const share of [1, 0.75])
        expect(paceOf(updateTimes(times, lag, share), lag)).toBeCloseTo(boundOf(times[0]!, lag), 9);
    }
});

test("a pace is taken over whole rounds of updates, without the last one", () => {
  expect([0, 1, 2, 4].map((lag) => lastPaced(16, lag))).toEqual([14, 14, 12, 10]);
  expect(lastPaced(3, 4)).toBe(1);
});
