// Every architecture of the table: what the sampler says of a token is what the trainer says, alone and in company. That both are what
// transformers computes is seen on the vectors of test/golden/engine.
import { readdirSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { foldersInMemory } from "../../../test/support/folders.ts";
import { goldenModels, readGolden } from "../../../test/support/golden-engine.ts";
import { writeTinyModel } from "../../../test/support/tiny-model.ts";
import { Random } from "../../core/random.ts";
import type { SampleRequest } from "../engine.ts";
import { readConfig } from "../hf-folder.ts";
import { createEmbeddedEngine } from "../index.ts";
import { architectures } from "./index.ts";

const folder = foldersInMemory();

test("every architecture has a file here and vectors made with transformers", () => {
  const files = readdirSync(import.meta.dirname).filter((file) => !/index|test/.test(file));
  expect(architectures.map(({ modelType }) => `${modelType}.ts`).sort()).toEqual(files.sort());
  const proven = goldenModels.map((name) => readConfig(readGolden(name).dir).architecture.name);
  expect(new Set(proven)).toEqual(new Set(architectures.map(({ name }) => name)));
});

test.each(architectures)(
  "$name: sampler and trainer agree, and a seed gives the same bits in any company",
  async (architecture) => {
    const dir = join(folder(), "model");
    const { vocabSize } = writeTinyModel(dir, { architecture, seed: 4 });
    const engine = await createEmbeddedEngine({ models: [{ name: "tiny", dir }], threads: 1 });
    try {
      const lora = { rank: 4, seed: 3, trainAttn: true, trainMlp: true, trainUnembed: true };
      await engine.createModel("m", { baseModel: "tiny", lora });
      const random = new Random("prompts");
      const prompts = [5, 64, 90].map((length) => Int32Array.from({ length }, () => random.integer(vocabSize)));
      const batch = (sequences: readonly Int32Array[], forwardOnly: boolean) => ({
        loss: "cross_entropy" as const,
        lossConfig: {},
        forwardOnly,
        data: sequences.map((sequence) => {
          const shape = [sequence.length - 1];
          const weights = { data: new Float32Array(sequence.length - 1).fill(1), shape };
          const lossInputs = { target_tokens: { data: sequence.slice(1), shape }, weights };
          return { tokens: sequence.slice(0, -1), lossInputs };
        }),
      });
      // An adapter that has learned something.
      await engine.forwardBackward("m", batch(prompts, false));
      const adam = { learningRate: 0.01, beta1: 0.9, beta2: 0.95, epsilon: 1e-12, weightDecay: 0, gradClipNorm: 0 };
      await engine.optimStep("m", adam);
      await engine.createSampler("s", { kind: "live", modelId: "m" });
      const settings = { maxTokens: 30, seed: 1, temperature: 1, topK: -1, topP: 1, stopTokens: [] };
      const requests = prompts.map(
        (prompt, index): SampleRequest => ({
          prompt,
          numSamples: 1 + index,
          settings,
          promptLogprobs: false,
          topkPromptLogprobs: 0,
        }),
      );
      const together = await Promise.all(requests.map((one) => engine.sample("s", one)));
      await engine.createSampler("again", { kind: "live", modelId: "m" });
      for (const [index, request] of requests.entries())
        expect(await engine.sample("again", request)).toEqual(together[index]);

      const sampled = together.flatMap(({ sequences }, index) =>
        sequences.map((one) => ({ ...one, prompt: prompts[index]! })),
      );
      const whole = sampled.map(({ prompt, tokens }) => Int32Array.from([...prompt, ...tokens]));
      const { logprobs } = await engine.forwardBackward("m", batch(whole, true));
      const differences = sampled.flatMap(({ prompt, logprobs: own }, at) =>
        Array.from(own, (value, t) => Math.abs(value - logprobs[at]!.data[prompt.length - 1 + t]!)),
      );
      expect(differences).toHaveLength(30 * 6);
      expect(Math.max(...differences)).toBeLessThan(1e-5);
    } finally {
      await engine.close();
    }
  },
);
