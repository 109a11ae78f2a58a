import fc from "fast-check";
import { expect, test } from "vitest";
import { mcnemarExact, passAtK, quantile, wilsonInterval } from "./statistics.ts";

test("pass@k agrees with the binomial formula", () => {
  expect(passAtK(16, 4, 1)).toBeCloseTo(0.25, 12);
  expect(passAtK(16, 4, 8)).toBeCloseTo(1 - 495 / 12870, 12);
  expect(passAtK(16, 0, 8)).toBe(0);
  expect(passAtK(16, 16, 1)).toBe(1);
});

test("a Wilson interval contains the rate and lies within [0, 1]", () => {
  fc.assert(
    fc.property(fc.integer({ min: 1, max: 5000 }), fc.double({ min: 0, max: 1, noNaN: true }), (trials, share) => {
      const successes = Math.round(share * trials);
      const [low, high] = wilsonInterval(successes, trials);
      expect(low).toBeGreaterThanOrEqual(0);
      expect(high).toBeLessThanOrEqual(1);
      expect(low).toBeLessThanOrEqual(successes / trials + 1e-12);
      expect(high).toBeGreaterThanOrEqual(successes / trials - 1e-12);
    }),
  );
  // A published value: 10 of 100.
  expect(wilsonInterval(10, 100)[0]).toBeCloseTo(0.0552, 4);
  expect(wilsonInterval(10, 100)[1]).toBeCloseTo(0.1744, 4);
});

test("McNemar's exact test is symmetric and matches hand-computed tails", () => {
  expect(mcnemarExact(0, 0)).toBe(1);
  expect(mcnemarExact(5, 0)).toBeCloseTo(2 / 32, 12);
  expect(mcnemarExact(8, 2)).toBeCloseTo((2 * (1 + 10 + 45)) / 1024, 12);
  expect(mcnemarExact(2, 8)).toBeCloseTo(mcnemarExact(8, 2), 12);
  expect(mcnemarExact(4000, 3000)).toBeGreaterThanOrEqual(0);
});

test("a quantile is one of the values", () => {
  expect(quantile([], 0.5)).toBeUndefined();
  expect(quantile([3, 1, 2], 0.5)).toBe(2);
  expect(quantile([3, 1, 2], 0.95)).toBe(3);
  expect(quantile([3, 1, 2], 0)).toBe(1);
});
