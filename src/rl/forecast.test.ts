import { expect, test } from "vitest";
import { describeCost, describeForecast, forecastTokens } from "./forecast.ts";
import type { Task } from "./tasks.ts";

const task = (prompt: number, maxTokens: number) => ({ prompt: new Int32Array(prompt), maxTokens }) as Task;
const config = {
  context_window: 1000,
  prompts_per_step: 8,
  completions_per_prompt: 16,
  fill_batch: false,
  max_steps: 20,
  eval_every: 10,
  eval_num_samples: 2,
};

test("every answer as long as it may be, prompts read once, evaluations before, between and after", () => {
  const forecast = forecastTokens(config, [task(100, 50), task(200, 30)], [task(10, 5), task(30, 7)]);
  expect(forecast).toEqual({
    step: { prefill: 8 * 150, sample: 128 * 40, train: 128 * 190 },
    evaluation: { prefill: 40, sample: 24, train: 0 },
    run: { prefill: 20 * 1200 + 3 * 40, sample: 20 * 5120 + 3 * 24, train: 20 * 24_320 },
    steps: 20,
    evaluations: 3,
  });
  expect(describeForecast(forecast)).toEqual([
    "a step: at most 1200 read, 5120 sampled, 24k trained (tokens, if every answer is as long as it may be)",
    "20 steps and 3 evaluations: at most 24k read, 102k sampled, 486k trained",
  ]);
});

test("a batch that is filled asks four times as much at most, and trains on no more", () => {
  const { step } = forecastTokens(config, [task(100, 50)], []);
  expect(forecastTokens({ ...config, fill_batch: true }, [task(100, 50)], []).step).toEqual({
    prefill: 4 * step.prefill,
    sample: 4 * step.sample,
    train: step.train,
  });
});

test("the most it costs, at the prices of the run", () => {
  const tariff = { prefill: 1, cachedPrefill: 0.2, sample: 10, train: 100, basis: "a test" };
  const forecast = forecastTokens(config, [task(100, 50), task(200, 30)], [task(10, 5), task(30, 7)]);
  expect(describeCost(forecast, tariff)).toBe("cost: at most $2.48 a step, $49.69 in all (a test)");
  expect(describeCost({ ...forecast, run: undefined }, tariff)).toBe("cost: at most $2.48 a step (a test)");
});

test("without an end there is no total, without tests no evaluation", () => {
  expect(forecastTokens({ ...config, max_steps: -1 }, [task(1, 1)], []).run).toBeUndefined();
  expect(forecastTokens(config, [task(1, 1)], []).evaluations).toBe(0);
  expect(forecastTokens({ ...config, eval_every: 0 }, [task(1, 1)], [task(1, 1)]).evaluations).toBe(0);
  expect(describeForecast(forecastTokens({ ...config, max_steps: 1 }, [task(1, 1)], []))[1]).toMatch(/^1 step and/);
});

test("every further turn of an episode reads what was said before it, up to the window", () => {
  const { step, evaluation } = forecastTokens(config, [task(100, 50)], [task(10, 5)], 3);
  expect(step).toEqual({ prefill: 8 * (100 + 16 * 2 * 1000), sample: 128 * 3 * 50, train: 128 * 3 * 1000 });
  expect(evaluation).toEqual({ prefill: 10 + 2 * 2 * 1000, sample: 2 * 3 * 5, train: 0 });
});
