// The trainer as its callers see it: accumulation, adapters side by side, state that continues bit for bit, refusals.
import { afterAll, describe, expect, test } from "vitest";
import { randomWeights, tinyConfig } from "../../test/support/tiny-model.ts";
import { Random } from "../core/random.ts";
import type { AdapterWeights } from "./architecture.ts";
import type { AdamSettings, LoraSpec, LossTensor, TrainingBatch, TrainingDatum } from "./engine.ts";
import { initialAdapter } from "./lora.ts";
import { Trainer, type TrainerOptions } from "./trainer.ts";
import { LocalRunner } from "./training-runner.ts";

const lora: LoraSpec = { rank: 4, seed: 1, trainAttn: true, trainMlp: true, trainUnembed: true };
const adam: AdamSettings = {
  learningRate: 1e-2,
  beta1: 0.9,
  beta2: 0.95,
  epsilon: 1e-12,
  weightDecay: 0,
  gradClipNorm: 0,
};
const weights = randomWeights(tinyConfig, 1);
const runner = new LocalRunner(tinyConfig, weights, 1);
const newTrainer = (spec: LoraSpec = lora, options: TrainerOptions = {}): Trainer =>
  new Trainer(tinyConfig, spec, runner, options);

afterAll(() => runner.close());

/** Two groups of completions and one sequence by itself; of one completion, a twin with another advantage and one from another sampler. */
function sampleData(): TrainingDatum[] {
  const random = new Random("data");
  const ints = (count: number): number[] => Array.from({ length: count }, () => random.integer(tinyConfig.vocabSize));
  const prompts = [ints(20), ints(30)];
  const sequences = [
    ...[0, 0, 1, 0, 1, 1].map((prompt) => [...prompts[prompt]!, ...ints(2 + random.integer(8))]),
    ints(17),
  ];
  const data = sequences.map((sequence) => {
    const shape = [sequence.length - 1];
    const numbers = (): Float32Array => Float32Array.from({ length: shape[0]! }, () => random.normal());
    return {
      tokens: Int32Array.from(sequence.slice(0, -1)),
      lossInputs: {
        target_tokens: { data: Int32Array.from(sequence.slice(1)), shape },
        logprobs: { data: numbers().map((x) => x * 0.1 - 5.5), shape },
        advantages: { data: numbers().map((x, i) => (i < 15 ? 0 : x)), shape },
      },
    };
  });
  const change = (datum: TrainingDatum, name: string, by: number): TrainingDatum => {
    const { data: values, shape } = datum.lossInputs[name]!;
    return { ...datum, lossInputs: { ...datum.lossInputs, [name]: { data: values.map((x) => x - by), shape } } };
  };
  return [...data, change(data[0]!, "advantages", 0.7), change(data[0]!, "logprobs", 0.2)];
}

const batchOf = (
  data: TrainingDatum[],
  forwardOnly = false,
  loss: TrainingBatch["loss"] = "importance_sampling",
): TrainingBatch => ({
  data,
  loss,
  lossConfig: {},
  forwardOnly,
});
const flat = (adapter: AdapterWeights): number[] => [...adapter.values()].flatMap(({ data }) => [...data]);

