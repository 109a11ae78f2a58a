import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, expect, test } from "vitest";
import { Random } from "../../core/random.ts";
import type { LossName } from "../../protocol/losses.ts";
import type { AdamSettings, TrainingBatch } from "../engine.ts";
import { argmax } from "../pick.ts";
import { largest } from "../scores.ts";
import { baseWeights, ClassBigram, weightCount } from "./class-bigram.ts";
import { parseDistribution } from "./distribution.ts";
import { SimulatedEngine, simulatedModelName } from "./engine.ts";
import { Learner } from "./learner.ts";

const adam: AdamSettings = {
  learningRate: 0.1,
  beta1: 0.9,
  beta2: 0.95,
  epsilon: 1e-12,
  weightDecay: 0,
  gradClipNorm: 0,
};
const spec = {
  baseModel: simulatedModelName,
  lora: { rank: 8, trainAttn: true, trainMlp: true, trainUnembed: true },
};
const sampling = { seed: 7, temperature: 1, topK: -1, topP: 1, stopTokens: [] };
const folders: string[] = [];
afterEach(async () => {
  await Promise.all(folders.splice(0).map((folder) => rm(folder, { recursive: true, force: true })));
});

async function temporaryFolder(): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), "whetstone-simulated-"));
  folders.push(folder);
  return folder;
}

function batch(loss: LossName, random: Random, forwardOnly = false): TrainingBatch {
  const length = 12;
  const tokens = Int32Array.from({ length }, () => random.integer(512));
  const targets = Int32Array.from({ length }, () => random.integer(512));
  const floats = (draw: () => number) => ({ data: Float32Array.from({ length }, draw), shape: [length] });
  const target_tokens = { data: targets, shape: [length] };
  const lossInputs =
    loss === "cross_entropy"
      ? { target_tokens, weights: floats(() => random.normal()) }
      : { target_tokens, logprobs: floats(() => -6 + random.normal()), advantages: floats(() => random.normal()) };
  return { data: [{ tokens, lossInputs }], loss, lossConfig: {}, forwardOnly };
}

test.each(["cross_entropy", "importance_sampling", "ppo", "dro"] as const)(
  "the gradient of %s agrees with finite differences of its loss",
  (loss) => {
    const base = baseWeights(3);
    const data = batch(loss, new Random("gradient", loss));
    const lossAt = (adapter: Float64Array) => {
      const learner = new Learner(base, 512);
      learner.adapter.set(adapter);
      learner.weightsChanged();
      return learner.forwardBackward({ ...data, forwardOnly: true }).metrics["loss:sum"]!;
    };
    // With beta1 = beta2 = 0 and a huge epsilon, one step moves the weights by gradient / epsilon.
    const learner = new Learner(base, 512);
    learner.forwardBackward(data);
    learner.optimStep({ ...adam, learningRate: 1, beta1: 0, beta2: 0, epsilon: 1e9 });
    const zero = new Float64Array(weightCount);
    for (let k = 0; k < weightCount; k += 7) {
      // A wide step: losses are sums of float32 logprobs.
      const step = 1e-2;
      const up = lossAt(zero.with(k, step));
      const down = lossAt(zero.with(k, -step));
      expect(-learner.adapter[k]! * 1e9).toBeCloseTo((up - down) / (2 * step), 1);
    }
  },
);

test("a distribution sums to one over the vocabulary", () => {
  const model = new ClassBigram(baseWeights(1), new Float64Array(weightCount), 500);
  let sum = 0;
  for (let token = 0; token < 500; token++) sum += Math.exp(model.logprob(17, token));
  expect(sum).toBeCloseTo(1, 12);
});

