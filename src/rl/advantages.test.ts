import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { advantageNames, batchAdvantages, computeAdvantages, shouldSkip } from "./advantages.ts";

const rewards = fc.array(fc.constantFrom(-0.1, 0, 1), { minLength: 1, maxLength: 32 });

describe("computeAdvantages", () => {
  test("is the deviation from the group's mean, not a z-score", () => {
    expect(computeAdvantages([0, 1])).toEqual([-0.5, 0.5]);
    expect(computeAdvantages([1, 0, 0, 0])).toEqual([0.75, -0.25, -0.25, -0.25]);
    expect(computeAdvantages([])).toEqual([]);
    expect(computeAdvantages([0.3])).toEqual([0]);
  });

  test("sums to zero", () => {
    fc.assert(
      fc.property(rewards, (group) => {
        expect(Math.abs(computeAdvantages(group).reduce((sum, value) => sum + value, 0))).toBeLessThan(1e-9);
      }),
    );
  });
});

describe("shouldSkip", () => {
  test("skips a group whose rewards are all equal, and only such a group", () => {
    fc.assert(
      fc.property(rewards, (group) => {
        expect(shouldSkip(computeAdvantages(group))).toBe(group.every((reward) => reward === group[0]));
      }),
    );
  });

  test("keeps a group of fifteen wrong answers and one malformed", () => {
    const advantages = computeAdvantages([...Array<number>(15).fill(0), -0.1]);
    expect(shouldSkip(advantages)).toBe(false);
    expect(advantages[0]).toBeCloseTo(0.00625, 12);
    expect(advantages[15]).toBeCloseTo(-0.09375, 12);
  });

  test("skips an empty group", () => expect(shouldSkip([])).toBe(true));
});

describe("batchAdvantages", () => {
  test("computes every variant as its formula says", () => {
    const groups = [
      [0, 1],
      [1, 0, 0, 0],
    ];
    const spread = Math.sqrt((0.25 * 2 + 0.75 ** 2 + 3 * 0.25 ** 2) / 6);
    expect(batchAdvantages(groups, "mean")[1]).toEqual([0.75, -0.25, -0.25, -0.25]);
    expect(batchAdvantages(groups, "grpo_std")[0]![1]).toBeCloseTo(0.5 / (0.5 + 1e-6), 12);
    expect(batchAdvantages(groups, "rloo")[1]![0]).toBeCloseTo(1, 12);
    expect(batchAdvantages(groups, "batch_std")[0]![0]).toBeCloseTo(-0.5 / (spread + 1e-6), 12);
    expect(batchAdvantages(groups, "maxrl")[1]![0]).toBeCloseTo(0.75 / (0.25 + 1e-6), 9);
    expect(batchAdvantages(groups, "none")[0]).toEqual([0, 1]);
  });

  test("is finite for any rewards", () => {
    fc.assert(
      fc.property(fc.array(rewards, { maxLength: 8 }), fc.constantFrom(...advantageNames), (groups, name) => {
        expect(batchAdvantages(groups, name).flat().every(Number.isFinite)).toBe(true);
      }),
    );
  });
});
