import { expect, test } from "vitest";
import { APIFuture, type TrainingClient } from "../client/index.ts";
import { tensor } from "../protocol/index.ts";
import { presetConfig } from "./config.ts";
import { advantagesOf, joinTurns, makeExample } from "./datums.ts";
import { updateMetrics } from "./step-metrics.ts";
import { trainStep, updateRule } from "./train-step.ts";

const answer = joinTurns([{ context: [1, 2], tokens: [3, 4], logprobs: [-0.5, -1] }]);
const examples = [0.5, -0.5, 0.25].map((advantage) => makeExample(answer, advantagesOf(answer, advantage)));

/** A training client that answers only after everything was submitted, and remembers the order of calls. */
function patientClient() {
  const calls: string[] = [];
  const waiting: (() => void)[] = [];
  const future = <T>(name: string, value: T) => {
    calls.push(`${name} submitted`);
    const result = new Promise<T>((resolve) => waiting.push(() => resolve(value)));
    return new APIFuture(result);
  };
  const client = {
    forwardBackward: (data: unknown[], loss: string, options: unknown) => {
      calls.push(`${data.length} data, ${loss}, ${JSON.stringify(options)}`);
      const lossFnOutputs = data.map(() => ({ logprobs: tensor(Float32Array.of(-3, -0.6, -1)) }));
      return future("forwardBackward", { lossFnOutputType: "ArrayRecord", lossFnOutputs, metrics: { "loss:sum": 2 } });
    },
    optimStep: () => future("optimStep", { metrics: { grad_norm: 7, "server/x": 1 } }),
  } as unknown as TrainingClient;
  const answerAll = () => {
    for (const answer of waiting) answer();
  };
  return { client, calls, answerAll };
}

test("both requests are submitted before either result is awaited", async () => {
  const { client, calls, answerAll } = patientClient();
  const config = { ...presetConfig("deepcoder"), loss_fn_config: { clip_high_threshold: 1.3 } };
  const running = trainStep(client, examples, updateRule(config));
  await new Promise(setImmediate);
  expect(calls).toEqual([
    '3 data, importance_sampling, {"lossFnConfig":{"clip_high_threshold":1.3}}',
    "forwardBackward submitted",
    "optimStep submitted",
  ]);
  answerAll();
  const { lossSum, server, logprobs } = await running;
  expect(lossSum).toBe(2);
  expect(server).toEqual({ "optim/grad_norm": 7, "server/x": 1 });
  // The trainer's, of the completion alone.
  expect([...logprobs!]).toEqual([1, 2, 3].flatMap(() => [Math.fround(-0.6), -1]));
});

test("substeps share the batch nearly evenly and are all submitted at once", async () => {
  const { client, calls, answerAll } = patientClient();
  const config = { ...presetConfig("deepcoder"), num_substeps: 2, loss_fn: "ppo" as const };
  const running = trainStep(client, examples, updateRule(config));
  await new Promise(setImmediate);
  expect(calls.filter((call) => call.includes("data")).map((call) => call.slice(0, 11))).toEqual([
    "1 data, ppo",
    "2 data, ppo",
  ]);
  expect(calls.filter((call) => call.endsWith("submitted"))).toHaveLength(4);
  answerAll();
  expect((await running).lossSum).toBe(4);
});

test("the optimizer gets every setting of the config", () => {
  expect(updateRule(presetConfig("deepcoder")).adam).toEqual({
    learningRate: 4e-5,
    beta1: 0.9,
    beta2: 0.95,
    eps: 1e-12,
    weightDecay: 0,
    gradClipNorm: 0,
  });
});

test.each([
  ["from its losses of the tokens", { elementwise_loss: tensor(Float32Array.of(0, 0.25, -1)) }, -2.25],
  ["not at all where there are none", {}, undefined],
])("the loss of a server that does not sum it is computed %s", async (_, outputs, sum) => {
  const client = {
    forwardBackward: (data: unknown[]) =>
      new APIFuture(Promise.resolve({ lossFnOutputs: data.map(() => outputs), metrics: {} })),
    optimStep: () => new APIFuture(Promise.resolve({})),
  } as unknown as TrainingClient;
  const result = await trainStep(client, examples, updateRule(presetConfig("deepcoder")));
  expect(result.lossSum).toBe(sum);
  expect("loss" in updateMetrics(examples, result)).toBe(sum !== undefined);
});

test("a policy that is certain of every token has its figures; answers that were given have none of them", () => {
  const sequence = joinTurns([{ context: [1], tokens: [2, 3], logprobs: [0, 0] }]);
  const example = makeExample(sequence, advantagesOf(sequence, 1));
  const update = { lossSum: 0, server: {}, logprobs: Float32Array.of(0, 0) };
  expect(updateMetrics([example], update)).toMatchObject({ "optim/frac_q_zero": 1, "tokens/trained": 2 });
  expect(Object.keys(updateMetrics([{ ...example, given: true }], update)).sort()).toEqual([
    "loss",
    "loss_sum",
    "tokens/trained",
  ]);
});
