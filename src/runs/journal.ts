// The journal of a run: the one thing the loop writes. `append` resolves when the event is on disk; listeners get it then, in order.
// Writing, fsync and the files made from the journal live in a worker thread (journal-worker.ts).
import { join } from "node:path";
import type { Worker } from "node:worker_threads";
import { messageOf } from "../core/errors.ts";
import { toJsonLine } from "../core/jsonl.ts";
import { startWorker } from "../core/workers.ts";
import { RunError, runFiles } from "./directory.ts";
import { type Arrays, type JournalEntry, type NewEvent, RunEvent } from "./events.ts";
import type { FromWorker, ToWorker } from "./journal-worker.ts";
import { readJournal } from "./read-journal.ts";

/** How many of the last appends the percentile of their time is taken over. */
const measuredAppends = 1000;

/** Whatever is made of a journal's events, taken in order. */
export interface Fold {
  take(event: RunEvent, entry?: JournalEntry): unknown;
}

interface Pending {
  event: RunEvent;
  asked: number;
  resolve(): void;
  reject(error: unknown): void;
}

export class Journal {
  readonly runPath: string;
  readonly #worker: Worker;
  readonly #pending: Pending[] = [];
  readonly #folds = new Set<Fold>();
  readonly #appendMs: number[] = [];
  readonly #ready: Promise<void>;
  /** Files that did not say what the journal says when it was opened, and were written anew. */
  repaired: readonly string[] = [];
  #failure: RunError | undefined;
  #bytes = 0;
  #closed = false;

  /** Opens or makes the journal of a run directory that this process holds; a torn end is cut off. Resolves when its files are in step. */
  static async open(runPath: string): Promise<Journal> {
    const worker = startWorker(new URL("./journal-worker.ts", import.meta.url), { runPath });
    const journal = new Journal(runPath, worker);
    await journal.#ready;
    return journal;
  }

  private constructor(runPath: string, worker: Worker) {
    this.runPath = runPath;
    this.#worker = worker;
    this.#ready = new Promise((resolve, reject) => {
      const fail = (error: { code: string; message: string }) => reject(this.#fail(error));
      worker.on("message", (message: FromWorker) => {
        if (message.kind === "ready") {
          this.#bytes = message.bytes;
          this.repaired = message.repaired;
          resolve();
        } else if (message.kind === "durable") this.#durable(message.count, message.bytes);
        else fail(message.error);
      });
      worker.on("error", (error: Error) => fail({ code: "runs/write-failed", message: messageOf(error) }));
    });
  }

  /** Bytes of all segments. */
  get bytes(): number {
    return this.#bytes;
  }

  /** The time that 99 of 100 appends stayed under, from the call to the disk. */
  get appendP99Ms(): number {
    if (this.#appendMs.length === 0) return 0;
    const sorted = [...this.#appendMs].sort((a, b) => a - b);
    return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * 0.99))]!;
  }

  /**
   * Writes an event. Resolves when it is on disk: only then may anything that depends on it be sent. Arrays are copied; those in
   * `given` are taken as they are, and the caller has them no longer.
   */
  append(event: NewEvent, arrays: Arrays = {}, given: readonly (Int32Array | Float32Array)[] = []): Promise<void> {
    if (this.#failure) return Promise.reject(this.#failure);
    if (this.#closed) return Promise.reject(new Error("the journal is closed"));
    const stamped = { ...event, at: Date.now() } as RunEvent;
    // What could not be read back must not be written: the run would be lost, with all that was paid for.
    const checked = RunEvent.safeParse(stamped);
    if (!checked.success) return Promise.reject(badEvent(stamped, checked.error.issues[0]!));
    const message: ToWorker = { kind: "append", json: toJsonLine(stamped).trimEnd(), arrays };
    return new Promise((resolve, reject) => {
      this.#pending.push({ event: stamped, asked: performance.now(), resolve, reject });
      this.#worker.postMessage(
        message,
        given.map(({ buffer }) => buffer as ArrayBuffer),
      );
    });
  }

  /** Writes an event that nothing waits for; a failure shows at the next `append`. */
  note(event: NewEvent): void {
    this.append(event).catch(() => {});
  }

  /** Calls `listener` with every event from now on, once it is on disk, in order. */
  listen(listener: (event: RunEvent) => void): void {
    this.#folds.add({ take: listener });
  }

  /** Gives them what is on disk, read once, and then every event like `listen`. */
  follow(folds: readonly Fold[]): void {
    for (const entry of this.entries()) for (const fold of folds) fold.take(entry.event, entry);
    for (const fold of folds) this.#folds.add(fold);
  }

  /** Gives it no further event. */
  leave(fold: Fold): void {
    this.#folds.delete(fold);
  }

  /** What the journal holds on disk, oldest first. */
  entries(): Generator<JournalEntry, void, undefined> {
    return readJournal(this.runPath);
  }

  /** Rewrites segments that hold only steps before `step` without their arrays (keep_journal=checkpoint). */
  thin(step: number): void {
    this.#worker.postMessage({ kind: "thin", step } satisfies ToWorker);
  }

  /** Writes out what is on its way and lets go of the files. Rejects when something could not be written. */
  async close(): Promise<void> {
    if (this.#closed) return;
    this.#closed = true;
    if (!this.#failure) {
      const closed = new Promise<void>((resolve) => this.#worker.once("exit", () => resolve()));
      this.#worker.postMessage({ kind: "close" } satisfies ToWorker);
      await closed;
    }
    await this.#worker.terminate();
    if (this.#failure) throw this.#failure;
  }

  #durable(count: number, bytes: number): void {
    this.#bytes = bytes;
    const now = performance.now();
    for (const { event, asked, resolve } of this.#pending.splice(0, count)) {
      this.#appendMs.push(now - asked);
      if (this.#appendMs.length > measuredAppends) this.#appendMs.shift();
      for (const fold of this.#folds) fold.take(event);
      resolve();
    }
  }

  #fail({ code, message }: { code: string; message: string }): RunError {
    this.#failure ??= new RunError(
      code,
      code === "runs/write-failed"
        ? `The run directory ${join(this.runPath, runFiles.journal)} could not be written: ${message}. Free some space or fix its ` +
            "permissions, then resume the run: it goes on where this one ended."
        : message,
    );
    for (const { reject } of this.#pending.splice(0)) reject(this.#failure);
    return this.#failure;
  }
}

function badEvent(event: RunEvent, { path, message }: { path: readonly PropertyKey[]; message: string }): RunError {
  const value = path.reduce<unknown>((part, key) => (part as Record<PropertyKey, unknown> | undefined)?.[key], event);
  return new RunError(
    "runs/bad-event",
    `A ${event.type} event cannot be written: ${path.map(String).join(".") || "it"} is ${String(JSON.stringify(value)).slice(0, 80)} ` +
      `(${message}). Nothing was lost: run the same command again once what gives this value is corrected.`,
  );
}
