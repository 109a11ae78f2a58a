import fc from "fast-check";
import { expect, test } from "vitest";
import type { SampledTokens, SampleRequest } from "../engine.ts";
import { SimulatedEngine, type SimulatedEngineOptions, simulatedModelName } from "./engine.ts";

const end = 9;
const right = [301, 302, 303];
const wrong = [401, 402];
const malformed = [501];
const script = {
  length: "lognormal:50:0.8",
  solveRate: "uniform:0:1",
  filler: Array.from({ length: 100 }, (_, index) => 100 + index),
  endToken: end,
  rightAnswers: () => [right],
  wrongAnswers: [wrong],
  malformedAnswers: [malformed],
};
const spec = { baseModel: simulatedModelName, lora: { rank: 8, trainAttn: true, trainMlp: true, trainUnembed: true } };

async function open(change: Partial<typeof script> = {}, options: SimulatedEngineOptions = {}) {
  const engine = new SimulatedEngine({ seed: 3, vocabSize: 151_669, script: { ...script, ...change }, ...options });
  await engine.createModel("m", spec);
  await engine.createSampler("s", { kind: "live", modelId: "m" });
  return engine;
}

const request = (
  prompt: number,
  seed: number | undefined,
  settings: Partial<SampleRequest["settings"]> = {},
  numSamples = 4,
): SampleRequest => ({
  prompt: Int32Array.of(7, prompt),
  numSamples,
  settings: { seed, temperature: 1, topK: -1, topP: 1, maxTokens: 30_000, stopTokens: [], ...settings },
  promptLogprobs: false,
  topkPromptLogprobs: 0,
});

/** What a completion ends with, before its end token. */
const answerOf = ({ tokens }: SampledTokens) => [...tokens].filter((token) => token >= 300);

test("the same seeds give the same completions in any order and any mix", async () => {
  const seeds = Array.from({ length: 12 }, (_, index) => index);
  const expected = await open().then((engine) =>
    Promise.all(seeds.map((seed) => engine.sample("s", request(seed % 5, seed)))),
  );
  const permuted = fc.shuffledSubarray(seeds, { minLength: 1 });
  await fc.assert(
    fc.asyncProperty(permuted, async (order) => {
      const engine = await open();
      await engine.sample("s", request(1, undefined));
      for (const seed of order) expect(await engine.sample("s", request(seed % 5, seed))).toEqual(expected[seed]);
    }),
    { numRuns: 10 },
  );
  const lengths = expected.flatMap(({ sequences }) => sequences.map(({ tokens }) => tokens.length));
  expect(new Set(lengths).size).toBeGreaterThan(20);
});

test("log-probabilities are the learner's, over wraps of the filler and after training", async () => {
  const engine = await open({ length: "constant:70000" }, { maxContextLength: 100_000 });
  for (const step of [0, 1]) {
    await engine.createSampler("s", { kind: "live", modelId: "m" });
    const asked = request(11, step, { maxTokens: 90_000 }, 1);
    const { tokens, logprobs } = (await engine.sample("s", asked)).sequences[0]!;
    expect(tokens).toHaveLength(70_000);
    const shape = [tokens.length];
    const { logprobs: learned } = await engine.forwardBackward("m", {
      data: [
        {
          tokens: Int32Array.from([11, ...tokens.subarray(0, -1)]),
          lossInputs: {
            target_tokens: { data: tokens, shape },
            logprobs: { data: logprobs, shape },
            advantages: { data: new Float32Array(tokens.length).fill(0.5), shape },
          },
        },
      ],
      loss: "importance_sampling",
      lossConfig: {},
      forwardOnly: false,
    });
    expect(Buffer.compare(Buffer.from(learned[0]!.data.buffer), Buffer.from(logprobs.buffer))).toBe(0);
    await engine.optimStep("m", {
      learningRate: 0.1,
      beta1: 0.9,
      beta2: 0.95,
      epsilon: 1e-8,
      weightDecay: 0,
      gradClipNorm: 0,
    });
  }
});

test("each prompt has its own share of right answers; the rest is wrong or malformed", async () => {
  const engine = await open();
  const shares: number[] = [];
  for (let prompt = 0; prompt < 40; prompt++) {
    const { sequences } = await engine.sample("s", request(prompt, prompt, {}, 100));
    const answers = sequences.map((sequence) => JSON.stringify(answerOf(sequence)));
    const count = (answer: readonly number[]) => answers.filter((text) => text === JSON.stringify(answer)).length;
    expect(count(right) + count(wrong) + count(malformed)).toBe(100);
    shares.push(count(right) / 100);
  }
  expect(Math.min(...shares)).toBeLessThan(0.25);
  expect(Math.max(...shares)).toBeGreaterThan(0.75);
  const sure = await open({ solveRate: "constant:1" });
  expect((await sure.sample("s", request(1, 1))).sequences.map(answerOf)).toEqual(Array(4).fill(right));
  const unknown = await open({ solveRate: "constant:1", rightAnswers: () => [] });
  expect((await unknown.sample("s", request(1, 1))).sequences.map(answerOf)).toEqual(Array(4).fill(wrong));
});

test("greedy completions of a prompt are all alike", async () => {
  const engine = await open();
  const [first, ...others] = [1, 2, 3].map((seed) => engine.sample("s", request(5, seed, { temperature: 0 })));
  const { sequences } = await first!;
  expect(new Set(sequences.map(({ tokens }) => tokens.join()))).toHaveLength(1);
  for (const other of others) expect(await other).toEqual(await first);
});

test("a completion ends at max_tokens, at the request's stop token, or where the caller stops it", async () => {
  const engine = await open({ length: "constant:40" });
  const one = async (settings: Partial<SampleRequest["settings"]>) =>
    (await engine.sample("s", request(1, 2, settings, 1))).sequences[0]!;
  const whole = await one({});
  expect([whole.stopReason, whole.tokens.length, whole.tokens.at(-1)]).toEqual(["stop", 40, end]);
  const cut = await one({ maxTokens: 10 });
  expect([cut.stopReason, [...cut.tokens]]).toEqual(["length", [...whole.tokens.subarray(0, 10)]]);
  expect((await one({ stopTokens: [8] })).tokens.at(-1)).toBe(8);
  const third = whole.tokens[2]!;
  const stopped = await one({ stopTokens: [8, third] });
  expect([stopped.stopReason, stopped.tokens.at(-1)]).toEqual(["stop", third]);
  expect(stopped.tokens.length).toBe([...whole.tokens].indexOf(third) + 1);
  const ended = await one({ shouldStop: (tokens) => tokens.length === 5 });
  expect([ended.stopReason, ended.tokens.length, ended.logprobs.length]).toEqual(["stop", 5, 5]);
});

test("how long a sample takes depends on its prompt and seed, not on the order or number of requests", async () => {
  const arrivals = async (prompts: readonly number[]) => {
    const engine = await open({}, { samplingLatency: "uniform:0:100000", timeScale: 0.002 });
    const order: number[] = [];
    await Promise.all(
      prompts.map(async (prompt) => {
        await engine.sample("s", request(prompt, undefined, {}, 1));
        order.push(prompt);
      }),
    );
    return order;
  };
  const prompts = [1, 2, 3, 4];
  const order = await arrivals(prompts);
  expect(order).not.toEqual(prompts);
  // Sent apart, the samples of a group arrive together.
  expect(await arrivals([...prompts, ...prompts.toReversed()])).toEqual(order.flatMap((prompt) => [prompt, prompt]));
});