describe("Trainer", () => {
  test.each(["importance_sampling", "ppo", "cispo", "dro"] as const)(
    "%s: gradients of several calls add up, and a step clears them",
    async (loss) => {
      const trainer = newTrainer();
      const data = sampleData();
      await trainer.forwardBackward(batchOf(data, false, loss));
      const whole = flat(trainer.accumulatedGradient());
      trainer.importState({ weights: trainer.weights() });
      for (const datum of data) await trainer.forwardBackward(batchOf([datum], false, loss));
      const parts = flat(trainer.accumulatedGradient());
      const scale = Math.max(...whole.map(Math.abs));
      expect(scale).toBeGreaterThan(0.1);
      expect(Math.max(...whole.map((x, i) => Math.abs(x - parts[i]!)))).toBeLessThan(1e-5 * scale);
      expect(trainer.optimStep(adam)["grad_norm"]).toBeCloseTo(Math.hypot(...whole), 3);
      expect(flat(trainer.accumulatedGradient()).every((x) => x === 0)).toBe(true);
    },
  );

  test("a position's log-probability does not depend on what else is in the batch", async () => {
    const trainer = newTrainer();
    const data = sampleData();
    const together = await trainer.forwardBackward(batchOf(data, true));
    for (const [index, datum] of data.entries()) {
      const alone = await trainer.forwardBackward(batchOf([datum], true));
      const pairs = [...alone.logprobs[0]!.data].map((x, i) => Math.abs(x - together.logprobs[index]!.data[i]!));
      expect(Math.max(...pairs)).toBeLessThan(1e-5);
    }
  });

  test("forward-only gives the same numbers and leaves the gradient alone", async () => {
    const trainer = newTrainer();
    const forward = await trainer.forwardBackward(batchOf(sampleData(), true));
    expect(flat(trainer.accumulatedGradient()).every((x) => x === 0)).toBe(true);
    const both = await trainer.forwardBackward(batchOf(sampleData()));
    expect(forward).toEqual(both);
    expect(flat(trainer.accumulatedGradient()).some((x) => x !== 0)).toBe(true);
  });

  test("splitting a batch into many small runs changes nothing but rounding", async () => {
    const small = newTrainer(lora, { tokensPerRun: 25, merge: false });
    const trainer = newTrainer();
    const [a, b] = [
      await small.forwardBackward(batchOf(sampleData())),
      await trainer.forwardBackward(batchOf(sampleData())),
    ];
    expect(a.metrics["loss:sum"]).toBeCloseTo(b.metrics["loss:sum"]!, 3);
    const [x, y] = [flat(small.accumulatedGradient()), flat(trainer.accumulatedGradient())];
    expect(Math.max(...x.map((value, i) => Math.abs(value - y[i]!)))).toBeLessThan(1e-4 * Math.max(...y.map(Math.abs)));
  });

  test("recomputing layers changes nothing", async () => {
    const thrifty = newTrainer(lora, { recompute: true });
    const trainer = newTrainer();
    const [a, b] = [
      await thrifty.forwardBackward(batchOf(sampleData())),
      await trainer.forwardBackward(batchOf(sampleData())),
    ];
    expect(a).toEqual(b);
    expect(thrifty.accumulatedGradient()).toEqual(trainer.accumulatedGradient());
  });

  test("cross entropy overfits a sentence", async () => {
    const trainer = newTrainer();
    const sequence = [..."the quick brown fox jumps over the lazy dog"].map((letter) => letter.charCodeAt(0));
    const shape = [sequence.length - 1];
    const datum: TrainingDatum = {
      tokens: Int32Array.from(sequence.slice(0, -1)),
      lossInputs: {
        target_tokens: { data: Int32Array.from(sequence.slice(1)), shape },
        weights: { data: new Float32Array(shape[0]!).fill(1), shape },
      },
    };
    let perToken = 0;
    for (let step = 0; step < 60; step++) {
      const output = await trainer.forwardBackward({
        data: [datum],
        loss: "cross_entropy",
        lossConfig: {},
        forwardOnly: false,
      });
      perToken = output.metrics["loss:sum"]! / shape[0]!;
      trainer.optimStep(adam);
    }
    expect(perToken).toBeLessThan(0.05);
  });

  test("the same calls give the same bits, also after exporting and importing in between", async () => {
    const steps = async (trainer: Trainer, count: number): Promise<void> => {
      for (let step = 0; step < count; step++) {
        await trainer.forwardBackward(batchOf(sampleData()));
        trainer.optimStep(adam);
      }
    };
    const [straight, first, second] = [newTrainer(), newTrainer(), newTrainer({ ...lora, seed: 9 })];
    await steps(straight, 4);
    await steps(first, 2);
    const state = first.exportState();
    await steps(first, 1); // what was exported is a copy
    second.importState(state);
    await steps(second, 2);
    expect(second.exportState()).toEqual(straight.exportState());
  });

  test("adapters of different ranks and layers share a base without touching each other", async () => {
    const specs = [
      lora,
      { ...lora, rank: 1, trainMlp: false },
      { ...lora, rank: 3, trainAttn: false, trainUnembed: false },
      { ...lora, rank: 2, trainAttn: false, trainMlp: false },
    ];
    const trainers = specs.map((spec) => newTrainer(spec));
    const fresh = trainers.map((trainer) => flat(trainer.weights()));
    for (const [i, trainer] of trainers.entries()) {
      await trainer.forwardBackward(batchOf(sampleData()));
      trainer.optimStep(adam);
      for (const [j, other] of trainers.entries()) {
        expect(flat(other.weights()).some((x, k) => x !== fresh[j]![k])).toBe(j <= i);
      }
    }
  });

  test("training lowers the importance-sampling loss, step by step", async () => {
    const trainer = newTrainer();
    const data = sampleData();
    const losses: number[] = [];
    for (let step = 0; step < 4; step++) {
      losses.push((await trainer.forwardBackward(batchOf(data))).metrics["loss:sum"]!);
      trainer.optimStep({ ...adam, learningRate: 1e-3 });
    }
    expect(losses).toEqual([...losses].sort((a, b) => b - a));
  });

  test("gspo's gradient is that of cross-entropy with the sequence's ratio times the advantage as weights", async () => {
    const [datum] = sampleData() as [TrainingDatum];
    const length = datum.tokens.length;
    const mask = { data: new Float32Array(length).fill(1, 2), shape: [length] };
    const probe = newTrainer();
    const { logprobs } = await probe.forwardBackward({ ...batchOf([datum]), forwardOnly: true });
    const lp = logprobs[0]!.data as Float32Array;
    const { advantages, target_tokens } = datum.lossInputs as { advantages: LossTensor; target_tokens: LossTensor };
    // Close to the policy, so that nothing is clipped.
    const sampled = { data: lp.map((value, index) => value + (index % 2 === 0 ? 0.05 : -0.02)), shape: [length] };
    const inputs = { target_tokens, advantages, logprobs: sampled, sequence_ratio_mask: mask };
    const gspo = newTrainer();
    await gspo.forwardBackward({
      data: [{ ...datum, lossInputs: inputs }],
      loss: "gspo",
      lossConfig: {},
      forwardOnly: false,
    });
    const drift = lp.slice(2).reduce((sum, value, index) => sum + value - sampled.data[index + 2]!, 0) / (length - 2);
    const weights = { data: Float32Array.from(advantages.data, (value) => Math.exp(drift) * value), shape: [length] };
    const twin = newTrainer();
    await twin.forwardBackward({
      data: [{ ...datum, lossInputs: { target_tokens, weights } }],
      loss: "cross_entropy",
      lossConfig: {},
      forwardOnly: false,
    });
    const [got, wanted] = [flat(gspo.accumulatedGradient()), flat(twin.accumulatedGradient())];
    const largest = Math.max(...wanted.map(Math.abs));
    expect(largest).toBeGreaterThan(0);
    for (const [index, value] of got.entries()) expect(Math.abs(value - wanted[index]!)).toBeLessThan(1e-4 * largest);
  });

  test("a loss that is not finite is refused, and the gradient stays as it was", async () => {
    const trainer = newTrainer();
    const [datum] = sampleData() as [TrainingDatum];
    datum.lossInputs["logprobs"]!.data.fill(-1e4); // exp(lp - q) overflows
    datum.lossInputs["advantages"]!.data.fill(1);
    await expect(trainer.forwardBackward(batchOf([datum]))).rejects.toMatchObject({
      code: "engine/non-finite-loss",
    });
    expect(flat(trainer.accumulatedGradient()).every((x) => x === 0)).toBe(true);
  });

  test("a gradient that is not finite is refused and cleared, and the weights stay", async () => {
    const trainer = newTrainer();
    const [{ tokens, lossInputs }] = sampleData() as [TrainingDatum];
    const weights = { data: new Float32Array(tokens.length).fill(2e37), shape: [tokens.length] };
    const datum = { tokens, lossInputs: { target_tokens: lossInputs["target_tokens"]!, weights } };
    await trainer.forwardBackward({ ...batchOf([datum]), loss: "cross_entropy" });
    const before = flat(trainer.weights());
    expect(() => trainer.optimStep(adam)).toThrow(expect.objectContaining({ code: "engine/non-finite-gradient" }));
    expect(flat(trainer.weights())).toEqual(before);
    expect(trainer.optimStep(adam)["grad_norm"]).toBe(0);
  });
});

