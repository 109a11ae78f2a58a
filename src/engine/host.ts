// Everything that computes, on the thread it runs on: the loaded models, their trainers and samplers, and whose turn it is.
// Training calls run one after another; samplers advance step by step in between, and get as much time as training takes.
import { performance } from "node:perf_hooks";
import { nextTurn } from "../core/turns.ts";
import { BaseModel } from "./base-model.ts";
import { loadAdapter, loadOptimizer, readLora, saveAdapter, saveTrainingState } from "./checkpoint.ts";
import type {
  AdamSettings,
  EngineModelInfo,
  LoraSpec,
  ModelSpec,
  SampleOutput,
  SamplerSource,
  TrainingBatch,
  TrainingOutput,
} from "./engine.ts";
import { EngineError } from "./errors.ts";
import { adaptedLayers, loraA, loraB } from "./lora.ts";
import type { Qwen3Config } from "./model-types.ts";
import { type RunnableRequest, type RunningRequest, Sampler, type SamplerLimits } from "./sampler.ts";
import { Trainer } from "./trainer.ts";

export interface HostOptions {
  models: readonly { name: string; dir: string }[];
  threads: number;
  limits: SamplerLimits;
}

interface ServedModel {
  base: BaseModel;
  trainer: Trainer;
}

interface ActiveSampler {
  sampler: Sampler;
  /** Fails a request that is under way. */
  inFlight: Set<(error: unknown) => void>;
  released: boolean;
}

export class EngineHost {
  readonly models: readonly EngineModelInfo[];
  readonly #limits: SamplerLimits;
  readonly #served = new Map<string, ServedModel>();
  readonly #training = new Map<string, { served: ServedModel; spec: ModelSpec }>();
  readonly #samplers = new Map<string, ActiveSampler>();
  readonly #jobs: (() => Promise<void>)[] = [];
  /** Milliseconds that samplers may still run before the next job. */
  #samplingShareMs = 0;
  #looping = false;

  constructor(options: HostOptions) {
    this.#limits = options.limits;
    for (const { name, dir } of options.models) {
      const base = new BaseModel(name, dir, options.threads);
      const trainer = new Trainer(base.config, base.weights, { threads: options.threads });
      this.#served.set(name, { base, trainer });
    }
    this.models = options.models.map(({ name, dir }) => {
      const { maxPositions, vocabSize } = this.#served.get(name)!.base.config;
      return { name, maxContextLength: maxPositions, vocabSize, tokenizerId: dir };
    });
  }

