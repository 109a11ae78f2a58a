// The trainer against PyTorch: log-probabilities, losses, gradients and Adam steps of tiny models of every architecture, from float64 autograd.

import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { goldenModels, readGolden } from "../../test/support/golden-engine.ts";
import type { LossName } from "../protocol/losses.ts";
import type { AdapterWeights } from "./architecture.ts";
import type { TrainingBatch, TrainingDatum } from "./engine.ts";
import { readConfig, readWeights } from "./hf-folder.ts";
import { Trainer } from "./trainer.ts";
import { LocalRunner } from "./training-runner.ts";

describe.each(goldenModels)("%s", (name) => {
  const { dir, facts, lora, adapter, tensor, adam } = readGolden(name);
  let runner: LocalRunner;
  let trainer: Trainer;

  beforeAll(() => {
    const config = readConfig(dir);
    runner = new LocalRunner(config, readWeights(dir, config), 1);
    trainer = new Trainer(config, lora, runner);
  });
  afterAll(() => runner.close());

  function batchOf(loss: LossName, settings: Record<string, number>): TrainingBatch {
    const inputs = loss === "cross_entropy" ? ["weights"] : ["logprobs", "advantages"];
    const data = facts.sequences.map((sequence, index): TrainingDatum => {
      const shape = [sequence.length - 1];
      const floats = inputs.map((key) => [key, { data: tensor(`data.${key}.${index}`).data, shape }] as const);
      const targets = { data: Int32Array.from(sequence.slice(1)), shape };
      return {
        tokens: Int32Array.from(sequence.slice(0, -1)),
        lossInputs: { target_tokens: targets, ...Object.fromEntries(floats) },
      };
    });
    return { data, loss, lossConfig: settings, forwardOnly: false };
  }

  function softBatch(): TrainingBatch {
    const data = facts.sequences.map((sequence, index): TrainingDatum => {
      const shape = [sequence.length - 1, 3];
      const targets = Int32Array.from(tensor(`soft.targets.${index}`).data);
      const weights = { data: tensor(`soft.weights.${index}`).data, shape };
      return {
        tokens: Int32Array.from(sequence.slice(0, -1)),
        lossInputs: { target_tokens: { data: targets, shape }, weights },
      };
    });
    return { data, loss: "cross_entropy", lossConfig: {}, forwardOnly: false };
  }

  async function gradientOf(
    batch: TrainingBatch,
  ): Promise<{ gradients: AdapterWeights; loss: number; logprobs: Float32Array[] }> {
    trainer.importState({ weights: adapter });
    const output = await trainer.forwardBackward(batch);
    return {
      gradients: trainer.accumulatedGradient(),
      loss: output.metrics["loss:sum"]!,
      logprobs: output.logprobs.map(({ data }) => data as Float32Array),
    };
  }

  test.each(Object.keys(facts.losses))("%s: loss, log-probabilities and gradients", async (loss) => {
    const { config: settings, loss_sum } = facts.losses[loss]!;
    const soft = loss === "cross_entropy_soft";
    const {
      gradients,
      loss: sum,
      logprobs,
    } = await gradientOf(soft ? softBatch() : batchOf(loss as LossName, settings));
    expect(Math.abs(sum - loss_sum)).toBeLessThan(1e-4 * (1 + Math.abs(loss_sum)));
    if (!soft) {
      for (const [index, values] of logprobs.entries()) {
        expect(largestDifference(values, tensor(`logprobs.${index}`).data)).toBeLessThan(1e-4);
      }
    }
    for (const [key, { data }] of gradients) {
      expect(relativeError(data, tensor(`grad.${loss}.base_model.model.${key}`).data), key).toBeLessThan(1e-4);
    }
  });

  test.each(Object.keys(facts.adam.variants))("Adam, %s: 20 steps", async (variant) => {
    const { grad_norms } = facts.adam.variants[variant]!;
    trainer.importState({ weights: adapter });
    for (let step = 0; step < facts.adam.steps; step++) {
      await trainer.forwardBackward(batchOf(facts.adam.losses[step % 2] as LossName, {}));
      const metrics = trainer.optimStep(adam(variant));
      expect(Math.abs(metrics["grad_norm"]! / grad_norms[step]! - 1)).toBeLessThan(1e-3);
    }
    for (const [key, { data }] of trainer.weights()) {
      expect(relativeError(data, tensor(`adam.${variant}.base_model.model.${key}`).data), key).toBeLessThan(1e-4);
    }
  });
});

/** The length of the difference against the length of the truth. */
function relativeError(actual: Float32Array, expected: Float32Array): number {
  const norm = (values: ArrayLike<number>): number => Math.sqrt(Array.from(values).reduce((sum, x) => sum + x * x, 0));
  expect(actual.length).toBe(expected.length);
  return norm(actual.map((x, i) => x - expected[i]!)) / (norm(expected) || 1);
}

function largestDifference(actual: Float32Array, expected: Float32Array): number {
  expect(actual.length).toBe(expected.length);
  return actual.reduce((most, x, i) => Math.max(most, Math.abs(x - expected[i]!)), 0);
}
