import { expect, test } from "vitest";
import { costOf, dollars, modelPrices, priceOf, tariffForBudget, tariffOf } from "./prices.ts";

const none = { price_prefill: null, price_cached_prefill: null, price_sample: null, price_train: null };
const use = { prefill: 1_000_000, cachedPrefill: 500_000, sample: 2_000_000, train: 3_000_000 };

test("the cost of tokens on hosted Tinker, by the table of its day", () => {
  const { tariff } = tariffOf({ ...none, model_name: "Qwen/Qwen3-8B" }, "hosted");
  expect(tariff).toMatchObject({
    prefill: 0.195,
    sample: 0.6,
    train: 0.44,
    basis: "hosted Tinker's prices of 2026-10-07",
  });
  // A cached prompt costs a fifth.
  expect(costOf(tariff!, use).prefill).toBeCloseTo(0.195 * 0.5 + 0.195 * 0.5 * 0.2, 12);
  expect(costOf(tariff!, use).sample).toBeCloseTo(1.2, 12);
  expect(costOf(tariff!, use).train).toBeCloseTo(1.32, 12);
  expect(priceOf("Qwen/Qwen3-8B:peft:131072")).toBeUndefined();
  expect(tariffOf({ ...none, model_name: "Qwen/Qwen3-4B-Instruct-2507" }, "hosted").tariff).toMatchObject({
    prefill: 0.07,
    sample: 0.22,
    train: 0.22,
    basis: "hosted Tinker's prices of 2026-01",
  });
});

test("what the user says wins; an unknown price is never guessed", () => {
  const model_name = "someone/model";
  const own = { ...none, model_name, price_prefill: 1, price_sample: 2, price_train: 3 };
  expect(tariffOf(own, "server").tariff).toMatchObject({ prefill: 1, cachedPrefill: 0.2, sample: 2, train: 3 });
  expect(tariffOf({ ...own, price_cached_prefill: 0.5 }, "hosted").tariff?.cachedPrefill).toBe(0.5);
  expect(tariffOf({ ...none, model_name }, "hosted").missing).toEqual(["price_prefill", "price_sample", "price_train"]);
  expect(tariffOf({ ...own, price_train: null }, "server").missing).toEqual(["price_train"]);
  // The table is hosted Tinker's: the same model on a server of one's own has no known price.
  expect(tariffOf({ ...none, model_name: "Qwen/Qwen3-8B" }, "server").tariff).toBeUndefined();
  expect(tariffOf({ ...none, model_name }, "embedded").tariff).toMatchObject({ prefill: 0, sample: 0, train: 0 });
  expect(() => tariffForBudget({ ...none, model_name, budget: 5 }, "server")).toThrow(
    "price_prefill= price_sample= price_train=",
  );
  expect(tariffForBudget({ ...none, model_name, budget: null }, "server")).toBeUndefined();
});

test("dollars are readable at every size", () => {
  expect([0, 12.345, 0.1234567, 0.00012345].map(dollars)).toEqual(["$0", "$12.35", "$0.1235", "$0.000123"]);
});

test("every figure has a day and is there once", () => {
  for (const { asOf } of modelPrices) expect(asOf).toMatch(/^\d{4}-\d{2}(-\d{2})?$/);
  expect(new Set(modelPrices.map(({ model }) => model)).size).toBe(modelPrices.length);
});
