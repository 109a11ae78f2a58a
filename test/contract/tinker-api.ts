// The contract of the Tinker API, as one suite for every server and engine: our client over HTTP, and nothing that only one engine
// could know. Token ids stay below 200; numbers are checked against other numbers of the same server.
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import {
  type DatumInput,
  type ForwardBackwardOutput,
  ServiceClient,
  type TrainingClient,
  tensor,
} from "../../src/client/index.ts";
import { Random } from "../../src/core/random.ts";

export interface TinkerTarget {
  baseUrl: string;
  apiKey: string;
  close(): Promise<unknown>;
}

const rank = 8;
const adam = { learningRate: 1e-3 };
const lossNames = ["cross_entropy", "importance_sampling", "ppo", "cispo", "dro"] as const;

/** Runs the whole suite against the server that `start` gives. */
export function describeTinkerApi(name: string, start: () => Promise<TinkerTarget>): void {
  describe(`the Tinker API of ${name}`, () => {
    let target: TinkerTarget;
    let service: ServiceClient;
    let baseModel: string;
    let contextLength: number;

    beforeAll(async () => {
      target = await start();
      service = new ServiceClient({ baseUrl: target.baseUrl, apiKey: target.apiKey, onWarning: () => {} });
      const [model] = (await service.getServerCapabilities()).supportedModels;
      baseModel = model!.modelName!;
      contextLength = model!.maxContextLength!;
    });
    afterAll(async () => {
      await service?.close();
      await target?.close();
    });

    const newModel = () => service.createLoraTrainingClient({ baseModel, rank, seed: 3 });

    test("a model says what it is", async () => {
      const training = await newModel();
      const info = await training.getInfo();
      expect(info).toMatchObject({ modelId: training.modelId, loraRank: rank, isLora: true });
      expect(info.modelData.modelName).toBe(baseModel);
    });

    test.each(lossNames)("%s is the documented sum over its own logprobs, with and without gradient", async (loss) => {
      const training = await newModel();
      const sampled = logprobsOf(await training.forward([crossEntropy(1)], "cross_entropy"));
      const data = loss === "cross_entropy" ? [crossEntropy(1), crossEntropy(2, 7)] : [policy(sampled, 1)];
      for (const call of [training.forward(data, loss), training.forwardBackward(data, loss)]) {
        const output = await call;
        expect(output.lossFnOutputs).toHaveLength(data.length);
        const expected = data.reduce((sum, datum, index) => sum + lossOf(loss, logprobsOf(output, index), datum), 0);
        expectClose([output.metrics["loss:sum"]!], [expected], 1e-3);
      }
    });

    test("loss settings and soft targets are obeyed", async () => {
      const training = await newModel();
      const sampled = logprobsOf(await training.forward([crossEntropy(1)], "cross_entropy"));
      const datum = policy(sampled, 4);
      const clipped = await training.forward([datum], "ppo", {
        lossFnConfig: { clip_low_threshold: 0.99, clip_high_threshold: 1.01 },
      });
      expectClose([clipped.metrics["loss:sum"]!], [lossOf("ppo", logprobsOf(clipped), datum, 0.99, 1.01)], 1e-3);
      const random = new Random("soft");
      const targets = Int32Array.from({ length: 18 }, () => 1 + random.integer(199));
      const weights = Float32Array.from({ length: 18 }, () => random.float());
      const soft = await training.forward(
        [
          {
            modelInput: tokensOf(5, 6),
            lossFnInputs: { target_tokens: tensor(targets, [6, 3]), weights: tensor(weights, [6, 3]) },
          },
        ],
        "cross_entropy",
      );
      // The same targets, with the weights of all but the first column dropped, as compressed rows.
      const first = Array.from({ length: 6 }, (_, row) => row * 3);
      const sparse = { crowIndices: Int32Array.of(0, 1, 2, 3, 4, 5, 6), colIndices: new Int32Array(6) };
      const sparseWeights = Float32Array.from(first, (index) => weights[index]!);
      const compressed = await training.forward(
        [
          {
            modelInput: tokensOf(5, 6),
            lossFnInputs: {
              target_tokens: tensor(targets, [6, 3]),
              weights: { dtype: "float32", data: sparseWeights, shape: [6, 3], sparse },
            },
          },
        ],
        "cross_entropy",
      );
      const output = soft.lossFnOutputs[0]!["logprobs"]!;
      expect(output.shape).toEqual([6, 3]);
      const values = Array.from(output.data as Float32Array);
      expectClose(
        [compressed.metrics["loss:sum"]!],
        [-sum(first.map((index) => values[index]! * weights[index]!))],
        1e-3,
      );
      expectClose(
        [soft.metrics["loss:sum"]!],
        [-values.reduce((sum, lp, index) => sum + lp * weights[index]!, 0)],
        1e-3,
      );
    });

    test("optimStep after forwardBackward lowers the loss; a forward pass alone leaves no gradient", async () => {
      const training = await newModel();
      const before = await training.forward([crossEntropy(1)], "cross_entropy");
      for (let step = 0; step < 3; step++) {
        const update = training.forwardBackward([crossEntropy(1)], "cross_entropy");
        const applied = training.optimStep(adam);
        await Promise.all([update, applied]);
      }
      const after = await training.forward([crossEntropy(1)], "cross_entropy");
      expect(after.metrics["loss:sum"]!).toBeLessThan(before.metrics["loss:sum"]!);
      const untouched = await newModel();
      await untouched.forward([crossEntropy(1)], "cross_entropy");
      await untouched.optimStep(adam);
      const still = await untouched.forward([crossEntropy(1)], "cross_entropy");
      expectClose(logprobsOf(still), logprobsOf(before), 1e-5);
    });

    test("gradients add up: two halves of a batch are the batch", async () => {
      const [whole, halves] = [await newModel(), await newModel()];
      await Promise.all([
        whole.forwardBackward([crossEntropy(1), crossEntropy(2)], "cross_entropy"),
        whole.optimStep(adam),
        halves.forwardBackward([crossEntropy(1)], "cross_entropy"),
        halves.forwardBackward([crossEntropy(2)], "cross_entropy"),
        halves.optimStep(adam),
      ]);
      const outputs = await Promise.all(
        [whole, halves].map((model) => model.forward([crossEntropy(3)], "cross_entropy")),
      );
      expectClose(logprobsOf(outputs[0]!), logprobsOf(outputs[1]!), 1e-3);
    });

    test("a batch of more than 1,024 data comes back whole and in order", async () => {
      const training = await newModel();
      const data = Array.from({ length: 1030 }, (_, index) => crossEntropy(index % 7, 2));
      const output = await training.forward(data, "cross_entropy");
      expect(output.lossFnOutputs).toHaveLength(1030);
      for (const index of [0, 1023, 1024, 1029])
        expectClose(logprobsOf(output, index), logprobsOf(output, index % 7), 1e-4);
    });

    test("a custom loss moves the model along its gradient", async () => {
      const training = await newModel();
      const before = sum(logprobsOf(await training.forward([crossEntropy(1)], "cross_entropy")));
      // Minus the summed logprobs: the same as cross-entropy with weights of one.
      await training.forwardBackwardCustom([crossEntropy(1)], (_data, logprobs) => ({
        loss: -sum(logprobs[0]!),
        gradients: logprobs.map((values) => new Float32Array(values.length).fill(-1)),
        metrics: { "own:sum": 1 },
      }));
      await training.optimStep(adam);
      expect(sum(logprobsOf(await training.forward([crossEntropy(1)], "cross_entropy")))).toBeGreaterThan(before);
    });

    test("training resumes from a saved state, exactly with its optimizer and differently without", async () => {
      const training = await newModel();
      await step(training, 1);
      const { path } = await training.saveState("state");
      expect(path).toBe(`tinker://${training.modelId}/weights/state`);
      const saved = logprobsOf(await training.forward([crossEntropy(1)], "cross_entropy"));
      const continued = await step(training, 2);
      const [same, fresh, loaded] = await Promise.all([
        service.createTrainingClientFromStateWithOptimizer(path),
        service.createTrainingClientFromState(path),
        newModel().then(async (client) => {
          await client.loadStateWithOptimizer(path);
          return client;
        }),
      ]);
      for (const client of [same, fresh, loaded])
        expectClose(logprobsOf(await client.forward([crossEntropy(1)], "cross_entropy")), saved, 1e-4);
      expectClose(await step(same, 2), continued, 1e-4);
      expectClose(await step(loaded, 2), continued, 1e-4);
      const without = await step(fresh, 2);
      expect(without.some((value, index) => Math.abs(value - continued[index]!) > 1e-4)).toBe(true);
    });

    test("samples have logprobs, stop where they should, and repeat by seed", async () => {
      const sampler = await (await newModel()).saveWeightsAndGetSamplingClient();
      const ask = (samplingParams: object, numSamples = 3) =>
        sampler.sample({
          prompt: tokensOf(4, 6),
          numSamples,
          samplingParams: { maxTokens: 8, seed: 11, ...samplingParams },
        });
      const first = await ask({});
      expect(first.sequences).toHaveLength(3);
      for (const { tokens, logprobs, stopReason } of first.sequences) {
        expect(logprobs).toHaveLength(tokens.length);
        expect(Math.max(...logprobs!)).toBeLessThanOrEqual(0);
        expect(tokens.length === 8 || stopReason === "stop").toBe(true);
      }
      // Each has an id of its own, whatever it holds.
      const again = (await ask({})).sequences;
      const ids = [...first.sequences, ...again].map(({ sequenceId }) => sequenceId);
      expect([new Set(ids).size, ids.includes(undefined)]).toEqual([ids.length, false]);
      const contents = (sequences: typeof again) => sequences.map(({ sequenceId: _, ...content }) => content);
      expect(contents(again)).toEqual(contents(first.sequences));
      const tokens = [...first.sequences[0]!.tokens];
      const stop = tokens[Math.min(2, tokens.length - 1)]!;
      const cut = (await ask({ stop: [stop] })).sequences[0]!;
      expect([...cut.tokens]).toEqual(tokens.slice(0, tokens.indexOf(stop) + 1));
      expect(cut.stopReason).toBe("stop");
      const greedy = (await ask({ temperature: 0 }, 2)).sequences;
      expect(greedy[0]!.tokens).toEqual(greedy[1]!.tokens);
      await ask({ stop: ["\n\n", "zz"] });
    });

    test("prompt logprobs are the trainer's logprobs, and top-k holds the best", async () => {
      const training = await newModel();
      await step(training, 6);
      const sampler = await training.saveWeightsAndGetSamplingClient();
      const sequence = tokensOf(1, 13);
      const trained = logprobsOf(await training.forward([crossEntropy(1)], "cross_entropy"));
      const [first, ...rest] = await sampler.computeLogprobs(sequence);
      expect(first).toBeNull();
      expectClose(rest as number[], trained, 1e-3);
      const output = await sampler.sample({
        prompt: sequence,
        samplingParams: { maxTokens: 1 },
        includePromptLogprobs: true,
        topkPromptLogprobs: 3,
      });
      expectClose([...output.promptLogprobs!].slice(1), trained, 1e-3);
      const [none, ...rows] = output.topkPromptLogprobs!;
      expect(none).toBeNull();
      for (const [index, row] of rows.entries()) {
        expect(row).toHaveLength(3);
        expect(row![0]![1]).toBeGreaterThanOrEqual(row![1]![1]);
        expect(row![0]![1]).toBeGreaterThanOrEqual(trained[index]! - 1e-3);
      }
    });

    test("a sampler is frozen, and a named one can be opened again", async () => {
      const training = await newModel();
      await step(training, 1);
      const sampler = await training.saveWeightsAndGetSamplingClient();
      const { path } = await training.saveWeightsForSampler("named");
      const prompt = tokensOf(9, 8);
      const before = await sampler.computeLogprobs(prompt);
      await step(training, 2);
      await step(training, 3);
      expect(await sampler.computeLogprobs(prompt)).toEqual(before);
      const named = await service.createSamplingClient({ modelPath: path });
      expectClose((await named.computeLogprobs(prompt)).slice(1) as number[], before.slice(1) as number[], 1e-4);
      expect(await named.getBaseModel()).toBe(baseModel);
      const base = await service.createSamplingClient({ baseModel });
      const untrained = (await base.computeLogprobs(prompt)).slice(1) as number[];
      expect(untrained.some((value, index) => Math.abs(value - (before[index + 1] as number)) > 1e-4)).toBe(true);
    });

    test("a hundred samples can be asked for at once", async () => {
      const sampler = await service.createSamplingClient({ baseModel });
      const outputs = await Promise.all(
        Array.from({ length: 100 }, (_, seed) =>
          sampler.sample({ prompt: tokensOf(seed, 4), samplingParams: { maxTokens: 2, seed } }),
        ),
      );
      for (const { sequences } of outputs) expect(sequences[0]!.tokens.length).toBeGreaterThan(0);
    });

    test("runs, checkpoints and sessions are listed; checkpoints are published, limited in time, downloaded, deleted", async () => {
      const training = await newModel();
      const rest = service.createRestClient();
      const { path } = await training.saveState("kept");
      const sampling = await training.saveWeightsForSampler("for-sampling");
      const run = await rest.getTrainingRun(training.modelId);
      expect(run).toMatchObject({ trainingRunId: training.modelId, baseModel, loraRank: rank, corrupted: false });
      expect(run.lastCheckpoint!.tinkerPath).toBe(path);
      expect((await rest.getTrainingRunByTinkerPath(path)).trainingRunId).toBe(training.modelId);
      const runs = await rest.listTrainingRuns({ limit: 1000 });
      expect(runs.trainingRuns.map((entry) => entry.trainingRunId)).toContain(training.modelId);
      const find = async () =>
        (await rest.listCheckpoints(training.modelId)).checkpoints.find((entry) => entry.tinkerPath === path)!;
      expect(await find()).toMatchObject({ checkpointId: "weights/kept", checkpointType: "training", public: false });
      expect((await rest.listUserCheckpoints({ limit: 1000 })).checkpoints.map((entry) => entry.tinkerPath)).toContain(
        path,
      );
      expect(await rest.getWeightsInfoByTinkerPath(path)).toMatchObject({ baseModel, isLora: true, loraRank: rank });
      await rest.publishCheckpointFromTinkerPath(path);
      expect((await find()).public).toBe(true);
      await rest.unpublishCheckpointFromTinkerPath(path);
      await rest.setCheckpointTtlFromTinkerPath(path, 3600);
      expect((await find()).expiresAt!.getTime()).toBeGreaterThan(Date.now());
      await rest.setCheckpointTtlFromTinkerPath(path, null);
      expect((await find()).expiresAt).toBeUndefined();
      const { url } = await rest.getCheckpointArchiveUrlFromTinkerPath(sampling.path);
      const archive = Buffer.from(await (await fetch(url)).arrayBuffer());
      expect(archive.subarray(257, 262).toString()).toBe("ustar");
      const sessionId = training.modelId.split(":")[0]!;
      expect(await rest.listSessions({ limit: 1000 })).toContain(sessionId);
      const session = await rest.getSession(sessionId);
      expect(session.trainingRunIds).toContain(training.modelId);
      await rest.deleteCheckpointFromTinkerPath(path);
      expect(await find()).toBeUndefined();
      await expect(service.createTrainingClientFromState(path)).rejects.toMatchObject({
        serverCode: "server/checkpoint-not-found",
      });
    });

    test("a taken name is refused at once, unless it is to be overwritten", async () => {
      const training = await newModel();
      await training.saveState("twice");
      await expect(training.saveState("twice").result()).rejects.toMatchObject({
        serverCode: "server/checkpoint-exists",
      });
      await training.saveState("twice", { overwrite: true });
    });

    test("what cannot be done is refused with a code, and what follows is not held up", async () => {
      const training = await newModel();
      const refused = async (call: PromiseLike<unknown>, serverCode: string) =>
        expect(Promise.resolve(call)).rejects.toMatchObject({ serverCode });
      const { modelId } = training;
      await refused(service.createLoraTrainingClient({ baseModel: "no/such-model" }), "server/unknown-base-model");
      await refused(training.forwardBackward([crossEntropy(1)], "no_such_loss"), "server/unknown-loss");
      await refused(training.forwardBackward([crossEntropy(1)], "ppo"), "server/loss-inputs");
      await refused(
        training.forward(
          [{ modelInput: [1, 2_000_000_000], lossFnInputs: { target_tokens: [1, 2], weights: [1, 1] } }],
          "cross_entropy",
        ),
        "server/token-range",
      );
      await refused(training.loadState(`tinker://${modelId}/weights/never`), "server/checkpoint-not-found");
      await refused(training.saveState("no/slashes"), "server/checkpoint-name");
      await refused(training.optimStep({ beta1: 2 }), "server/adam");
      const sampler = await service.createSamplingClient({ baseModel });
      await refused(
        sampler.sample({ prompt: [1, 2], samplingParams: { maxTokens: contextLength } }),
        "server/context-length",
      );
      await refused(
        service.createSamplingClient({ modelPath: `tinker://${modelId}/weights/x` }),
        "server/checkpoint-kind",
      );
      const stranger = new ServiceClient({ baseUrl: target.baseUrl, apiKey: "tml-stranger" });
      await refused(stranger.getServerCapabilities(), "server/api-key");
      await stranger.close();
      expect((await training.forward([crossEntropy(1)], "cross_entropy")).lossFnOutputs).toHaveLength(1);
    });

    async function step(training: TrainingClient, seed: number): Promise<number[]> {
      await Promise.all([training.forwardBackward([crossEntropy(seed)], "cross_entropy"), training.optimStep(adam)]);
      return logprobsOf(await training.forward([crossEntropy(1)], "cross_entropy"));
    }
  });
}

