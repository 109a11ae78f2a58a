// The engine's host: knows the served models, has a trainer for every model in training, and lets the compute workers compute. Training
// calls run one after another; samples go to the workers at once.
import { loadAdapter, loadOptimizer, readLora, saveAdapter, saveTrainingState } from "./checkpoint.ts";
import { type FrozenAdapter, unknownSampler } from "./compute.ts";
import { ComputeWorkers, type ServedModel } from "./compute-workers.ts";
import type {
  AdamSettings,
  EngineModelInfo,
  ModelSpec,
  SamplerSource,
  TrainingBatch,
  TrainingOutput,
} from "./engine.ts";
import { EngineError } from "./errors.ts";
import { readConfig } from "./hf-folder.ts";
import { adapterShapes } from "./lora.ts";
import type { HostCalls } from "./messages.ts";
import type { OnToken, RunnableRequest, RunningRequest, SamplerLimits } from "./sampler.ts";
import { Trainer } from "./trainer.ts";

export interface HostOptions {
  models: readonly { name: string; dir: string }[];
  threads: number;
  limits: SamplerLimits;
}

/** A model in training. */
interface TrainedModel {
  spec: ModelSpec;
  trainer: Trainer;
}

export class EngineHost implements HostCalls {
  readonly models: readonly EngineModelInfo[];
  readonly #workers: ComputeWorkers;
  readonly #served: ReadonlyMap<string, ServedModel>;
  readonly #training = new Map<string, TrainedModel>();
  /** The model of every sampler. */
  readonly #samplers = new Map<string, string>();
  #lastJob: Promise<unknown> = Promise.resolve();

  private constructor(served: readonly ServedModel[], workers: ComputeWorkers) {
    this.#workers = workers;
    this.#served = new Map(served.map((model) => [model.name, model]));
    this.models = served.map(({ name, dir, config: { maxPositions, vocabSize } }) => {
      return { name, maxContextLength: maxPositions, vocabSize, tokenizerId: dir };
    });
  }

  /** Loads the models. */
  static async start({ models, threads, limits }: HostOptions): Promise<EngineHost> {
    const known = models.map(({ name, dir }) => ({ name, dir, config: readConfig(dir) }));
    return new EngineHost(known, await ComputeWorkers.start(known, threads, limits));
  }

  createModel(modelId: string, spec: ModelSpec): Promise<void> {
    return this.#job(() => {
      const { name, config } = this.#servedModel(spec.baseModel);
      if (this.#training.has(modelId))
        throw new EngineError(
          "engine/adapter-exists",
          `There is a model "${modelId}" already. Choose another id, or unload it.`,
        );
      this.#training.set(modelId, { spec, trainer: new Trainer(config, spec.lora, this.#workers.runner(name)) });
    });
  }

  unloadModel(modelId: string): Promise<void> {
    return this.#job(() => void this.#training.delete(modelId));
  }

  forwardBackward(modelId: string, batch: TrainingBatch): Promise<TrainingOutput> {
    return this.#job(() => this.#model(modelId).trainer.forwardBackward(batch));
  }

  optimStep(modelId: string, adam: AdamSettings): Promise<Readonly<Record<string, number>>> {
    return this.#job(() => this.#model(modelId).trainer.optimStep(adam));
  }

  saveState(modelId: string, dir: string): Promise<void> {
    return this.#job(() => {
      const { trainer, spec } = this.#model(modelId);
      saveTrainingState(dir, trainer.exportState(), spec);
    });
  }

  loadState(modelId: string, dir: string, options: { optimizer: boolean }): Promise<void> {
    return this.#job(() => {
      const { trainer, spec } = this.#model(modelId);
      const shapes = adapterShapes(this.#servedModel(spec.baseModel).config, spec.lora);
      const weights = loadAdapter(dir, shapes);
      trainer.importState(options.optimizer ? { weights, optimizer: loadOptimizer(dir, shapes) } : { weights });
    });
  }

  saveForSampler(modelId: string, dir: string): Promise<void> {
    return this.#job(() => {
      const { trainer, spec } = this.#model(modelId);
      saveAdapter(dir, trainer.weights(), spec);
    });
  }

  createSampler(samplerId: string, source: SamplerSource): Promise<void> {
    return this.#job(async () => {
      const { model, adapter } = this.#weightsOf(source);
      await this.#workers.createSampler(samplerId, model, adapter);
      this.#samplers.set(samplerId, model);
    });
  }

  /** Requests under way finish; new ones are refused. */
  async releaseSampler(samplerId: string): Promise<void> {
    const model = this.#samplers.get(samplerId);
    this.#samplers.delete(samplerId);
    if (model !== undefined) await this.#workers.releaseSampler(samplerId, model);
  }

  sample(samplerId: string, request: RunnableRequest, onToken?: OnToken): RunningRequest {
    const model = this.#samplers.get(samplerId);
    if (model === undefined) throw unknownSampler(samplerId);
    const running = this.#workers.sample(model, samplerId, request, onToken);
    // A sampler that failed once would fail again.
    running.result.catch(() => this.releaseSampler(samplerId));
    return running;
  }

  async close(): Promise<void> {
    this.#samplers.clear();
    this.#training.clear();
    await this.#workers.close();
  }

  #weightsOf(source: SamplerSource): { model: string; adapter?: FrozenAdapter } {
    if (source.kind === "live") {
      const { trainer, spec } = this.#model(source.modelId);
      return { model: spec.baseModel, adapter: { weights: trainer.weights(), lora: spec.lora } };
    }
    const { name, config } = this.#servedModel(source.baseModel);
    if (source.kind === "base") return { model: name };
    const lora = readLora(source.dir, config);
    return { model: name, adapter: { weights: loadAdapter(source.dir, adapterShapes(config, lora)), lora } };
  }

  #servedModel(name: string): ServedModel {
    const served = this.#served.get(name);
    if (served) return served;
    const names = [...this.#served.keys()].join(", ");
    throw new EngineError("engine/unknown-model", `This engine has no model "${name}". It serves ${names}.`);
  }

  #model(modelId: string): TrainedModel {
    const model = this.#training.get(modelId);
    if (model) return model;
    throw new EngineError("engine/unknown-adapter", `There is no model "${modelId}". Create it first.`);
  }

  /** Work runs in the order it was asked for, one after the other. */
  #job<T>(work: () => T | Promise<T>): Promise<T> {
    const job = this.#lastJob.then(work);
    this.#lastJob = job.catch(() => {});
    return job;
  }
}