  createModel(modelId: string, spec: ModelSpec): Promise<void> {
    return this.#job(() => {
      const served = this.#servedModel(spec.baseModel);
      served.trainer.createAdapter(modelId, spec.lora);
      this.#training.set(modelId, { served, spec });
    });
  }

  unloadModel(modelId: string): Promise<void> {
    return this.#job(() => {
      this.#training.get(modelId)?.served.trainer.removeAdapter(modelId);
      this.#training.delete(modelId);
    });
  }

  forwardBackward(modelId: string, batch: TrainingBatch): Promise<TrainingOutput> {
    return this.#job(() => this.#model(modelId).served.trainer.forwardBackward(modelId, batch));
  }

  optimStep(modelId: string, adam: AdamSettings): Promise<Readonly<Record<string, number>>> {
    return this.#job(() => this.#model(modelId).served.trainer.optimStep(modelId, adam));
  }

  saveState(modelId: string, dir: string): Promise<void> {
    return this.#job(() => {
      const { served, spec } = this.#model(modelId);
      const { weights, optimizer } = served.trainer.exportState(modelId);
      saveTrainingState(dir, weights, optimizer, spec);
    });
  }

  loadState(modelId: string, dir: string, options: { optimizer: boolean }): Promise<void> {
    return this.#job(() => {
      const { served, spec } = this.#model(modelId);
      const shapes = adapterShapes(served.base.config, spec.lora);
      const weights = loadAdapter(dir, shapes);
      const optimizer = options.optimizer ? { optimizer: loadOptimizer(dir, shapes) } : {};
      served.trainer.importState(modelId, { weights, ...optimizer });
    });
  }

  saveForSampler(modelId: string, dir: string): Promise<void> {
    return this.#job(() => {
      const { served, spec } = this.#model(modelId);
      saveAdapter(dir, served.trainer.adapterWeights(modelId), spec);
    });
  }

  createSampler(samplerId: string, source: SamplerSource): Promise<void> {
    return this.#job(async () => {
      const { model, snapshot } = await this.#snapshot(source);
      const sampler = new Sampler(model.config, snapshot, this.#limits);
      this.#samplers.set(samplerId, { sampler, inFlight: new Set(), released: false });
    });
  }

  /** Requests under way finish; new ones are refused. */
  releaseSampler(samplerId: string): void {
    const active = this.#samplers.get(samplerId);
    if (!active) return;
    active.released = true;
    if (!active.sampler.busy) this.#samplers.delete(samplerId);
  }

  sample(
    samplerId: string,
    request: RunnableRequest,
    onToken?: (sample: number, token: number) => void,
  ): RunningRequest {
    const active = this.#samplers.get(samplerId);
    if (!active || active.released) {
      throw new EngineError("engine/unknown-sampler", `There is no sampler "${samplerId}". Create it first.`);
    }
    const running = active.sampler.submit(request, onToken);
    const result = new Promise<SampleOutput>((resolve, reject) => {
      active.inFlight.add(reject);
      void running.result.then((output) => {
        active.inFlight.delete(reject);
        resolve(output);
      });
    });
    this.#wake();
    return { result, cancel: () => running.cancel(), stop: (sample, length) => running.stop(sample, length) };
  }

  async close(): Promise<void> {
    this.#samplers.clear();
    this.#training.clear();
    for (const { base, trainer } of this.#served.values()) {
      await trainer.close();
      await base.close();
    }
  }

  async #snapshot(source: SamplerSource) {
    if (source.kind === "live") {
      const { served, spec } = this.#model(source.modelId);
      const adapter = served.trainer.adapterWeights(source.modelId);
      return { model: served.base, snapshot: await served.base.snapshot(adapter, spec.lora) };
    }
    const { base } = this.#servedModel(source.baseModel);
    if (source.kind === "base") return { model: base, snapshot: await base.baseSnapshot() };
    const lora = readLora(source.dir);
    const adapter = loadAdapter(source.dir, adapterShapes(base.config, lora));
    return { model: base, snapshot: await base.snapshot(adapter, lora) };
  }

  #servedModel(name: string): ServedModel {
    const served = this.#served.get(name);
    if (served) return served;
    const names = [...this.#served.keys()].join(", ");
    throw new EngineError("engine/unknown-model", `This engine has no model "${name}". It serves ${names}.`);
  }

  #model(modelId: string): { served: ServedModel; spec: ModelSpec } {
    const model = this.#training.get(modelId);
    if (model) return model;
    throw new EngineError("engine/unknown-adapter", `There is no model "${modelId}". Create it first.`);
  }

  #job<T>(work: () => T | Promise<T>): Promise<T> {
    return new Promise<T>((resolve, reject) => {
      this.#jobs.push(async () => {
        try {
          resolve(await work());
        } catch (error) {
          reject(error as Error);
        }
      });
      this.#wake();
    });
  }

  #wake(): void {
    if (this.#looping) return;
    this.#looping = true;
    void this.#loop();
  }

  async #loop(): Promise<void> {
    for (;;) {
      const busy = [...this.#samplers].filter(([, { sampler }]) => sampler.busy);
      if (this.#jobs.length === 0 && busy.length === 0) break;
      const start = performance.now();
      if (this.#jobs.length > 0 && (busy.length === 0 || this.#samplingShareMs <= 0)) {
        await this.#jobs.shift()!();
        this.#samplingShareMs = performance.now() - start;
      } else {
        for (const [id, active] of busy) await this.#advance(id, active);
        this.#samplingShareMs -= performance.now() - start;
      }
      await nextTurn(); // lets new requests in
    }
    this.#looping = false;
  }

  async #advance(id: string, active: ActiveSampler): Promise<void> {
    try {
      await active.sampler.advance();
    } catch (error) {
      for (const reject of active.inFlight) reject(error);
      this.#samplers.delete(id);
    }
    if (active.released && !active.sampler.busy) this.#samplers.delete(id);
  }
}

/** The names and shapes of an adapter's parameters. */
function adapterShapes(config: Qwen3Config, lora: LoraSpec): Map<string, number[]> {
  const shapes = new Map<string, number[]>();
  for (const [layer, [out, inner]] of adaptedLayers(config, lora)) {
    shapes.set(loraA(layer), [lora.rank, inner]);
    shapes.set(loraB(layer), [out, lora.rank]);
  }
  return shapes;
}
