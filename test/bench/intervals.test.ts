import { expect, test } from "vitest";
import { meanInterval, median, ratioInterval } from "../../bench/intervals.ts";

test("a mean's interval is Student's", () => {
  // 1, 2, 3, 4, 5: standard error √0.5, t(4) = 2.776.
  const { middle, low, high } = meanInterval([1, 2, 3, 4, 5]);
  expect(middle).toBe(3);
  expect(high - middle).toBeCloseTo(2.776 * Math.sqrt(0.5), 3);
  expect(middle - low).toBeCloseTo(high - middle, 9);
  expect(meanInterval([1]).high).toBe(Number.POSITIVE_INFINITY);
});

test("a ratio is that of medians, with an interval that one odd run widens", () => {
  const calm = ratioInterval([10, 11, 12], [200, 220, 240]);
  expect(calm.middle).toBe(20);
  expect(calm.low).toBeGreaterThan(15);
  expect(calm.high).toBeLessThan(27);
  const odd = ratioInterval([10, 11, 12], [200, 220, 900]);
  expect(odd.middle).toBe(20);
  expect(odd.high - odd.low).toBeGreaterThan(3 * (calm.high - calm.low));
  expect(ratioInterval([10], [200])).toMatchObject({ middle: 20, high: Number.POSITIVE_INFINITY });
});

test("a median of an even number is the middle of the two in the middle", () => {
  expect(median([4, 1, 3, 2])).toBe(2.5);
});
