// Where metrics go besides metrics.jsonl: each sink gets every complete record, in order. A sink that fails is told the next record
// all the same; it never stops training.
import { messageOf } from "../core/errors.ts";
import type { Journal } from "./journal.ts";
import type { Logger } from "./log.ts";
import { type MetricsRecord, MetricsRecords } from "./records.ts";

export interface MetricsSink {
  readonly name: string;
  /** The records of earlier sessions, once, before the first new one: what of them is missing there may be sent. */
  catchUp?(history: readonly MetricsRecord[]): void;
  metrics(record: MetricsRecord): void;
  /** `exitCode` is the process's; what is still to be sent is sent. */
  close(exitCode: number): void | Promise<void>;
}

/** Sends every record of a journal to all sinks. */
export class SinkGroup {
  readonly #sinks: readonly MetricsSink[];
  readonly #logger: Logger;

  constructor(sinks: readonly MetricsSink[], logger: Logger, journal: Journal) {
    this.#sinks = sinks;
    this.#logger = logger;
    const records = new MetricsRecords();
    const history: MetricsRecord[] = [];
    if (sinks.length > 0) for (const { event } of journal.entries()) history.push(...records.take(event));
    for (const sink of sinks) this.#try(sink, () => sink.catchUp?.(history));
    journal.listen((event) => {
      for (const record of records.take(event))
        for (const sink of this.#sinks) this.#try(sink, () => sink.metrics(record));
    });
  }

  /** Waits for what is under way, then closes every sink. */
  async close(exitCode: number): Promise<void> {
    for (const sink of this.#sinks) {
      try {
        await sink.close(exitCode);
      } catch (error) {
        this.#logger.warn(`${sink.name}: ${messageOf(error)}`);
      }
    }
  }

  #try(sink: MetricsSink, act: () => void): void {
    try {
      act();
    } catch (error) {
      this.#logger.warn(`${sink.name}: ${messageOf(error)}`);
    }
  }
}
