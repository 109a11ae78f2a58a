// The embedded engine as the server uses it: the Engine interface over a worker thread that computes, so that the thread that
// serves is always free.
import "../graph/no-telemetry.ts";
import { setMaxListeners } from "node:events";
import { resolve } from "node:path";
import { defaultThreads } from "./default-threads.ts";
import type { Engine, EngineModelInfo, SampleOutput, SampleRequest } from "./engine.ts";
import type { HostOptions } from "./host.ts";
import { type HostCalls, hostCalls } from "./messages.ts";
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
  const calls = hostCalls.map((name) => [name, (...args: unknown[]) => thread.call(name, args)] as const);
  return {
    ...(Object.fromEntries(calls) as unknown as HostCalls),
    models: thread.greeting as readonly EngineModelInfo[],
    sample: (samplerId, request, asked) => sampleOn(thread, samplerId, request, asked?.signal),
    close: () => thread.close(),
  };
}

/** Samples on the engine's thread. The caller's own stop is seen here, a little later. */
function sampleOn(
  thread: EngineThread,
  samplerId: string,
  request: SampleRequest,
  signal: AbortSignal | undefined,
): Promise<SampleOutput> {
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
    const running = thread.sample(samplerId, { ...request, settings }, stops && watch);
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
