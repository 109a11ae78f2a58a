// The simulated engine: the whole Engine interface over a tiny exact model, with latencies to order. For tests and benchmarks of
// everything around an engine; it learns nothing about text. The same seed and the same calls give the same numbers.
import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { Random } from "../../core/random.ts";
import type { PromptAnswers } from "../../protocol/questions.ts";
import type {
  AdamSettings,
  Engine,
  EngineModelInfo,
  ModelSpec,
  SampledTokens,
  SampleOutput,
  SampleRequest,
  SamplerSource,
  TrainingBatch,
  TrainingOutput,
} from "../engine.ts";
import { EngineError } from "../errors.ts";
import { promptScores, sequenceScores } from "../scores.ts";
import { baseWeights, ClassBigram, weightCount } from "./class-bigram.ts";
import { type Distribution, parseDistribution } from "./distribution.ts";
import { Learner } from "./learner.ts";
import { hashOf, Script, type ScriptOptions } from "./script.ts";

export interface SimulatedEngineOptions {
  /** Base weights and every draw without a seed of its own come from it. */
  seed?: number;
  modelName?: string;
  vocabSize?: number;
  maxContextLength?: number;
  /** What a client loads its tokenizer from. */
  tokenizerId?: string;
  /**
   * Distributions of milliseconds, as text: see distribution.ts. A sample's is drawn from its prompt and seed: requests of one
   * group, sent as one or apart, take the same time, whatever their order.
   */
  samplingLatency?: string;
  /** Each training request. */
  trainingLatency?: string;
  /** Making a sampler: until weights can be sampled from. */
  syncLatency?: string;
  /** Saving and loading. */
  saveLatency?: string;
  /** Every latency is multiplied by it. */
  timeScale?: number;
  /** Given: completions are written to order; else they are drawn from the model. */
  script?: ScriptOptions;
}

type Pause = "sampling" | "training" | "sync" | "save";

export const simulatedModelName = "whetstone/simulated";

export class SimulatedEngine implements Engine {
  readonly models: readonly EngineModelInfo[];
  readonly #info: EngineModelInfo;
  readonly #seed: number;
  readonly #base: Float64Array;
  readonly #learners = new Map<string, Learner>();
  readonly #samplers = new Map<string, ClassBigram>();
  readonly #latency: Readonly<Record<Pause, Distribution>>;
  readonly #timeScale: number;
  readonly #script: Script | undefined;
  readonly #pauses: Record<Pause, number> = { sampling: 0, training: 0, sync: 0, save: 0 };
  #unseededSamples = 0;

