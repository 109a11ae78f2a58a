// The sampler against PyTorch and transformers.
import { describe, expect, test } from "vitest";
import { goldenModels, readGolden } from "../../test/support/golden-engine.ts";
import { BaseModel } from "./base-model.ts";
import { defaultSamplerLimits, type RunnableRequest, Sampler } from "./sampler.ts";

const greedy = { maxTokens: 200, seed: 0, temperature: 0, topK: -1, topP: 1, stopTokens: [] };

describe.each(goldenModels)("%s", (name) => {
  const golden = readGolden(name);

  async function sampleAll(requests: readonly RunnableRequest[]) {
    const base = new BaseModel(name, golden.dir, 1);
    const sampler = new Sampler(base.config, await base.snapshot(golden.adapter, golden.lora), defaultSamplerLimits);
    const running = requests.map((request) => sampler.submit(request));
    while (sampler.busy) await sampler.advance();
    const outputs = await Promise.all(running.map(({ result }) => result));
    await base.close();
    return outputs;
  }

  test("200 greedy tokens are those of transformers' generate, alone and with siblings", async () => {
    const prompt = Int32Array.from(golden.facts.greedy.prompt);
    const request = { prompt, settings: greedy, promptLogprobs: false, topkPromptLogprobs: 0 };
    const [lone, shared] = await sampleAll([
      { ...request, numSamples: 1 },
      { ...request, numSamples: 3 },
    ]);
    for (const { tokens } of [...lone!.sequences, ...shared!.sequences]) {
      expect([...tokens]).toEqual(golden.facts.greedy.tokens);
    }
  });

  test("log-probabilities over the whole vocabulary follow from PyTorch's logits within 1e-4", async () => {
    const vocabSize = golden.tensor("logits.0").shape[1]!;
    const outputs = await sampleAll(
      golden.facts.sequences.map((sequence) => ({
        prompt: Int32Array.from(sequence),
        numSamples: 1,
        settings: { ...greedy, maxTokens: 1 },
        promptLogprobs: true,
        topkPromptLogprobs: vocabSize,
      })),
    );
    let worst = 0;
    for (const [index, sequence] of golden.facts.sequences.entries()) {
      const logits = golden.tensor(`logits.${index}`).data;
      for (let position = 0; position < sequence.length - 1; position++) {
        const row = logits.subarray(position * vocabSize, (position + 1) * vocabSize);
        const top = Math.max(...row);
        const norm = top + Math.log(row.reduce((total, logit) => total + Math.exp(logit - top), 0));
        const found = outputs[index]!.topkPromptLogprobs![position + 1]!;
        expect(found).toHaveLength(vocabSize);
        for (const [token, logprob] of found) worst = Math.max(worst, Math.abs(logprob - (row[token]! - norm)));
        expect(outputs[index]!.promptLogprobs![position + 1]).toBe(
          found.find(([token]) => token === sequence[position + 1])![1],
        );
      }
      expect(outputs[index]!.promptLogprobs![0]).toBeNaN();
      expect(outputs[index]!.topkPromptLogprobs![0]).toBeNull();
    }
    expect(worst).toBeLessThan(1e-4);
  });
});
