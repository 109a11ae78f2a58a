// The embedded engine as the server uses it: the Engine interface over a worker thread that computes, so that the thread that
// serves is always free.
import "../graph/no-telemetry.ts";
import { setMaxListeners } from "node:events";
import { availableParallelism } from "node:os";
import { resolve } from "node:path";
import type { Worker } from "node:worker_threads";
import { startWorker } from "../core/workers.ts";
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
import { EngineError } from "./errors.ts";
import type { HostOptions } from "./host.ts";
import {
  type CallArguments,
  type CallName,
  type CallResult,
  type FromWorker,
  fromPlain,
  type ToWorker,
} from "./messages.ts";
import { defaultSamplerLimits, type SamplerLimits } from "./sampler.ts";
import { StopWatch } from "./stop-watch.ts";

export interface EmbeddedEngineOptions {
  /** The models to serve: the name that clients ask for, and the Hugging Face folder. */
  models: readonly { name: string; dir: string }[];
  /** Threads that compute; all cores when left out. */
  threads?: number;
  limits?: Partial<SamplerLimits>;
}

/** Loads the models and starts the engine. */
export async function createEmbeddedEngine(options: EmbeddedEngineOptions): Promise<Engine> {
  const data: HostOptions = {
    models: options.models.map(({ name, dir }) => ({ name, dir: resolve(dir) })),
    threads: options.threads ?? availableParallelism(),
    limits: { ...defaultSamplerLimits, ...options.limits },
  };
  const worker = startWorker(new URL("./worker.ts", import.meta.url), data);
  return new Promise<Engine>((resolveEngine, reject) => {
    const onError = (error: unknown): void => reject(died(String(error)));
    const onExit = (code: number): void => reject(died(`it exited with code ${code} while starting`));
    worker.once("error", onError);
    worker.once("exit", onExit);
    worker.once("message", (message: FromWorker) => {
      worker.off("error", onError).off("exit", onExit);
      if (message.kind === "ready") {
        resolveEngine(new EmbeddedEngine(worker, message.models));
        return;
      }
      const error = message.kind === "failed-start" ? fromPlain(message.error) : died("it sent no greeting");
      void worker.terminate().then(() => reject(error));
    });
  });
}

interface Pending {
  resolve(value: never): void;
  reject(error: Error): void;
  stops?: StopWatch;
}

class EmbeddedEngine implements Engine {
  readonly models: readonly EngineModelInfo[];
  readonly #worker: Worker;
  readonly #pending = new Map<number, Pending>();
  #nextId = 0;
  #gone: EngineError | undefined;

  constructor(worker: Worker, models: readonly EngineModelInfo[]) {
    this.models = models;
    this.#worker = worker;
    worker.on("message", (message: FromWorker) => this.#receive(message));
    worker.on("error", (error) => this.#fail(died(String(error))));
    worker.on("exit", () => this.#fail(died("its thread ended")));
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
      const id = this.#nextId++;
      const onAbort = (): void => {
        if (!this.#pending.delete(id)) return;
        this.#send({ kind: "cancel", id });
        reject(signal!.reason as Error);
      };
      if (signal) {
        setMaxListeners(0, signal); // one signal may end any number of requests
        signal.addEventListener("abort", onAbort, { once: true });
      }
      const stops = shouldStop ? new StopWatch(shouldStop) : undefined;
      this.#register(id, {
        resolve: (output: SampleOutput) => {
          signal?.removeEventListener("abort", onAbort);
          resolveSample(stops ? stops.applyTo(output) : output);
        },
        reject: (error) => {
          signal?.removeEventListener("abort", onAbort);
          reject(error);
        },
        ...(stops ? { stops } : {}),
      });
      this.#send({ kind: "sample", id, samplerId, request: { ...request, settings }, watched: stops !== undefined });
    });
  }

  async close(): Promise<void> {
    if (this.#gone) return;
    const ended = new Promise<void>((resolveEnd) => this.#worker.once("exit", () => resolveEnd()));
    await this.#call("close").catch(() => {});
    await this.#worker.terminate();
    await ended;
  }

  #call<Name extends CallName>(name: Name, ...args: CallArguments<Name>): Promise<CallResult<Name>> {
    return new Promise((resolveCall, reject) => {
      const id = this.#nextId++;
      this.#register(id, { resolve: resolveCall, reject });
      this.#send({ kind: "call", id, name, args });
    });
  }

  #register(id: number, pending: Pending): void {
    if (this.#gone) pending.reject(this.#gone);
    else this.#pending.set(id, pending);
  }

  #send(message: ToWorker): void {
    if (!this.#gone) this.#worker.postMessage(message);
  }

  #receive(message: FromWorker): void {
    if (message.kind === "tokens") {
      for (const [id, sample, token] of message.tokens) this.#watch(id, sample, token);
      return;
    }
    if (message.kind !== "result" && message.kind !== "error") return;
    const pending = this.#pending.get(message.id);
    this.#pending.delete(message.id);
    if (message.kind === "result") pending?.resolve(message.value as never);
    else pending?.reject(fromPlain(message.error));
  }

  #watch(id: number, sample: number, token: number): void {
    const pending = this.#pending.get(id);
    if (!pending?.stops) return;
    try {
      const length = pending.stops.add(sample, token);
      if (length !== undefined) this.#send({ kind: "stop", id, sample, length });
    } catch (error) {
      // The caller's own check failed: its request fails, and nothing else.
      this.#pending.delete(id);
      this.#send({ kind: "cancel", id });
      pending.reject(error as Error);
    }
  }

  #fail(error: EngineError): void {
    this.#gone ??= error;
    const waiting = [...this.#pending.values()];
    this.#pending.clear();
    for (const { reject } of waiting) reject(this.#gone);
  }
}

function died(what: string): EngineError {
  return new EngineError("engine/worker-died", `The engine's worker thread is gone: ${what}. Restart the server.`, {
    fault: "server",
  });
}