function tokensOf(seed: number, count: number): number[] {
  const random = new Random("contract", seed);
  return Array.from({ length: count }, () => 1 + random.integer(199));
}

function crossEntropy(seed: number, count = 12): DatumInput {
  const sequence = tokensOf(seed, count + 1);
  return {
    modelInput: sequence.slice(0, -1),
    lossFnInputs: { target_tokens: sequence.slice(1), weights: new Array<number>(count).fill(1) },
  };
}

/** The same sequence as `crossEntropy(1)`, as a rollout sampled by a slightly different policy. */
function policy(logprobs: readonly number[], seed: number): DatumInput {
  const random = new Random("policy", seed);
  const sequence = tokensOf(1, logprobs.length + 1);
  return {
    modelInput: sequence.slice(0, -1),
    lossFnInputs: {
      target_tokens: sequence.slice(1),
      logprobs: logprobs.map((value) => value + 0.3 * random.normal()),
      advantages: logprobs.map(() => random.normal()),
    },
  };
}

function logprobsOf(output: ForwardBackwardOutput, index = 0): number[] {
  return Array.from(output.lossFnOutputs[index]!["logprobs"]!.data as Float32Array);
}

function lossOf(name: string, logprobs: readonly number[], datum: DatumInput, low?: number, high?: number): number {
  const input = (key: string) => Array.from(datum.lossFnInputs[key] as readonly number[]);
  if (name === "cross_entropy") return -sum(logprobs.map((lp, index) => input("weights")[index]! * lp));
  const [sampled, advantages] = [input("logprobs"), input("advantages")];
  return -sum(
    logprobs.map((lp, index) => {
      const ratio = Math.exp(lp - sampled[index]!);
      const advantage = advantages[index]!;
      const clip = (a: number, b: number) => Math.min(Math.max(ratio, a), b);
      if (name === "importance_sampling") return ratio * advantage;
      if (name === "ppo") return Math.min(ratio * advantage, clip(low ?? 0.8, high ?? 1.2) * advantage);
      if (name === "cispo") return clip(low ?? 0, high ?? 4) * lp * advantage;
      return lp * advantage - 0.5 * 0.05 * (lp - sampled[index]!) ** 2;
    }),
  );
}

const sum = (values: Iterable<number>) => {
  let total = 0;
  for (const value of values) total += value;
  return total;
};

function expectClose(actual: readonly number[], expected: readonly number[], tolerance: number): void {
  expect(actual).toHaveLength(expected.length);
  for (const [index, value] of actual.entries()) {
    const wanted = expected[index]!;
    expect(Math.abs(value - wanted), `${value} is not ${wanted}`).toBeLessThanOrEqual(
      tolerance * (1 + Math.abs(wanted)),
    );
  }
}