  constructor(options: SimulatedEngineOptions = {}) {
    this.#seed = options.seed ?? 0;
    this.#info = {
      name: options.modelName ?? simulatedModelName,
      maxContextLength: options.maxContextLength ?? 32768,
      vocabSize: options.vocabSize ?? 512,
      ...(options.tokenizerId !== undefined && { tokenizerId: options.tokenizerId }),
    };
    this.models = [this.#info];
    this.#base = baseWeights(this.#seed);
    this.#latency = {
      sampling: parseDistribution(options.samplingLatency ?? "none"),
      training: parseDistribution(options.trainingLatency ?? "none"),
      sync: parseDistribution(options.syncLatency ?? "none"),
      save: parseDistribution(options.saveLatency ?? "none"),
    };
    this.#timeScale = options.timeScale ?? 1;
    this.#script = options.script && new Script(this.#seed, options.script);
  }

  async createModel(modelId: string, _spec: ModelSpec): Promise<void> {
    await this.#pause("save");
    this.#learners.set(modelId, new Learner(this.#base, this.#info.vocabSize));
  }

  async unloadModel(modelId: string): Promise<void> {
    this.#learners.delete(modelId);
  }

  async forwardBackward(modelId: string, batch: TrainingBatch): Promise<TrainingOutput> {
    await this.#pause("training");
    return this.#learner(modelId).forwardBackward(batch);
  }

  async optimStep(modelId: string, adam: AdamSettings): Promise<Readonly<Record<string, number>>> {
    await this.#pause("training");
    return this.#learner(modelId).optimStep(adam);
  }

  async saveState(modelId: string, dir: string): Promise<void> {
    await this.#pause("save");
    const learner = this.#learner(modelId);
    await writeFile(join(dir, "adapter.f64"), bytesOf(learner.adapter));
    await writeFile(
      join(dir, "optimizer.f64"),
      Buffer.concat([
        bytesOf(Float64Array.of(learner.steps)),
        bytesOf(learner.firstMoment),
        bytesOf(learner.secondMoment),
      ]),
    );
  }

  async loadState(modelId: string, dir: string, options: { optimizer: boolean }): Promise<void> {
    await this.#pause("save");
    const learner = this.#learner(modelId);
    learner.adapter.set(await readNumbers(join(dir, "adapter.f64"), weightCount));
    const optimizer = options.optimizer
      ? await readNumbers(join(dir, "optimizer.f64"), 1 + 2 * weightCount)
      : new Float64Array(1 + 2 * weightCount);
    learner.steps = optimizer[0]!;
    learner.firstMoment.set(optimizer.subarray(1, 1 + weightCount));
    learner.secondMoment.set(optimizer.subarray(1 + weightCount));
    learner.weightsChanged();
  }

  async saveForSampler(modelId: string, dir: string): Promise<void> {
    await this.#pause("save");
    await writeFile(join(dir, "adapter.f64"), bytesOf(this.#learner(modelId).adapter));
  }

  async createSampler(samplerId: string, source: SamplerSource): Promise<void> {
    await this.#pause("sync");
    this.#samplers.set(samplerId, await this.#modelOf(source));
  }

  async releaseSampler(samplerId: string): Promise<void> {
    this.#samplers.delete(samplerId);
  }

  async sample(
    samplerId: string,
    request: SampleRequest,
    options: { signal?: AbortSignal } = {},
  ): Promise<SampleOutput> {
    const model = this.#samplers.get(samplerId);
    if (!model)
      throw new EngineError("engine/simulated-missing", `There is no sampler "${samplerId}". Create it first.`);
    const { seed: given, maxTokens } = request.settings;
    await this.#pause(
      "sampling",
      new Random("latency", this.#seed, hashOf(request.prompt), given ?? ""),
      options.signal,
    );
    const seed = given ?? `unseeded-${this.#seed}-${this.#unseededSamples++}`;
    const room = this.#info.maxContextLength - request.prompt.length;
    const limit = Math.min(maxTokens ?? room, room);
    const sequences = Array.from(
      { length: request.numSamples },
      (_, index) =>
        this.#script?.write(model, request, limit, seed, index) ??
        this.#generate(model, request, limit, new Random("sample", seed, index)),
    );
    return { sequences, ...this.#promptScores(model, request, seed) };
  }

  async close(): Promise<void> {
    this.#learners.clear();
    this.#samplers.clear();
  }

  #generate(model: ClassBigram, request: SampleRequest, limit: number, random: Random): SampledTokens {
    const { prompt, settings } = request;
    const scores = sequenceScores(request);
    const endOfText = this.#info.vocabSize - 1;
    const stops = new Set([...settings.stopTokens, ...(settings.stopAtEnd === false ? [] : [endOfText])]);
    const tokens: number[] = [];
    const logprobs: number[] = [];
    let previous = prompt.at(-1) ?? endOfText;
    let stopReason: SampledTokens["stopReason"] = "length";
    while (tokens.length < limit) {
      const { token, logprob } = model.draw(previous, random, settings);
      tokens.push(token);
      logprobs.push(logprob);
      if (scores.wanted) scores.add(tokens.length - 1, model.logprobs(previous));
      previous = token;
      if (stops.has(token) || settings.shouldStop?.(tokens)) {
        stopReason = "stop";
        break;
      }
    }
    return {
      stopReason,
      tokens: Int32Array.from(tokens),
      logprobs: Float32Array.from(logprobs),
      ...scores.answers,
    };
  }

  #promptScores(model: ClassBigram, request: SampleRequest, seed: number | string): PromptAnswers {
    const keeper = promptScores({ ...request, temperature: request.settings.temperature, seed });
    if (keeper.wanted)
      for (const [position, token] of request.prompt.entries()) keeper.add(position + 1, model.logprobs(token));
    return keeper.answers;
  }

  async #modelOf(source: SamplerSource): Promise<ClassBigram> {
    if (source.kind === "live") return this.#learner(source.modelId).model;
    const adapter =
      source.kind === "saved"
        ? await readNumbers(join(source.dir, "adapter.f64"), weightCount)
        : new Float64Array(weightCount);
    return new ClassBigram(this.#base, adapter, this.#info.vocabSize);
  }

  #learner(modelId: string): Learner {
    const learner = this.#learners.get(modelId);
    if (!learner) throw new EngineError("engine/simulated-missing", `There is no model "${modelId}". Create it first.`);
    return learner;
  }

  async #pause(kind: Pause, random?: Random, signal?: AbortSignal): Promise<void> {
    const draw = random ?? new Random("latency", this.#seed, kind, this.#pauses[kind]++);
    const ms = this.#timeScale * this.#latency[kind](draw);
    if (ms > 0) await sleep(ms, undefined, signal ? { signal } : {});
  }
}

/** Tokens below 256 are bytes; the others show as themselves. */
export function decodeSimulatedTokens(tokens: readonly number[]): string {
  const bytes = tokens.flatMap((token) => (token < 256 ? [token] : [...Buffer.from(`<|${token}|>`)]));
  return Buffer.from(bytes).toString("utf8");
}

const bytesOf = (numbers: Float64Array) => Buffer.from(numbers.buffer, numbers.byteOffset, numbers.byteLength);

async function readNumbers(path: string, count: number): Promise<Float64Array> {
  const bytes = await readFile(path).catch((cause: unknown) => {
    throw new EngineError("engine/simulated-checkpoint", `${path} cannot be read. Save the checkpoint again.`, {
      cause,
    });
  });
  if (bytes.length !== count * 8)
    throw new EngineError(
      "engine/simulated-checkpoint",
      `${path} holds ${bytes.length} bytes where ${count * 8} belong. Save the checkpoint again.`,
    );
  return new Float64Array(bytes.buffer.slice(bytes.byteOffset, bytes.byteOffset + bytes.length));
}
