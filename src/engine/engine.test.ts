// The embedded engine through its interface, on a tiny random model.
import { cpSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { foldersInMemory } from "../../test/support/folders.ts";
import { writeTinyModel } from "../../test/support/tiny-model.ts";
import { Random } from "../core/random.ts";
import type { AdamSettings, Engine, SampleOutput, SampleRequest, SampleSettings, TrainingBatch } from "./engine.ts";
import { createEmbeddedEngine } from "./index.ts";

const folder = foldersInMemory();
const adam: AdamSettings = {
  learningRate: 0.01,
  beta1: 0.9,
  beta2: 0.95,
  epsilon: 1e-12,
  weightDecay: 0,
  gradClipNorm: 0,
};
const lora = { rank: 4, seed: 3, trainAttn: true, trainMlp: true, trainUnembed: true };
const spec = { baseModel: "tiny", lora };
const settings: SampleSettings = { maxTokens: 12, seed: 1, temperature: 1, topK: -1, topP: 1, stopTokens: [] };

let modelDir: string;
let engine: Engine;
let counter = 0;
const freshId = (): string => `id-${counter++}`;

function randomTokens(length: number, seed: number): Int32Array {
  const random = new Random("tokens", seed);
  return Int32Array.from({ length }, () => random.integer(264));
}

function request(prompt: Int32Array, overrides: Partial<SampleSettings> = {}, rest: Partial<SampleRequest> = {}) {
  const merged = { ...settings, ...overrides };
  return { prompt, numSamples: 1, settings: merged, promptLogprobs: false, topkPromptLogprobs: 0, ...rest };
}

/** Cross-entropy on whole sequences. */
function batchOf(sequences: readonly Int32Array[], forwardOnly = false): TrainingBatch {
  return {
    loss: "cross_entropy",
    lossConfig: {},
    forwardOnly,
    data: sequences.map((sequence) => {
      const length = sequence.length - 1;
      return {
        tokens: sequence.slice(0, -1),
        lossInputs: {
          target_tokens: { data: sequence.slice(1), shape: [length] },
          weights: { data: new Float32Array(length).fill(1), shape: [length] },
        },
      };
    }),
  };
}

async function trainedModel(on: Engine, steps = 3): Promise<string> {
  const id = freshId();
  await on.createModel(id, spec);
  for (let step = 0; step < steps; step++) await trainStep(on, id, step);
  return id;
}

async function trainStep(on: Engine, id: string, step: number) {
  const output = await on.forwardBackward(id, batchOf([randomTokens(20, step), randomTokens(33, step + 100)]));
  await on.optimStep(id, adam);
  return output;
}

async function liveSampler(on: Engine, modelId: string): Promise<string> {
  const id = freshId();
  await on.createSampler(id, { kind: "live", modelId });
  return id;
}

const plain = (output: SampleOutput) =>
  output.sequences.map(({ tokens, logprobs, stopReason }) => ({
    tokens: [...tokens],
    logprobs: [...logprobs],
    stopReason,
  }));

beforeAll(async () => {
  modelDir = join(folder(), "tiny");
  writeTinyModel(modelDir);
  engine = await createEmbeddedEngine({ models: [{ name: "tiny", dir: modelDir }], threads: 1 });
});
afterAll(() => engine.close());

test("says what it serves", () => {
  expect(engine.models).toEqual([{ name: "tiny", maxContextLength: 512, vocabSize: 264, tokenizerId: modelDir }]);
});

describe("sampling", () => {
  test("log-probabilities are those of a training forward pass, at any batch composition and length", async () => {
    const model = await trainedModel(engine);
    const sampler = await liveSampler(engine, model);
    const lengths = [1, 2, 5, 63, 64, 65, 130, 200];
    const outputs = await Promise.all(
      lengths.map((length, index) =>
        engine.sample(
          sampler,
          request(
            randomTokens(length, index),
            { maxTokens: 3 + 25 * (index % 4), seed: index },
            { numSamples: 1 + (index % 3) },
          ),
        ),
      ),
    );
    const sequences = outputs.flatMap(({ sequences: found }, index) =>
      found.map(({ tokens }) => Int32Array.from([...randomTokens(lengths[index]!, index), ...tokens])),
    );
    const { logprobs } = await engine.forwardBackward(model, batchOf(sequences, true));
    let [worst, at] = [0, 0];
    for (const [index, { sequences: found }] of outputs.entries()) {
      for (const sample of found) {
        const learner = logprobs[at++]!.data.slice(lengths[index]! - 1);
        expect(learner).toHaveLength(sample.logprobs.length);
        for (const [t, value] of sample.logprobs.entries()) worst = Math.max(worst, Math.abs(value - learner[t]!));
      }
    }
    expect(worst).toBeLessThan(1e-4);
  });

  test("a seed gives the same tokens and the same bits, alone and in a crowd", async () => {
    const sampler = await liveSampler(engine, await trainedModel(engine));
    const asked = [
      request(randomTokens(70, 1), { maxTokens: 280 }, { numSamples: 3 }),
      request(randomTokens(9, 2), { maxTokens: 280, topK: 20, temperature: 0.7 }),
      request(randomTokens(1, 3), { maxTokens: 40, topP: 0.8 }),
    ];
    const alone = [];
    for (const one of asked) alone.push(plain(await engine.sample(sampler, one)));
    const other = await liveSampler(engine, await trainedModel(engine)); // the same weights, nothing cached
    const crowd = Array.from({ length: 12 }, (_, index) =>
      engine.sample(
        other,
        request(
          randomTokens(3 + 17 * index, index + 50),
          { maxTokens: index === 5 ? 400 : 5 + 7 * index },
          { numSamples: 1 + (index % 4) },
        ),
      ),
    );
    const together = await Promise.all(asked.map((one) => engine.sample(other, one)));
    await Promise.all(crowd);
    expect(together.map(plain)).toEqual(alone);
  });

  test("the next turn of a conversation is computed behind the blocks of its last prompt, and has the same bits", async () => {
    const [cold, warm] = [
      await liveSampler(engine, await trainedModel(engine)),
      await liveSampler(engine, await trainedModel(engine)),
    ];
    const prompt = randomTokens(150, 4);
    const next = Int32Array.of(...prompt, ...randomTokens(40, 5));
    const alone = await engine.sample(cold, request(next));
    await engine.sample(warm, request(prompt));
    const behind = await engine.sample(warm, request(next));
    expect([alone.cachedTokens, behind.cachedTokens]).toEqual([0, 128]);
    expect(plain(behind)).toEqual(plain(alone));
  });

  test("a batch of three rows and no room for prompts give the same bits, only later", async () => {
    const limits = { maxBatchRows: 3, promptCacheBytes: 0 };
    const narrow = await createEmbeddedEngine({ models: [{ name: "tiny", dir: modelDir }], threads: 1, limits });
    try {
      const asked = Array.from({ length: 4 }, (_, index) =>
        request(
          randomTokens(30 + 50 * (index % 2), index % 2),
          { maxTokens: 6 + index, seed: index },
          { numSamples: 1 + index },
        ),
      );
      const all = async (on: Engine) => {
        const sampler = freshId();
        await on.createSampler(sampler, { kind: "base", baseModel: "tiny" });
        return (await Promise.all(asked.map((one) => on.sample(sampler, one)))).map(plain);
      };
      expect(await all(narrow)).toEqual(await all(engine));
    } finally {
      await narrow.close();
    }
  });

  test("samples that say the same are computed once, with the bits that each has alone", async () => {
    const limits = { maxBatchRows: 1, promptCacheBytes: 0 }; // one sample at a time: nothing to share
    const single = await createEmbeddedEngine({ models: [{ name: "tiny", dir: modelDir }], threads: 1, limits });
    try {
      const stopTokens = Array.from({ length: 9 }, (_, index) => 20 * index);
      const asked = [0.02, 0.1, 0.3].map((temperature, index) =>
        request(randomTokens(40 + 30 * index, index), { maxTokens: 70, temperature, stopTokens }, { numSamples: 10 }),
      );
      const all = async (on: Engine) => {
        const sampler = await liveSampler(on, await trainedModel(on));
        return (await Promise.all(asked.map((one) => on.sample(sampler, one)))).map(plain);
      };
      const together = await all(engine);
      expect(together).toEqual(await all(single));
      // Some go on together for long, and some part: else this would show nothing.
      const starts = (length: number) =>
        together.map((samples) => new Set(samples.map(({ tokens }) => tokens.slice(0, length).join())).size);
      expect(Math.min(...starts(10))).toBeLessThan(6);
      expect(Math.max(...starts(70))).toBeGreaterThan(6);
    } finally {
      await single.close();
    }
  });

  test("a small request of one sampler does not wait for the hundreds of another", async () => {
    const [crowded, free] = [freshId(), freshId()];
    for (const id of [crowded, free]) await engine.createSampler(id, { kind: "base", baseModel: "tiny" });
    let made = 0;
    const shouldStop = () => {
      made++;
      return false;
    };
    const crowd = Array.from({ length: 96 }, (_, index) =>
      engine.sample(crowded, {
        ...request(randomTokens(400, index)),
        settings: { ...settings, maxTokens: 60, shouldStop },
      }),
    );
    await engine.sample(free, request(randomTokens(8, 1), { maxTokens: 60 }));
    const madeMeanwhile = made;
    await Promise.all(crowd);
    // Were each to have a turn in turn, most of the crowd's tokens would be there by now.
    expect(madeMeanwhile).toBeLessThan(made / 4);
  });

  test("the samples of one request differ from each other, and requests without a seed too", async () => {
    const sampler = freshId();
    await engine.createSampler(sampler, { kind: "base", baseModel: "tiny" });
    const { sequences } = await engine.sample(sampler, request(randomTokens(5, 1), {}, { numSamples: 4 }));
    expect(new Set(sequences.map(({ tokens }) => tokens.join())).size).toBe(4);
    const free = request(randomTokens(5, 1), { seed: undefined });
    const [a, b] = [await engine.sample(sampler, free), await engine.sample(sampler, free)];
    expect(plain(a)).not.toEqual(plain(b));
  });

  test("ends at a stop token, at max_tokens and at the end of the context", async () => {
    const sampler = freshId();
    await engine.createSampler(sampler, { kind: "base", baseModel: "tiny" });
    const prompt = randomTokens(6, 4);
    const [whole] = plain(await engine.sample(sampler, request(prompt)));
    expect(whole).toMatchObject({ stopReason: "length" });
    expect(whole!.tokens).toHaveLength(12);
    const stop = whole!.tokens[5]!;
    const [cut] = plain(await engine.sample(sampler, request(prompt, { stopTokens: [stop] })));
    expect(cut!.stopReason).toBe("stop");
    expect(cut!.tokens).toEqual(whole!.tokens.slice(0, whole!.tokens.indexOf(stop) + 1));
    const [rest] = plain(await engine.sample(sampler, request(randomTokens(505, 5), { maxTokens: undefined })));
    expect(rest).toMatchObject({ stopReason: "length" });
    expect(rest!.tokens).toHaveLength(7);
  });

  test("the caller's own stop cuts exactly where it says, however late it is heard", async () => {
    const sampler = freshId();
    await engine.createSampler(sampler, { kind: "base", baseModel: "tiny" });
    const asked = request(randomTokens(6, 4), { maxTokens: 50 }, { numSamples: 2 });
    const whole = plain(await engine.sample(sampler, asked));
    const stopping = { ...asked.settings, shouldStop: (tokens: readonly number[]) => tokens.length === 9 };
    const cut = await engine.sample(sampler, { ...asked, settings: stopping });
    expect(plain(cut)).toEqual(
      whole.map(({ tokens, logprobs }) => ({
        tokens: tokens.slice(0, 9),
        logprobs: logprobs.slice(0, 9),
        stopReason: "stop",
      })),
    );
    const failing = {
      ...asked.settings,
      shouldStop: () => {
        throw new Error("the caller's own");
      },
    };
    await expect(engine.sample(sampler, { ...asked, settings: failing })).rejects.toThrow("the caller's own");
  });

  test("an aborted request rejects with the reason, and its siblings go on", async () => {
    const sampler = freshId();
    await engine.createSampler(sampler, { kind: "base", baseModel: "tiny" });
    const controller = new AbortController();
    const long = request(randomTokens(6, 1), { maxTokens: 500 });
    const aborted = engine.sample(sampler, long, { signal: controller.signal });
    const kept = engine.sample(sampler, request(randomTokens(8, 2)));
    controller.abort(new Error("enough"));
    await expect(aborted).rejects.toThrow("enough");
    expect((await kept).sequences[0]!.tokens).toHaveLength(12);
    await expect(engine.sample(sampler, long, { signal: AbortSignal.abort(new Error("late")) })).rejects.toThrow(
      "late",
    );
  });

  test("prompt log-probabilities are the same whether or not parts of the prompt were seen before", async () => {
    const sampler = freshId();
    await engine.createSampler(sampler, { kind: "base", baseModel: "tiny" });
    const prompt = randomTokens(150, 8);
    const scored = () => engine.sample(sampler, request(prompt, {}, { promptLogprobs: true, topkPromptLogprobs: 2 }));
    const first = await scored();
    await engine.sample(sampler, request(Int32Array.from([...prompt.slice(0, 128), 1, 2, 3])));
    const second = await scored();
    expect(second).toEqual(first);
    expect(first.promptLogprobs).toHaveLength(150);
    expect(first.topkPromptLogprobs![0]).toBeNull();
    expect(first.topkPromptLogprobs![149]).toHaveLength(2);
  });
});

describe("snapshots and checkpoints", () => {
  test("training on never changes what an older sampler returns", async () => {
    const model = await trainedModel(engine);
    const sampler = await liveSampler(engine, model);
    const asked = request(randomTokens(10, 1), {}, { promptLogprobs: true });
    const before = await engine.sample(sampler, asked);
    for (let step = 3; step < 6; step++) await trainStep(engine, model, step);
    expect(await engine.sample(sampler, asked)).toEqual(before);
    const newer = await engine.sample(await liveSampler(engine, model), asked);
    expect(newer.promptLogprobs).not.toEqual(before.promptLogprobs);
  });

  test("a checkpoint loaded by another engine continues bit for bit, and samples the same", async () => {
    const model = await trainedModel(engine);
    const [state, forSampler] = [folder(), folder()];
    await engine.saveState(model, state);
    await engine.saveForSampler(model, forSampler);
    const copied = join(folder(), "copy");
    cpSync(state, copied, { recursive: true });

    const other = await createEmbeddedEngine({ models: [{ name: "tiny", dir: modelDir }], threads: 2 });
    try {
      await other.createModel("resumed", spec);
      await other.loadState("resumed", copied, { optimizer: true });
      const [here, there] = [await trainStep(engine, model, 7), await trainStep(other, "resumed", 7)];
      expect(there).toEqual(here);
      const [next, again] = [await trainStep(engine, model, 8), await trainStep(other, "resumed", 8)];
      expect(again).toEqual(next);
      await other.createSampler("saved", { kind: "saved", baseModel: "tiny", dir: forSampler });
      const fromState = await trainedModel(engine);
      const asked = request(randomTokens(10, 1), {}, { promptLogprobs: true });
      expect(await other.sample("saved", asked)).toEqual(
        await engine.sample(await liveSampler(engine, fromState), asked),
      );
    } finally {
      await other.close();
    }
  });

  test("loading without the optimizer starts Adam afresh", async () => {
    const model = await trainedModel(engine);
    const dir = folder();
    await engine.saveState(model, dir);
    const fresh = freshId();
    await engine.createModel(fresh, spec);
    await engine.loadState(fresh, dir, { optimizer: false });
    await trainStep(engine, model, 7);
    await trainStep(engine, fresh, 7);
    const probe = batchOf([randomTokens(20, 1)], true);
    expect(await engine.forwardBackward(fresh, probe)).not.toEqual(await engine.forwardBackward(model, probe));
  });

  test("a checkpoint of another rank is refused, and the model is as it was", async () => {
    const dir = folder();
    const model = await trainedModel(engine);
    await engine.saveState(model, dir);
    const other = freshId();
    await engine.createModel(other, { ...spec, lora: { ...lora, rank: 8 } });
    await expect(engine.loadState(other, dir, { optimizer: true })).rejects.toMatchObject({
      code: "engine/bad-checkpoint",
    });
    await expect(trainStep(engine, other, 1)).resolves.toBeDefined();
  });
});

describe("what is wrong is named, and the engine goes on", () => {
  test("models and samplers that do not exist, or do already", async () => {
    await expect(engine.createModel("x", { ...spec, baseModel: "gpt" })).rejects.toMatchObject({
      code: "engine/unknown-model",
    });
    await expect(trainStep(engine, "nobody", 1)).rejects.toMatchObject({ code: "engine/unknown-adapter" });
    const taken = await trainedModel(engine, 0);
    await expect(engine.createModel(taken, spec)).rejects.toMatchObject({ code: "engine/adapter-exists" });
    await expect(engine.sample("nobody", request(Int32Array.of(1)))).rejects.toMatchObject({
      code: "engine/unknown-sampler",
    });
  });

  test("a released sampler finishes what it has and takes nothing new", async () => {
    const sampler = freshId();
    await engine.createSampler(sampler, { kind: "base", baseModel: "tiny" });
    const running = engine.sample(sampler, request(randomTokens(5, 1), { maxTokens: 30 }));
    await engine.releaseSampler(sampler);
    expect((await running).sequences[0]!.tokens).toHaveLength(30);
    await expect(engine.sample(sampler, request(Int32Array.of(1)))).rejects.toMatchObject({
      code: "engine/unknown-sampler",
    });
  });

  test("a folder that is no model fails the start with its own error", async () => {
    const start = createEmbeddedEngine({ models: [{ name: "x", dir: folder() }] });
    await expect(start).rejects.toMatchObject({ code: "engine/missing-file" });
  });

  test("weights that have become infinite are reported instead of sampled", async () => {
    const model = freshId();
    await engine.createModel(model, spec);
    await engine.forwardBackward(model, batchOf([randomTokens(20, 1)]));
    await engine.optimStep(model, { ...adam, learningRate: 1e30 });
    const sampler = await liveSampler(engine, model);
    const sampled = engine.sample(sampler, request(randomTokens(5, 1)));
    await expect(sampled).rejects.toMatchObject({ code: "engine/non-finite-logits" });
    expect(await trainedModel(engine)).toBeDefined();
  });
});

test("the serving thread stays free while the engine computes", async () => {
  const model = await trainedModel(engine);
  let turns = 0;
  const ticking = setInterval(() => turns++, 1);
  await engine.forwardBackward(model, batchOf(Array.from({ length: 24 }, (_, index) => randomTokens(300, index))));
  clearInterval(ticking);
  expect(turns).toBeGreaterThan(3);
});

test("sampling goes on while another model trains", async () => {
  const model = await trainedModel(engine);
  const sampler = await liveSampler(engine, model);
  const order: string[] = [];
  const work = [
    engine.sample(sampler, request(randomTokens(8, 1), { maxTokens: 20 })).then(() => order.push("sample")),
    ...Array.from({ length: 12 }, (_, step) => trainStep(engine, model, step).then(() => order.push("train"))),
  ];
  await Promise.all(work);
  expect(order.indexOf("sample")).toBeLessThan(order.length - 1);
});

test("any number of threads computes the same bits: samples, gradients of many runs, and what is sampled after them", async () => {
  const many = Array.from({ length: 24 }, (_, index) => randomTokens(150 + index, 300 + index)); // several runs
  const all = async (threads: number) => {
    const on = await createEmbeddedEngine({ models: [{ name: "tiny", dir: modelDir }], threads });
    try {
      await on.createModel("m", spec);
      const outputs = [];
      for (let step = 0; step < 2; step++) {
        outputs.push(await on.forwardBackward("m", batchOf(many)), await on.optimStep("m", adam));
      }
      await on.createSampler("s", { kind: "live", modelId: "m" });
      const asked = Array.from({ length: 9 }, (_, index) =>
        request(
          randomTokens(20 + 9 * index, 40 + index),
          { maxTokens: 6 + 5 * index, seed: index },
          { numSamples: 1 + (index % 3) },
        ),
      );
      const samples = await Promise.all(asked.map((one) => on.sample("s", one)));
      return { outputs, samples: samples.map(plain) };
    } finally {
      await on.close();
    }
  };
  expect(await all(3)).toEqual(await all(1));
});

test("close ends the worker; calls afterwards fail clearly", async () => {
  const short = await createEmbeddedEngine({ models: [{ name: "tiny", dir: modelDir }], threads: 1 });
  await short.close();
  await expect(short.createModel("x", spec)).rejects.toMatchObject({ code: "engine/worker-died" });
  await short.close();
});