test("sampled logprobs are the learner's logprobs, and training lowers the loss", async () => {
  const engine = new SimulatedEngine({ seed: 1 });
  await engine.createModel("m", spec);
  await engine.createSampler("s", { kind: "live", modelId: "m" });
  const request = {
    prompt: Int32Array.of(1, 2, 3),
    numSamples: 2,
    settings: { ...sampling, maxTokens: 20 },
    promptLogprobs: true,
    topkPromptLogprobs: 3,
  };
  const output = await engine.sample("s", request);
  const { tokens, logprobs } = output.sequences[0]!;
  const all = [3, ...tokens];
  const training: TrainingBatch = {
    data: [
      {
        tokens: Int32Array.from(all.slice(0, -1)),
        lossInputs: {
          target_tokens: { data: tokens, shape: [tokens.length] },
          weights: { data: new Float32Array(tokens.length).fill(1), shape: [tokens.length] },
        },
      },
    ],
    loss: "cross_entropy",
    lossConfig: {},
    forwardOnly: false,
  };
  const before = await engine.forwardBackward("m", training);
  expect([...before.logprobs[0]!.data]).toEqual([...logprobs]);
  await engine.optimStep("m", adam);
  const after = await engine.forwardBackward("m", { ...training, forwardOnly: true });
  expect(after.metrics["loss:sum"]!).toBeLessThan(before.metrics["loss:sum"]!);
  // The sampler was made before the step, so it still answers as then.
  expect(await engine.sample("s", request)).toEqual(output);
  expect(output.promptLogprobs).toHaveLength(3);
  expect(output.topkPromptLogprobs![0]).toBeNull();
  expect(output.topkPromptLogprobs![1]).toHaveLength(3);
});

test("a saved state resumes bit for bit with its optimizer, and without it starts the moments anew", async () => {
  const dir = await temporaryFolder();
  const engine = new SimulatedEngine({ seed: 5 });
  const random = new Random("resume");
  const first = batch("cross_entropy", random);
  const second = batch("ppo", random);
  await engine.createModel("a", spec);
  await engine.forwardBackward("a", first);
  await engine.optimStep("a", adam);
  await engine.saveState("a", dir);
  const step = async (id: string) => {
    await engine.forwardBackward(id, second);
    const metrics = await engine.optimStep(id, adam);
    return { metrics, output: await engine.forwardBackward(id, { ...first, forwardOnly: true }) };
  };
  const expected = await step("a");
  for (const optimizer of [true, false]) {
    await engine.createModel("b", spec);
    await engine.loadState("b", dir, { optimizer });
    const resumed = await step("b");
    if (optimizer) expect(resumed).toEqual(expected);
    else {
      expect(resumed.metrics["step"]).toBe(1);
      expect(resumed.output).not.toEqual(expected.output);
    }
  }
});

test("greedy, top-k and top-p draws stay within what they allow", async () => {
  const engine = new SimulatedEngine({ seed: 2 });
  await engine.createSampler("s", { kind: "base", baseModel: simulatedModelName });
  const model = new ClassBigram(baseWeights(2), new Float64Array(weightCount), 512);
  const draw = async (settings: object) => {
    const output = await engine.sample("s", {
      prompt: Int32Array.of(9),
      numSamples: 20,
      settings: { ...sampling, maxTokens: 1, ...settings },
      promptLogprobs: false,
      topkPromptLogprobs: 0,
    });
    return output.sequences.map((sequence) => sequence.tokens[0]!);
  };
  expect(new Set(await draw({ temperature: 0 }))).toEqual(new Set([argmax(model.logprobs(9))]));
  const allowed = new Set(largest(model.logprobs(9), 4).map(([token]) => token));
  for (const token of await draw({ topK: 4 })) expect(allowed).toContain(token);
  expect(new Set(await draw({ topP: 1e-9 })).size).toBe(1);
});

test("distributions parse by name and refuse nonsense", () => {
  const random = new Random(1);
  expect(parseDistribution("constant:20")(random)).toBe(20);
  const uniform = parseDistribution("uniform:5:6")(random);
  expect(uniform).toBeGreaterThanOrEqual(5);
  expect(uniform).toBeLessThan(6);
  for (const text of ["", "constant", "constant:", "uniform:1", "lognormal:a:b", "gaussian:1:2", "constant:-1"])
    expect(() => parseDistribution(text)).toThrow(expect.objectContaining({ code: "engine/simulated-distribution" }));
});
