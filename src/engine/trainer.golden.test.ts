// The trainer against PyTorch: log-probabilities, losses, gradients and Adam steps of tiny Qwen3 models, from float64 autograd.
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { loadAdapter } from "./checkpoint.ts";
import type { AdamSettings, LoraSpec, LossName, TrainingBatch, TrainingDatum } from "./engine.ts";
import { readConfig, readWeights } from "./hf-folder.ts";
import type { AdapterWeights } from "./model-types.ts";
import { SafetensorsFile } from "./safetensors.ts";
import { Trainer } from "./trainer.ts";

const golden = fileURLToPath(new URL("../../test/golden/engine/", import.meta.url));

interface Reference {
  rank: number;
  targets: string[];
  sequences: number[][];
  losses: Record<string, { config: Record<string, number>; loss_sum: number }>;
  adam: {
    steps: number;
    losses: LossName[];
    variants: Record<string, Record<string, number> & { grad_norms: number[] }>;
  };
}

describe.each(readdirSync(golden).filter((name) => existsSync(join(golden, name, "reference.json"))))("%s", (name) => {
  const dir = join(golden, name);
  const reference = JSON.parse(readFileSync(join(dir, "reference.json"), "utf8")) as Reference;
  const file = new SafetensorsFile(join(dir, "reference.safetensors"));
  const config = readConfig(dir);
  const spec: LoraSpec = {
    rank: reference.rank,
    seed: 0,
    trainAttn: reference.targets.includes("attn"),
    trainMlp: reference.targets.includes("mlp"),
    trainUnembed: reference.targets.includes("unembed"),
  };
  let trainer: Trainer;
  let start: AdapterWeights;

  beforeAll(() => {
    trainer = new Trainer(config, readWeights(dir, config), { threads: 1 });
    trainer.createAdapter("a", spec);
    const shapes = new Map([...trainer.adapterWeights("a")].map(([key, { shape }]) => [key, shape]));
    start = loadAdapter(dir, shapes);
  });
  afterAll(async () => {
    file.close();
    await trainer.close();
  });

  function batchOf(loss: LossName, settings: Record<string, number>): TrainingBatch {
    const inputs = loss === "cross_entropy" ? ["weights"] : ["logprobs", "advantages"];
    const data = reference.sequences.map((sequence, index): TrainingDatum => {
      const shape = [sequence.length - 1];
      const floats = inputs.map((key) => [key, { data: file.readFloat32(`data.${key}.${index}`), shape }] as const);
      const targets = { data: Int32Array.from(sequence.slice(1)), shape };
      return {
        tokens: Int32Array.from(sequence.slice(0, -1)),
        lossInputs: { target_tokens: targets, ...Object.fromEntries(floats) },
      };
    });
    return { data, loss, lossConfig: settings, forwardOnly: false };
  }

  function softBatch(): TrainingBatch {
    const data = reference.sequences.map((sequence, index): TrainingDatum => {
      const shape = [sequence.length - 1, 3];
      const targets = Int32Array.from(file.readFloat32(`soft.targets.${index}`));
      const weights = { data: file.readFloat32(`soft.weights.${index}`), shape };
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
    trainer.importState("a", { weights: start });
    const output = await trainer.forwardBackward("a", batch);
    return {
      gradients: trainer.accumulatedGradient("a"),
      loss: output.metrics["loss:sum"]!,
      logprobs: output.logprobs.map(({ data }) => data as Float32Array),
    };
  }

  test.each(Object.keys(reference.losses))("%s: loss, log-probabilities and gradients", async (loss) => {
    const { config: settings, loss_sum } = reference.losses[loss]!;
    const soft = loss === "cross_entropy_soft";
    const {
      gradients,
      loss: sum,
      logprobs,
    } = await gradientOf(soft ? softBatch() : batchOf(loss as LossName, settings));
    expect(Math.abs(sum - loss_sum)).toBeLessThan(1e-4 * (1 + Math.abs(loss_sum)));
    if (!soft) {
      for (const [index, values] of logprobs.entries()) {
        expect(largestDifference(values, file.readFloat32(`logprobs.${index}`))).toBeLessThan(1e-4);
      }
    }
    for (const [key, { data }] of gradients) {
      expect(relativeError(data, file.readFloat32(`grad.${loss}.base_model.model.${key}`)), key).toBeLessThan(1e-4);
    }
  });

  test.each(Object.keys(reference.adam.variants))("Adam, %s: 20 steps", async (variant) => {
    const { grad_norms, ...settings } = reference.adam.variants[variant]!;
    trainer.importState("a", { weights: start });
    for (let step = 0; step < reference.adam.steps; step++) {
      await trainer.forwardBackward("a", batchOf(reference.adam.losses[step % 2]!, {}));
      const metrics = trainer.optimStep("a", adamOf(settings));
      expect(Math.abs(metrics["grad_norm"]! / grad_norms[step]! - 1)).toBeLessThan(1e-3);
    }
    for (const [key, { data }] of trainer.adapterWeights("a")) {
      expect(relativeError(data, file.readFloat32(`adam.${variant}.base_model.model.${key}`)), key).toBeLessThan(1e-4);
    }
  });
});

function adamOf(settings: Record<string, number>): AdamSettings {
  return {
    learningRate: settings["learning_rate"]!,
    beta1: settings["beta1"]!,
    beta2: settings["beta2"]!,
    epsilon: settings["epsilon"]!,
    weightDecay: settings["weight_decay"]!,
    gradClipNorm: settings["grad_clip_norm"]!,
  };
}

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