describe("initialAdapter", () => {
  test("A is uniform in ±1/√in, B is zero, and the seed decides", () => {
    const adapter = initialAdapter(tinyConfig, lora);
    const a = adapter.get("model.layers.0.self_attn.q_proj.lora_A.weight")!;
    const bound = 1 / Math.sqrt(tinyConfig.hiddenSize);
    expect(a.shape).toEqual([4, tinyConfig.hiddenSize]);
    expect(Math.max(...a.data.map(Math.abs))).toBeLessThanOrEqual(bound);
    expect(Math.hypot(...a.data) / Math.sqrt(a.data.length)).toBeCloseTo(bound / Math.sqrt(3), 1);
    expect(adapter.get("lm_head.lora_B.weight")).toEqual({
      data: new Float32Array(tinyConfig.vocabSize * 4),
      shape: [264, 4],
    });
    expect(initialAdapter(tinyConfig, { ...lora, trainMlp: false }).get("lm_head.lora_A.weight")).toEqual(
      adapter.get("lm_head.lora_A.weight"),
    );
    expect(initialAdapter(tinyConfig, { ...lora, seed: 2 }).get("lm_head.lora_A.weight")).not.toEqual(
      adapter.get("lm_head.lora_A.weight"),
    );
  });
});

describe("what is refused", () => {
  const shape = [3];
  const good = (): TrainingDatum => ({
    tokens: Int32Array.of(1, 2, 3),
    lossInputs: {
      target_tokens: { data: Int32Array.of(2, 3, 4), shape },
      logprobs: { data: Float32Array.of(-1, -1, -1), shape },
      advantages: { data: Float32Array.of(0, 1, 1), shape },
    },
  });

  test("sequences that would not fit into memory", async () => {
    const small = newTrainer(lora, { memoryLimit: 2 ** 20 });
    const data = [good(), { ...good(), tokens: new Int32Array(500) }];
    const long = { data: new Float32Array(500), shape: [500] };
    data[1]!.lossInputs = {
      target_tokens: { data: new Int32Array(500), shape: [500] },
      logprobs: long,
      advantages: long,
    };
    await expect(small.forwardBackward(batchOf(data))).rejects.toMatchObject({ code: "engine/out-of-memory" });
    expect((await small.forwardBackward(batchOf([good()]))).metrics["loss:sum"]).toBeLessThan(0);
  });
});
