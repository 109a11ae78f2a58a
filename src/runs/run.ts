// A run that is being written: its directory, its metrics, its log, its spans and whatever else listens. The order of writing is the
// contract for resuming: rollouts first, then metrics, then the checkpoint record.
import { mkdirSync, statfsSync } from "node:fs";
import { join } from "node:path";
import { messageOf } from "../core/errors.ts";
import { writeFileAtomic } from "../core/files.ts";
import { JsonLinesWriter, readJsonLines, toJsonLine } from "../core/jsonl.ts";
import { appendCheckpoint, type CheckpointRecord, dropStepsFrom } from "./checkpoints.ts";
import { lockRunDirectory, RunError, runFiles, writeRunConfig } from "./directory.ts";
import type { Display } from "./display.ts";
import { type Logger, RunLogger } from "./log.ts";
import { type RolloutRecord, stepFile, writeRollouts } from "./rollouts.ts";
import { type Metrics, type MetricsSink, SinkGroup } from "./sinks.ts";
import type { Span } from "./timing.ts";

/** Free space a run needs to start: less than this and it would die soon. */
const minimumFreeBytes = 32 * 1024 * 1024;

export class Run {
  readonly path: string;
  readonly logger: Logger;
  readonly display: Display;
  readonly #release: () => void;
  #sinks: SinkGroup;
  #metrics: JsonLinesWriter;
  #timing: JsonLinesWriter;

  /** Takes the directory for this process. `path` exists. */
  constructor(path: string, display: Display) {
    this.path = path;
    this.display = display;
    this.#release = lockRunDirectory(path);
    checkFreeSpace(path);
    this.logger = new RunLogger(join(path, runFiles.log), (line, level) =>
      display.line(level === "INFO" ? line : `${level.toLowerCase()}: ${line}`),
    );
    this.#metrics = new JsonLinesWriter(join(path, runFiles.metrics));
    this.#timing = new JsonLinesWriter(join(path, runFiles.timing));
    this.#sinks = new SinkGroup([], this.logger);
  }

  /** Adds the listeners for metrics. */
  attach(sinks: readonly MetricsSink[]): void {
    this.#sinks = new SinkGroup(sinks, this.logger);
  }

  writeConfig(config: Readonly<Record<string, unknown>>): void {
    this.#onDisk(() => writeRunConfig(this.path, config));
  }

  rollouts(step: number, records: readonly RolloutRecord[]): void {
    this.#onDisk(() => writeRollouts(this.path, step, records));
  }

  /** evaluations/step_000010.jsonl: one line per problem. */
  evaluation(step: number, outcomes: readonly unknown[]): void {
    this.#onDisk(() => {
      mkdirSync(join(this.path, runFiles.evaluations), { recursive: true });
      writeFileAtomic(join(this.path, runFiles.evaluations, stepFile(step)), outcomes.map(toJsonLine).join(""));
    });
  }

  metrics(step: number, metrics: Metrics): void {
    this.#onDisk(() => this.#metrics.append({ step, ...metrics }));
    this.#sinks.metrics(step, metrics);
  }

  timing(step: number, spans: readonly Span[]): void {
    const rows = spans.map(({ name, start, end }) => ({
      name,
      duration: (end - start) / 1000,
      wall_start: start,
      wall_end: end,
    }));
    this.#onDisk(() => this.#timing.append({ step, spans: rows }));
  }

  checkpoint(record: CheckpointRecord): void {
    this.#onDisk(() => appendCheckpoint(this.path, record));
  }

  summary(summary: Readonly<Record<string, unknown>>): void {
    this.#onDisk(() => writeFileAtomic(join(this.path, runFiles.summary), `${JSON.stringify(summary, null, 2)}\n`));
  }

  /** Every metrics record so far. */
  history(): (Record<string, number | string> & { step: number })[] {
    return readJsonLines(join(this.path, runFiles.metrics)) as (Record<string, number | string> & { step: number })[];
  }

  /** Moves the records of steps from `step` on aside: those steps are about to be run again. Returns how many there were. */
  rewindTo(step: number): number {
    this.#metrics.close();
    this.#timing.close();
    const dropped = dropStepsFrom(join(this.path, runFiles.metrics), step);
    dropStepsFrom(join(this.path, runFiles.timing), step);
    this.#metrics = new JsonLinesWriter(join(this.path, runFiles.metrics));
    this.#timing = new JsonLinesWriter(join(this.path, runFiles.timing));
    return dropped;
  }

  async close(): Promise<void> {
    this.display.end();
    await this.#sinks.close();
    this.#metrics.close();
    this.#timing.close();
    this.#release();
  }

  #onDisk(write: () => void): void {
    try {
      write();
    } catch (error) {
      throw new RunError(
        "runs/write-failed",
        `The run directory ${this.path} could not be written: ${messageOf(error)}. Free some space or fix its permissions, then run the ` +
          "same command again: it goes on from the last checkpoint.",
        { cause: error },
      );
    }
  }
}

function checkFreeSpace(path: string): void {
  const { bavail, bsize } = statfsSync(path);
  if (bavail * bsize >= minimumFreeBytes) return;
  throw new RunError(
    "runs/no-space",
    `Only ${Math.round((bavail * bsize) / 1024)} KiB are free at ${path}. Free at least ${minimumFreeBytes / 1024 / 1024} MiB, or set log_path to another disk.`,
  );
}
