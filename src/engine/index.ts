// The embedded engine as the server uses it: the Engine interface over a worker thread that computes, so that the thread that
// serves is always free.
import "../graph/no-telemetry.ts";
import { setMaxListeners } from "node:events";
import { resolve } from "node:path";
import { defaultThreads } from "./default-threads.ts";
import type {
  AdamSettings,
  Engine,
  EngineModelInfo,
  ModelSpec,
  SampleOutput,
  SampleRequest,
  SamplerSource,
  TrainingBatch,
  TrainingOutput,
} from "./engine.ts";
import type { HostOptions } from "./host.ts";
import type { CallArguments, CallName, CallResult } from "./messages.ts";
import { defaultSamplerLimits, type SamplerLimits } from "./sampler.ts";
import { StopWatch } from "./stop-watch.ts";
import { EngineThread } from "./thread.ts";

export interface EmbeddedEngineOptions {
  /** The models to serve: the name that clients ask for, and the Hugging Face folder. */
  models: readonly { name: string; dir: string }[];
  /** Threads that compute; when left out, OMP_NUM_THREADS, else all cores. */
  threads?: number;
  limits?: Partial<SamplerLimits>;
}

/** Loads the models and starts the engine. */
export async function createEmbeddedEngine(options: EmbeddedEngineOptions): Promise<Engine> {
  const data: HostOptions = {
    models: options.models.map(({ name, dir }) => ({ name, dir: resolve(dir) })),
    threads: options.threads ?? defaultThreads(),
    limits: { ...defaultSamplerLimits, ...options.limits },
  };
  const thread = await EngineThread.start(new URL("./host-worker.ts", import.meta.url), data);
  return new EmbeddedEngine(thread);
}

class EmbeddedEngine implements Engine {
  readonly models: readonly EngineModelInfo[];
  readonly #thread: EngineThread;

  constructor(thread: EngineThread) {
    this.models = thread.greeting as readonly EngineModelInfo[];
    this.#thread = thread;
  }

  createModel(modelId: string, spec: ModelSpec): Promise<void> {
    return this.#call("createModel", modelId, spec);
  }

  unloadModel(modelId: string): Promise<void> {
    return this.#call("unloadModel", modelId);
  }

  forwardBackward(modelId: string, batch: TrainingBatch): Promise<TrainingOutput> {
    return this.#call("forwardBackward", modelId, batch);
  }

  optimStep(modelId: string, adam: AdamSettings): Promise<Readonly<Record<string, number>>> {
    return this.#call("optimStep", modelId, adam);
  }

  saveState(modelId: string, dir: string): Promise<void> {
    return this.#call("saveState", modelId, dir);
  }

  loadState(modelId: string, dir: string, options: { optimizer: boolean }): Promise<void> {
    return this.#call("loadState", modelId, dir, options);
  }

  saveForSampler(modelId: string, dir: string): Promise<void> {
    return this.#call("saveForSampler", modelId, dir);
  }

  createSampler(samplerId: string, source: SamplerSource): Promise<void> {
    return this.#call("createSampler", samplerId, source);
  }

  releaseSampler(samplerId: string): Promise<void> {
    return this.#call("releaseSampler", samplerId);
  }

  sample(samplerId: string, request: SampleRequest, options: { signal?: AbortSignal } = {}): Promise<SampleOutput> {
    const { signal } = options;
    const { shouldStop, ...settings } = request.settings;
    return new Promise<SampleOutput>((resolveSample, reject) => {
      signal?.throwIfAborted();
      const stops = shouldStop ? new StopWatch(shouldStop) : undefined;
      const watch = (sample: number, token: number): void => {
        try {
          const length = stops!.add(sample, token);
          if (length !== undefined) running.stop(sample, length);
        } catch (error) {
          // The caller's own check failed: its request fails, and nothing else.
          running.cancel();
          reject(error as Error);
        }
      };
      const running = this.#thread.sample(samplerId, { ...request, settings }, stops && watch);
      const onAbort = (): void => {
        running.cancel();
        reject(signal!.reason as Error);
      };
      if (signal) {
        setMaxListeners(0, signal); // one signal may end any number of requests
        signal.addEventListener("abort", onAbort, { once: true });
      }
      running.result
        .then((output) => resolveSample(stops ? stops.applyTo(output) : output))
        .catch(reject)
        .finally(() => signal?.removeEventListener("abort", onAbort));
    });
  }

  close(): Promise<void> {
    return this.#thread.close();
  }

  #call<Name extends CallName>(name: Name, ...args: CallArguments<Name>): Promise<CallResult<Name>> {
    return this.#thread.call(name, args);
  }
}
