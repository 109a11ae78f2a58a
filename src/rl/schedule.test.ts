// Shares of the learning rate, beside those that transformers 5.5 computes (get_*_schedule_with_warmup, whose warm-up begins at zero).
import fc from "fast-check";
import { expect, test } from "vitest";
import { presetConfig, validateConfig } from "./config.ts";
import { rateShare, scheduleNames } from "./schedule.ts";

const shares = (lr_schedule: (typeof scheduleNames)[number], warmup_steps: number, max_steps: number) =>
  Array.from({ length: max_steps }, (_, step) => rateShare(step, { lr_schedule, warmup_steps, max_steps }));

test("constant is one throughout, without an end too", () => {
  expect(shares("constant", 0, 4)).toEqual([1, 1, 1, 1]);
  expect(rateShare(7, { lr_schedule: "constant", warmup_steps: 0, max_steps: -1 })).toBe(1);
  expect(rateShare(1, { lr_schedule: "constant", warmup_steps: 4, max_steps: -1 })).toBe(0.5);
});

test("after the warm-up, linear and cosine are those of transformers", () => {
  expect(shares("linear", 2, 6)).toEqual([0.5, 1, 1, 0.75, 0.5, 0.25]);
  const cosine = [0.5, 1, 1, 0.8535533905932737, 0.5, 0.14644660940672627];
  for (const [step, share] of shares("cosine", 2, 6).entries()) expect(share).toBeCloseTo(cosine[step]!, 12);
});

test("a share is over 0 and at most 1 at every step, rises with the warm-up and never after it", () => {
  const schedules = fc.record({
    lr_schedule: fc.constantFrom(...scheduleNames),
    warmup_steps: fc.nat(30),
    max_steps: fc.integer({ min: 31, max: 200 }),
  });
  fc.assert(
    fc.property(schedules, (schedule) => {
      const all = shares(schedule.lr_schedule, schedule.warmup_steps, schedule.max_steps);
      for (const [step, share] of all.entries()) {
        expect(share).toBeGreaterThan(0);
        expect(share).toBeLessThanOrEqual(1);
        if (step === 0) continue;
        if (step < schedule.warmup_steps) expect(share).toBeGreaterThan(all[step - 1]!);
        else expect(share).toBeLessThanOrEqual(step === schedule.warmup_steps ? 1 : all[step - 1]!);
      }
    }),
  );
});

test.each([
  ["rl", {}],
  ["sft", { completions_per_prompt: 1 }],
] as const)("a schedule that falls needs an end, and a warm-up that ends before it: %s", (method, more) => {
  const config = { ...presetConfig("nano"), method, ...more };
  expect(() => validateConfig({ ...config, max_steps: -1, lr_schedule: "cosine" })).toThrow(
    /lr_schedule=cosine .* max_steps/,
  );
  expect(() => validateConfig({ ...config, max_steps: 40, warmup_steps: 40 })).toThrow(/warmup_steps=40/);
  expect(() => validateConfig({ ...config, max_steps: 40, warmup_steps: 5, lr_schedule: "linear" })).not.toThrow();
});
