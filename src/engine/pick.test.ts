import fc from "fast-check";
import { expect, test } from "vitest";
import { Random } from "../core/random.ts";
import { argmax, draw, tempered } from "./pick.ts";

const open = { temperature: 1, topK: -1, topP: 1 };
const probsOf = (...values: number[]) => Float32Array.from(values);

/** How often each token came up in many draws. */
function frequencies(probs: Float32Array, settings: typeof open, draws = 20_000): number[] {
  const random = new Random("frequencies");
  const counts = new Array<number>(probs.length).fill(0);
  for (let i = 0; i < draws; i++) counts[draw(probs, settings, random)]!++;
  return counts.map((count) => count / draws);
}

test("draws follow the probabilities", () => {
  const found = frequencies(probsOf(0.5, 0, 0.3, 0.2), open);
  expect(found[1]).toBe(0);
  for (const [index, share] of [0.5, 0, 0.3, 0.2].entries())
    expect(Math.abs(found[index]! - share)).toBeLessThan(0.015);
});

test("a token is drawn where the running sum passes the point, whatever the length", () => {
  const lengths = fc.integer({ min: 1, max: 300 });
  fc.assert(
    fc.property(lengths, fc.integer(), fc.double({ min: 0, max: 0.9, noNaN: true }), (length, seed, zeros) => {
      const noise = new Random("noise", seed);
      const probs = Float32Array.from({ length }, () => (noise.float() < zeros ? 0 : noise.float()));
      probs[noise.integer(length)] = 0.5;
      const total = probs.reduce((partial, value) => partial + value, 0);
      const point = new Random(seed).float() * total;
      const token = draw(probs, open, new Random(seed));
      const before = probs.subarray(0, token).reduce((partial, value) => partial + value, 0);
      expect(probs[token]).toBeGreaterThan(0);
      expect(point).toBeGreaterThanOrEqual(before - 1e-12 * total);
      expect(point).toBeLessThan(before + probs[token]! + 1e-12 * total);
    }),
  );
});

test("top-k keeps k tokens in their proportion, the lower id of equals", () => {
  const found = frequencies(probsOf(0.1, 0.4, 0.2, 0.2, 0.1), { ...open, topK: 2 });
  expect([found[0], found[3], found[4]]).toEqual([0, 0, 0]);
  expect(Math.abs(found[1]! - 2 / 3)).toBeLessThan(0.015);
});

test("top-p keeps the fewest tokens that reach p, at least one", () => {
  const found = frequencies(probsOf(0.05, 0.5, 0.3, 0.15), { ...open, topP: 0.7 });
  expect([found[0], found[3]]).toEqual([0, 0]);
  expect(frequencies(probsOf(0.2, 0.5, 0.3), { ...open, topP: 0 }, 100)).toEqual([0, 1, 0]);
});

test("top-p counts what top-k left", () => {
  const found = frequencies(probsOf(0.4, 0.3, 0.3), { ...open, topK: 2, topP: 0.55 });
  expect(found).toEqual([1, 0, 0]);
});

test("the fast filter keeps exactly the set that sorting everything keeps", () => {
  const distributions = fc.array(fc.double({ min: 0, max: 1, noNaN: true }), { minLength: 1, maxLength: 60 });
  fc.assert(
    fc.property(distributions, fc.double({ min: 0.01, max: 0.99, noNaN: true }), fc.integer(), (values, topP, seed) => {
      const probs = Float32Array.from(values);
      fc.pre(probs.some((value) => value > 0));
      const order = [...probs.keys()].sort((a, b) => probs[b]! - probs[a]! || a - b);
      const total = order.reduce((partial, token) => partial + probs[token]!, 0);
      let share = 0;
      const kept = order.filter((token, rank) => {
        const wanted = rank === 0 || share < topP * total;
        share += probs[token]!;
        return wanted;
      });
      expect(kept).toContain(draw(probs, { ...open, topP }, new Random(seed)));
    }),
  );
});

test("the same generator state gives the same token, and every draw takes one number", () => {
  const probs = probsOf(0.25, 0.25, 0.5);
  const [a, b] = [new Random(3), new Random(3)];
  const first = Array.from({ length: 50 }, () => draw(probs, open, a));
  expect(Array.from({ length: 50 }, () => draw(probs, open, b))).toEqual(first);
  draw(probs, { ...open, topK: 1 }, a);
  b.float();
  expect(a.float()).toBe(b.float());
});

test("argmax takes the first of equals; a low temperature sharpens", () => {
  expect(argmax(probsOf(1, 3, 3, 2))).toBe(1);
  const sharp = tempered(Float32Array.from([0.6, 0.4], Math.log), 0.5);
  expect(sharp[0]! / sharp[1]!).toBeCloseTo(2.25, 4);
});
