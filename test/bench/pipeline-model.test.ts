import { expect, test } from "vitest";
import { boundOf, idealUpdates, paceOf, paceWindow, profiles, slowestGroups } from "../../bench/pipeline-model.ts";

// Speed over sequential at lag 1, 2, 4 and 8: 8 groups per batch, 200 steps, mean of five seeds.
test.each([
  [0, [1.96, 2.84, 3.37, 3.37]],
  [1, [1.76, 2.44, 3.52, 4.98]],
  [2, [1.74, 1.75, 1.75, 1.75]],
  [3, [1.96, 2.88, 4.52, 5.59]],
] as const)("profile %i gains what a fixed lag can gain", (index, expected) => {
  const profile = profiles[index]!;
  const seeds = [1, 2, 3, 4, 5];
  const speed = (lag: number) => {
    const ratios = seeds.map((seed) => {
      const sampleS = slowestGroups(profile, seed, 200, 8);
      return idealUpdates(profile, sampleS, 0).at(-1)! / idealUpdates(profile, sampleS, lag).at(-1)!;
    });
    return ratios.reduce((sum, ratio) => sum + ratio, 0) / seeds.length;
  };
  for (const [at, lag] of [1, 2, 4, 8].entries())
    expect(Math.abs(speed(lag) / expected[at]! - 1), `lag ${lag}: ${speed(lag)}`).toBeLessThan(0.05);
});

test("with equal latencies the ideal pace is the bound, at every lag", () => {
  for (const profile of profiles)
    for (const lag of [0, 1, 2, 4]) {
      const sampleS = Array.from({ length: 16 }, () => profile.medianS);
      expect(paceOf(idealUpdates(profile, sampleS, lag), lag)).toBeCloseTo(boundOf(profile, profile.medianS, lag), 9);
    }
});

test("a pace is taken over whole rounds of updates", () => {
  expect([0, 1, 2, 4].map((lag) => paceWindow(16, lag).last)).toEqual([15, 14, 15, 15]);
  expect(paceWindow(3, 4)).toEqual({ first: 0, last: 2 });
});
