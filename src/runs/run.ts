// A run that is being written: its directory, which is this process's alone, its journal, its messages, and whatever listens.
import { rmSync } from "node:fs";
import { join } from "node:path";
import { messageOf, WhetstoneError } from "../core/errors.ts";
import { freeBytes, writeFileAtomic } from "../core/files.ts";
import { keepConfig, lockRunDirectory, RunError, runFiles } from "./directory.ts";
import type { Display } from "./display.ts";
import { type Fold, Journal } from "./journal.ts";
import { RunLogger } from "./log.ts";
import { type MetricsSink, SinkGroup } from "./sinks.ts";

/** Free space a run needs to start: less than this and it would die soon. */
const minimumFreeBytes = 32 * 1024 * 1024;

export class Run {
  readonly path: string;
  readonly display: Display;
  readonly journal: Journal;
  readonly logger: RunLogger;
  /** Milliseconds since the epoch. */
  readonly openedAt = Date.now();
  readonly #sinks: SinkGroup;
  readonly #release: () => void;

  /** Takes the directory for this process and opens its journal. `release` gives the directory back. */
  static async open(path: string, display: Display, release = lockRunDirectory(path)): Promise<Run> {
    try {
      checkFreeSpace(path);
      const journal = await Journal.open(path);
      await journal.append({ type: "opened", pid: process.pid });
      return new Run(path, display, journal, release);
    } catch (error) {
      release();
      throw error;
    }
  }

  private constructor(path: string, display: Display, journal: Journal, release: () => void) {
    this.path = path;
    this.display = display;
    this.journal = journal;
    this.#release = release;
    this.logger = new RunLogger(journal, (line, level) =>
      display.line(level === "INFO" ? line : `${level.toLowerCase()}: ${line}`),
    );
    this.#sinks = new SinkGroup(this.logger);
    for (const file of journal.repaired)
      this.logger.detail(
        `${file} did not say what the journal says; it was written anew, and what else it said is in ${file}.bak`,
      );
  }

  /**
   * Begins this process's part of the run; `changes` since the part before. config.json is written; one that said something else is kept.
   * `folds` take what the journal has, which is read once, and whatever it gets.
   */
  async begin(
    config: Readonly<Record<string, unknown>>,
    changes: readonly { key: string; was: unknown; is: unknown }[],
    folds: readonly Fold[] = [],
  ): Promise<void> {
    const sessions = new Set<number>();
    const counting: Fold = { take: (event) => event.type === "started" && sessions.add(event.session) };
    this.journal.follow([counting, this.#sinks, ...folds]);
    this.journal.leave(counting);
    const session = sessions.size;
    // What changed is in the journal before config.json no longer shows it.
    await this.journal.append({ type: "started", session, config: { ...config }, changes: [...changes] });
    this.#onDisk(() => keepConfig(this.path, config, session));
  }

  /** Adds listeners for metrics. */
  attach(sinks: readonly MetricsSink[]): void {
    this.#sinks.open(sinks);
  }

  summary(summary: Readonly<Record<string, unknown>>): void {
    this.#onDisk(() => writeFileAtomic(join(this.path, runFiles.summary), `${JSON.stringify(summary, null, 2)}\n`));
  }

  /** Ends this process's part of the run: writes down how it ended and notifies listeners. */
  async close(
    outcome: "finished" | "interrupted" | "failed",
    { error, reason }: { error?: unknown; reason?: string } = {},
  ): Promise<void> {
    this.display.end();
    try {
      if (error !== undefined) this.logger.fatal(messageOf(error));
      await this.journal.append({
        type: "stopped",
        outcome,
        ...(reason === undefined ? {} : { reason }),
        ...(error === undefined ? {} : { error: messageOf(error) }),
        ...(error instanceof WhetstoneError ? { code: error.code } : {}),
      });
      // What came too late for this run must not surprise whoever goes on with it.
      if (outcome === "finished") rmSync(join(this.path, runFiles.controls), { recursive: true, force: true });
      await this.#sinks.close(outcome === "finished" ? 0 : 1);
      await this.journal.close();
    } catch (failure) {
      // What went wrong before matters more than what could not be written about it.
      await this.journal.close().catch(() => {});
      if (error === undefined) throw failure;
    } finally {
      this.#release();
    }
  }

  #onDisk(write: () => void): void {
    try {
      write();
    } catch (error) {
      throw new RunError(
        "runs/write-failed",
        `The run directory ${this.path} could not be written: ${messageOf(error)}. Free some space or fix its permissions, then resume ` +
          "the run: it goes on where this one ended.",
        { cause: error },
      );
    }
  }
}

function checkFreeSpace(path: string): void {
  const free = freeBytes(path);
  if (free >= minimumFreeBytes) return;
  throw new RunError(
    "runs/no-space",
    `Only ${Math.round(free / 1024)} KiB are free at ${path}. Free at least ${minimumFreeBytes / 1024 / 1024} MiB, or set log_path to another disk.`,
  );
}
