import { expect, test } from "vitest";
import { presetConfig, TrainConfig, validateConfig } from "./config.ts";

test("preset=deepcoder has the published defaults", () => {
  expect(presetConfig("deepcoder")).toMatchObject({
    model_name: "Qwen/Qwen3-8B",
    prompts_per_step: 8,
    completions_per_prompt: 16,
    learning_rate: 4e-5,
    lora_rank: 32,
    max_tokens: 24576,
    temperature: 1,
    format_coef: 0.1,
    reward_timeout: 6,
    save_every: 10,
    eval_every: 10,
    max_steps: -1,
    beta1: 0.9,
    beta2: 0.95,
    eps: 1e-12,
    weight_decay: 0,
    grad_clip_norm: 0,
  });
});

test("every preset is a valid config", () => {
  for (const preset of ["nano", "deepcoder"] as const) {
    expect(validateConfig(TrainConfig.parse(presetConfig(preset)))).toEqual([]);
  }
});

test("losses that the loop has not all inputs for are refused with the reason", () => {
  expect(TrainConfig.parse({ loss_fn: "gspo" }).loss_fn).toBe("gspo");
  expect(() => TrainConfig.parse({ loss_fn: "dro" })).toThrow(/it would train the prompt.*loss_fn=ppo/);
  expect(() => TrainConfig.parse({ loss_fn: "cross_entropy" })).toThrow(/expected one of/);
});

test("what cannot train is refused with the way out", () => {
  const config = presetConfig("deepcoder");
  expect(() => validateConfig({ ...config, completions_per_prompt: 1 })).toThrow(/2 or more/);
  expect(validateConfig({ ...config, completions_per_prompt: 2 })).toHaveLength(1);
  expect(validateConfig({ ...config, num_substeps: 2 })[0]).toContain("ppo");
});

test("rounds want something to carry over, and more than one batch to carry it in", () => {
  const config = { ...presetConfig("nano"), carry_rounds: true };
  expect(() => validateConfig({ ...config, max_lag: 1 })).toThrow("tail=wait max_lag=1 does not. Set tail=carry");
  expect(() => validateConfig({ ...config, tail: "carry", max_lag: 0 })).toThrow("tail=carry max_lag=0 does not");
  expect(validateConfig({ ...config, tail: "carry", max_lag: 1, loss_fn: "ppo" })).toEqual([]);
});

test("a recipe stands over the preset of any engine", () => {
  const dapo = presetConfig("dapo", "nano");
  expect(dapo).toMatchObject({
    model_name: "nano-coder",
    loss_scale: "per_token",
    fill_batch: true,
    overlong_buffer: 22,
  });
  expect(presetConfig("dapo")).toMatchObject({ model_name: "Qwen/Qwen3-8B", overlong_buffer: 4915, preset: "dapo" });
  expect(presetConfig("dr_grpo", "small")).toMatchObject({ loss_fn: "ppo", loss_scale: "constant", advantage: "mean" });
  for (const recipe of ["dapo", "dr_grpo"] as const)
    expect(validateConfig(TrainConfig.parse(presetConfig(recipe, "nano")))).toEqual([]);
  expect(() => validateConfig({ ...dapo, teacher: "other" })).toThrow(/teaches with every group/);
  expect(() => validateConfig({ ...dapo, overlong_buffer: 112 })).toThrow(/leaves no answer that costs nothing/);
});
