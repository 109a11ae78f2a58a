// Where metrics go besides metrics.jsonl. A sink that fails warns once and is left out from then on; it never stops training.
import { messageOf } from "../core/errors.ts";
import type { Logger } from "./log.ts";

export type Metrics = Readonly<Record<string, number | string>>;

export interface MetricsSink {
  readonly name: string;
  metrics(step: number, metrics: Metrics): void | Promise<void>;
  /** The address of a page that shows the run, if the sink has one. */
  readonly url?: string | undefined;
  close(): void | Promise<void>;
}

/** Sends every record to all sinks, in order and without waiting for slow ones. */
export class SinkGroup {
  readonly #sinks: MetricsSink[];
  readonly #logger: Logger;
  readonly #failed = new Set<MetricsSink>();
  #pending: Promise<void> = Promise.resolve();

  constructor(sinks: readonly MetricsSink[], logger: Logger) {
    this.#sinks = [...sinks];
    this.#logger = logger;
  }

  get urls(): string[] {
    return this.#sinks.flatMap((sink) => (sink.url === undefined ? [] : [sink.url]));
  }

  metrics(step: number, metrics: Metrics): void {
    for (const sink of this.#sinks) this.#try(sink, () => sink.metrics(step, metrics));
  }

  /** Waits for what is under way, then closes every sink. */
  async close(): Promise<void> {
    await this.#pending;
    for (const sink of this.#sinks) {
      try {
        await sink.close();
      } catch (error) {
        this.#warn(sink, error);
      }
    }
  }

  #try(sink: MetricsSink, act: () => void | Promise<void>): void {
    if (this.#failed.has(sink)) return;
    try {
      const result = act();
      if (result)
        this.#pending = Promise.all([this.#pending, result.catch((error) => this.#warn(sink, error))]).then(() => {});
    } catch (error) {
      this.#warn(sink, error);
    }
  }

  #warn(sink: MetricsSink, error: unknown): void {
    if (this.#failed.has(sink)) return;
    this.#failed.add(sink);
    this.#logger.warn(`${sink.name} failed and is left out from here on: ${messageOf(error)}`);
  }
}
