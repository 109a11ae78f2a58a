import { expect, test } from "vitest";
import { costOf, modelPrices, priceOf } from "./prices.ts";

test("the cost of a step's tokens", () => {
  const price = priceOf("Qwen/Qwen3-8B")!;
  const use = { prefill: 1_000_000, sample: 2_000_000, train: 3_000_000 };
  expect(costOf(price, use)).toBeCloseTo(0.195 + 1.2 + 1.32, 10);
  // A cached prompt costs a fifth.
  expect(costOf(price, { ...use, cachedPrefill: 500_000 })).toBeCloseTo(0.195 * 0.6 + 1.2 + 1.32, 10);
  expect(priceOf("Qwen/Qwen3-8B:peft:131072")).toBeUndefined();
});

test("every figure has a day and is there once", () => {
  for (const { asOf } of modelPrices) expect(asOf).toMatch(/^\d{4}-\d{2}(-\d{2})?$/);
  expect(new Set(modelPrices.map(({ model }) => model)).size).toBe(modelPrices.length);
});
