// The threads that compute. A model small enough that every thread can have its own copy is spread over all of them, each running
// graphs of one thread: threads that need not wait for each other after every node of a graph get twice as much done. A larger model
// is on the first alone, whose graphs then use all threads.
import { type DecoderConfig, parameterCount } from "./architecture.ts";
import type { ComputeWorkerOptions, FrozenAdapter } from "./compute.ts";
import type { OnToken, RunnableRequest, RunningRequest, SamplerLimits } from "./sampler.ts";
import { EngineThread } from "./thread.ts";
import { defaultMemoryLimit } from "./training-memory.ts";
import type { PlainFeeds, RunOutputs, TrainingRun, TrainingRunner } from "./training-runner.ts";

/** Models up to this size are spread. */
const spreadLimitBytes = 64 * 2 ** 20;
const maxWorkers = 16;
/** What a sample without a limit counts as. */
const assumedTokens = 256;

export interface ServedModel {
  name: string;
  dir: string;
  config: DecoderConfig;
}

interface Member {
  thread: EngineThread;
  /** Tokens that the requests under way may still take. */
  load: number;
}

export class ComputeWorkers {
  readonly #members: readonly Member[];
  readonly #spread: ReadonlySet<string>;

  private constructor(members: readonly Member[], spread: ReadonlySet<string>) {
    this.#members = members;
    this.#spread = spread;
  }

  static async start(models: readonly ServedModel[], threads: number, limits: SamplerLimits): Promise<ComputeWorkers> {
    const spread = new Set(
      models.filter(({ config }) => 4 * parameterCount(config) <= spreadLimitBytes).map(({ name }) => name),
    );
    const size = spread.size > 0 ? Math.min(threads, maxWorkers) : 1;
    const starts = Array.from({ length: size }, (_, index) => {
      const served = models.filter(({ name }) => index === 0 || spread.has(name));
      const options: ComputeWorkerOptions = {
        models: served.map(({ name, dir }) => ({
          name,
          dir,
          threads: spread.has(name) ? Math.floor(threads / size) : threads,
        })),
        limits: {
          maxBatchRows: Math.ceil(limits.maxBatchRows / size),
          promptCacheBytes: Math.floor(limits.promptCacheBytes / size),
        },
      };
      return EngineThread.start(new URL("./compute-worker.ts", import.meta.url), options, (error) => {
        throw error; // ends the host, and with it every request
      });
    });
    const settled = await Promise.allSettled(starts);
    const members = settled.flatMap((one) => (one.status === "fulfilled" ? [{ thread: one.value, load: 0 }] : []));
    const workers = new ComputeWorkers(members, spread);
    const failed = settled.find((one) => one.status === "rejected");
    if (!failed) return workers;
    await workers.close();
    throw failed.reason;
  }

  async createSampler(samplerId: string, model: string, adapter?: FrozenAdapter): Promise<void> {
    await Promise.all(this.#of(model).map(({ thread }) => thread.call("createSampler", [samplerId, model, adapter])));
  }

  async releaseSampler(samplerId: string, model: string): Promise<void> {
    await Promise.all(this.#of(model).map(({ thread }) => thread.call("releaseSampler", [samplerId])));
  }

  /** Gives a request to the worker that has the least to do. Its result is the same on any of them. */
  sample(model: string, samplerId: string, request: RunnableRequest, onToken?: OnToken): RunningRequest {
    const chosen = this.#of(model).reduce((least, member) => (member.load < least.load ? member : least));
    const { prompt, numSamples, settings } = request;
    const load = prompt.length + numSamples * (settings.maxTokens ?? assumedTokens);
    chosen.load += load;
    let counted = true;
    const done = (): void => {
      if (counted) chosen.load -= load;
      counted = false;
    };
    const running = chosen.thread.sample(samplerId, request, onToken);
    const cancel = (): void => {
      done();
      running.cancel();
    };
    return { ...running, result: running.result.finally(done), cancel };
  }

  /** A trainer's runs of `model`, each on whichever worker is free next. */
  runner(model: string): TrainingRunner {
    return { run: (shared, runs) => this.#train(model, shared, runs) };
  }

  async close(): Promise<void> {
    await Promise.all(this.#members.map(({ thread }) => thread.close()));
  }

  async #train(model: string, shared: PlainFeeds, runs: readonly TrainingRun[]): Promise<RunOutputs[]> {
    const outputs: RunOutputs[] = [];
    const limit = defaultMemoryLimit();
    let [next, bytes] = [0, 0];
    let failure: { error: unknown } | undefined;
    const work = async ({ thread }: Member, first: boolean): Promise<void> => {
      let sent = false;
      while (next < runs.length && !failure) {
        // Runs that together would not fit into memory are the first worker's, one after the other.
        if (!first && bytes + runs[next]!.bytes > limit) return;
        const index = next++;
        const run = runs[index]!;
        bytes += run.bytes;
        try {
          outputs[index] = await thread.call<RunOutputs>("train", [model, sent ? undefined : shared, run]);
        } catch (error) {
          failure ??= { error };
        }
        sent = true;
        bytes -= run.bytes;
      }
    };
    await Promise.all(this.#of(model).map((member, index) => work(member, index === 0)));
    if (failure) throw failure.error;
    return outputs;
  }

  #of(model: string): readonly Member[] {
    return this.#spread.has(model) ? this.#members : this.#members.slice(0, 1);
  }
}
