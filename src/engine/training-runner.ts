// Runs training graphs. What goes in and comes out are plain arrays, so that a run can be computed on another thread.
import { floats, Session, Sessions, type Value, value } from "../graph/index.ts";
import type { DecoderConfig, Weights } from "./architecture.ts";
import { type TrainingGraphSpec, trainingGraph } from "./training-graph.ts";
import { RopeTables } from "./transformer.ts";

export interface PlainValue {
  data: Float32Array | Int32Array;
  shape: readonly number[];
}
export type PlainFeeds = Readonly<Record<string, PlainValue>>;
/** Outputs by name, all of them floats. */
export type RunOutputs = Readonly<Record<string, Float32Array>>;

/** One run of a training graph: everything it is fed but the base's weights, the rotary tables and what all runs share. */
export interface TrainingRun {
  graph: TrainingGraphSpec;
  feeds: PlainFeeds;
  /** About how much memory it takes. */
  bytes: number;
}

export interface TrainingRunner {
  /** Computes runs that share some of their feeds (the adapter, the loss's settings); outputs in the order of the runs. */
  run(shared: PlainFeeds, runs: readonly TrainingRun[]): Promise<RunOutputs[]>;
}

/** Computes on the calling thread, and blocks it meanwhile. */
export class LocalRunner implements TrainingRunner {
  readonly #config: DecoderConfig;
  readonly #threads: number;
  readonly #base: Readonly<Record<string, Value>>;
  readonly #sessions = new Sessions();
  #rope: RopeTables | undefined;

  /** The weights are used in place: they must not change. */
  constructor(config: DecoderConfig, weights: Weights, threads: number) {
    this.#config = config;
    this.#threads = threads;
    this.#base = toValues(Object.fromEntries(weights));
  }

  async run(shared: PlainFeeds, runs: readonly TrainingRun[]): Promise<RunOutputs[]> {
    const sharedValues = toValues(shared);
    const results: RunOutputs[] = [];
    for (const { graph, feeds } of runs) {
      const session = await this.#sessions.get(JSON.stringify(graph), () =>
        Session.compile(trainingGraph(this.#config, graph), this.#threads),
      );
      this.#rope ??= new RopeTables(this.#config);
      // Up to the last position that is used.
      const rope = this.#rope.feeds((feeds["positions"]!.data as Int32Array).reduce((a, b) => Math.max(a, b), 0) + 1);
      const outputs = await session.run({ ...this.#base, ...sharedValues, ...rope, ...toValues(feeds) });
      results.push(Object.fromEntries(Object.entries(outputs).map(([name, output]) => [name, floats(output)])));
    }
    return results;
  }

  close(): Promise<void> {
    return this.#sessions.release();
  }
}

export function toValues(feeds: PlainFeeds): Record<string, Value> {
  return Object.fromEntries(Object.entries(feeds).map(([name, { data, shape }]) => [name, value(data, shape)]));
}
