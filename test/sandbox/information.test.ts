// The measure of channels itself: a leak is found although it is noisy, and noise is not called a leak.
import { expect, test } from "vitest";
import { chance, information, leakBelow, randomBits, type Use } from "./information.ts";

const flipped = (bits: readonly boolean[], share: number): Use[] =>
  bits.map((bit, index) => [bit, String(index % 100 < share * 100 ? !bit : bit)]);

test("a bit that always arrives is one bit, one that never does is none", () => {
  const bits = randomBits(24);
  expect(information(bits.map((bit) => [bit, String(bit)]))).toBeCloseTo(1);
  expect(information(bits.map((bit) => [bit, "same"]))).toBe(0);
  expect(chance(bits.map((bit) => [bit, "same"]))).toBe(1);
});

test.each([0, 0.1, 0.25])("a channel that is wrong %f of the time is still a leak", (share) => {
  expect(chance(flipped(randomBits(96), share))).toBeLessThan(leakBelow);
});

test("what a machine adds, at the start, in bursts or now and then, is no leak", () => {
  const noises: ((index: number) => boolean)[] = [
    (index) => index === 0, // the first look, before anything is in memory
    (index) => index < 12,
    (index) => index % 7 === 0,
    (index) => index > 40 && index < 60,
  ];
  for (const noise of noises) {
    const found = Array.from({ length: 10 }, () =>
      chance(randomBits(96).map((bit, index) => [bit, String(noise(index))])),
    );
    expect(found.filter((likely) => likely < leakBelow).length).toBeLessThanOrEqual(1);
  }
});
