// Where metrics go besides metrics.jsonl: each sink gets every complete record, in order. A sink that fails still gets
// the next record; it never stops training.
import type { z } from "zod";
import { messageOf } from "../core/errors.ts";
import type { RunEvent } from "./events.ts";
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

/** What a sink is opened with besides its settings. */
export interface SinkContext {
  runPath: string;
  logger: Logger;
  /** The config as it is written into config.json. */
  record: Readonly<Record<string, unknown>>;
}

/** A kind of sink: the settings that ask for it, and how it is opened. */
export interface SinkKind<Keys extends z.ZodRawShape = z.ZodRawShape> {
  readonly keys: Keys;
  /** Resolves to undefined where it is not asked for, or cannot be opened, which is logged. */
  open(settings: z.output<z.ZodObject<Keys>>, context: SinkContext): Promise<MetricsSink | undefined>;
}

/** Sends every record of a journal to all sinks. */
export class SinkGroup {
  readonly #logger: Logger;
  readonly #records = new MetricsRecords();
  /** What was there before the sinks. */
  #history: MetricsRecord[] = [];
  #sinks: readonly MetricsSink[] | undefined;

  constructor(logger: Logger) {
    this.#logger = logger;
  }

  open(sinks: readonly MetricsSink[]): void {
    this.#sinks = sinks;
    for (const sink of sinks) this.#try(sink, () => sink.catchUp?.(this.#history));
    this.#history = [];
  }

  take(event: RunEvent): void {
    for (const record of this.#records.take(event)) {
      if (!this.#sinks) this.#history.push(record);
      for (const sink of this.#sinks ?? []) this.#try(sink, () => sink.metrics(record));
    }
  }

  /** Waits for what is under way, then closes every sink. */
  async close(exitCode: number): Promise<void> {
    for (const sink of this.#sinks ?? []) {
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
