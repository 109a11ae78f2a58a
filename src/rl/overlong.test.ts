// The soft zone against DAPO's equation 13 written out, and what it makes of verdicts.
import fc from "fast-check";
import { expect, test } from "vitest";
import { gradeOf } from "./environment/verdict.ts";
import { overlongCost, shapeOverlong } from "./overlong.ts";

const zone = { max_tokens: 100, overlong_buffer: 20, overlong_penalty: 1 };

test("the cost is the paper's, with its sign turned", () => {
  const paper = (length: number, max: number, cache: number) =>
    length <= max - cache ? 0 : length <= max ? (max - cache - length) / cache : -1;
  fc.assert(
    fc.property(fc.integer({ min: 1, max: 300 }), fc.integer({ min: 1, max: 100 }), (tokens, buffer) => {
      const cost = overlongCost(tokens, { max_tokens: 120, overlong_buffer: buffer, overlong_penalty: 1 });
      expect(cost).toBeCloseTo(-paper(tokens, 120, buffer), 12);
    }),
  );
});

test("a verdict keeps its word and loses reward; one without a reward gets none", () => {
  const right = gradeOf({ reward: 1 }, 0);
  expect(shapeOverlong(right, 80, zone)).toBe(right);
  expect(shapeOverlong(right, 90, zone)).toEqual({ ...right, reward: 0.5 });
  expect(shapeOverlong(right, 100, { ...zone, overlong_penalty: 0.4 })).toEqual({ ...right, reward: 0.6 });
  expect(shapeOverlong(gradeOf({ reward: null }, 0), 100, zone).reward).toBeNull();
  expect(shapeOverlong(right, 100, { ...zone, overlong_buffer: 0 })).toBe(right);
});
