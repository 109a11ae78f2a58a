// A compute worker of the engine: one thread with its own copy of a model's weights, its own compiled graphs, samplers that
// advance token by token, and runs of the trainer in between. Samplers get as much time as training takes, and each of them as
// much as any other: one with few requests does not wait for another's hundreds.
import { performance } from "node:perf_hooks";
import { nextTurn } from "../core/turns.ts";
import type { AdapterWeights } from "./architecture.ts";
import { BaseModel } from "./base-model.ts";
import type { LoraSpec } from "./engine.ts";
import { EngineError } from "./errors.ts";
import { type OnToken, type RunnableRequest, type RunningRequest, Sampler, type SamplerLimits } from "./sampler.ts";
import { LocalRunner, type PlainFeeds, type RunOutputs, type TrainingRun } from "./training-runner.ts";

export interface ComputeWorkerOptions {
  /** `threads`: of the sessions that this worker runs. */
  models: readonly { name: string; dir: string; threads: number }[];
  limits: SamplerLimits;
}

/** An adapter for a sampler. */
export interface FrozenAdapter {
  weights: AdapterWeights;
  lora: LoraSpec;
}

interface ActiveSampler {
  readonly id: string;
  sampler: Sampler;
  released: boolean;
  /** Milliseconds of computing it has used; one that was idle begins level with the others. */
  usedMs: number;
}

export class ComputeWorker {
  readonly #limits: SamplerLimits;
  readonly #models = new Map<string, { base: BaseModel; runner: LocalRunner }>();
  readonly #samplers = new Map<string, ActiveSampler>();
  readonly #jobs: (() => Promise<void>)[] = [];
  /** What the runs of the training call under way share. */
  #shared: PlainFeeds = {};
  /** Milliseconds that samplers may still run before the next job. */
  #samplingShareMs = 0;
  #looping = false;

  constructor({ models, limits }: ComputeWorkerOptions) {
    this.#limits = limits;
    for (const { name, dir, threads } of models) {
      const base = new BaseModel(name, dir, threads);
      this.#models.set(name, { base, runner: new LocalRunner(base.config, base.weights, threads) });
    }
  }

  /** Computes one training run. `shared` is given with the first run of a training call. */
  train(model: string, shared: PlainFeeds | undefined, run: TrainingRun): Promise<RunOutputs> {
    return this.#job(async () => {
      this.#shared = shared ?? this.#shared;
      return (await this.#models.get(model)!.runner.run(this.#shared, [run]))[0]!;
    });
  }

  createSampler(samplerId: string, model: string, adapter?: FrozenAdapter): Promise<void> {
    return this.#job(async () => {
      const { base } = this.#models.get(model)!;
      const snapshot = adapter ? await base.snapshot(adapter.weights, adapter.lora) : base.baseSnapshot();
      const sampler = new Sampler(base.config, snapshot, this.#limits);
      this.#samplers.set(samplerId, { id: samplerId, sampler, released: false, usedMs: 0 });
    });
  }

  /** Requests under way finish. */
  releaseSampler(samplerId: string): void {
    const active = this.#samplers.get(samplerId);
    if (!active) return;
    active.released = true;
    if (!active.sampler.busy) this.#samplers.delete(samplerId);
  }

  sample(samplerId: string, request: RunnableRequest, onToken?: OnToken): RunningRequest {
    const active = this.#samplers.get(samplerId);
    if (!active) throw unknownSampler(samplerId);
    // Idle time is not credited.
    if (!active.sampler.busy) active.usedMs = Math.max(active.usedMs, this.#next()?.usedMs ?? 0);
    const running = active.sampler.submit(request, onToken);
    this.#wake();
    return running;
  }

  async close(): Promise<void> {
    this.#samplers.clear();
    for (const { base, runner } of this.#models.values()) {
      await runner.close();
      await base.close();
    }
  }

  #job<T>(work: () => Promise<T>): Promise<T> {
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
      const next = this.#next();
      if (this.#jobs.length === 0 && !next) break;
      const start = performance.now();
      if (this.#jobs.length > 0 && (!next || this.#samplingShareMs <= 0)) {
        await this.#jobs.shift()!();
        this.#samplingShareMs = performance.now() - start;
      } else {
        await this.#advance(next!);
        const ms = performance.now() - start;
        next!.usedMs += ms;
        this.#samplingShareMs -= ms;
      }
      await nextTurn(); // lets new requests in
    }
    this.#looping = false;
  }

  /** The sampler with work that has used the least time. */
  #next(): ActiveSampler | undefined {
    let least: ActiveSampler | undefined;
    for (const active of this.#samplers.values())
      if (active.sampler.busy && (!least || active.usedMs < least.usedMs)) least = active;
    return least;
  }

  async #advance(active: ActiveSampler): Promise<void> {
    try {
      await active.sampler.advance();
    } catch {
      this.#samplers.delete(active.id); // its requests have failed
    }
    if (active.released && !active.sampler.busy) this.#samplers.delete(active.id);
  }
}

export function unknownSampler(samplerId: string): EngineError {
  return new EngineError("engine/unknown-sampler", `There is no sampler "${samplerId}". Create it first.`);
}
