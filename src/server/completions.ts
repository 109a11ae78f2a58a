// Which samples have finished, in the order they did, for clients that wait for all of theirs with one poll. There is one log per
// sampler and copy of its client. Positions in it are cursors; they carry this process's start, so that one from before a restart is
// recognised.
import { randomInt } from "node:crypto";
import { wakened } from "./time-limit.ts";

export interface Completion {
  requestId: string;
  state: "finished" | "failed";
  bytes: number;
}

/** A client that is further behind than this has stopped asking. */
const maxEntries = 65_536;

interface Log {
  entries: Completion[];
  /** How many were dropped from the front. */
  dropped: number;
  waiters: Set<() => void>;
}

export class CompletionLog {
  /** Cursors of this process lie between this and the next multiple of 2^32. */
  readonly #base = randomInt(1, 2 ** 20) * 2 ** 32;
  readonly #logs = new Map<string, Log>();

  add(key: string, completion: Completion): void {
    const log = this.#log(key);
    log.entries.push(completion);
    if (log.entries.length > maxEntries) log.dropped += log.entries.splice(0, maxEntries / 2).length;
    for (const wake of [...log.waiters]) wake();
  }

  /** True for a cursor from before a restart. */
  isForeign(cursor: number): boolean {
    return cursor !== 0 && Math.floor(cursor / 2 ** 32) !== this.#base / 2 ** 32;
  }

  /** What was added after the cursor, as soon as there is something; after `ms`, or when a signal fires, an empty list. */
  async after(
    key: string,
    cursor: number,
    ms: number,
    ...signals: readonly AbortSignal[]
  ): Promise<{ completions: Completion[]; cursor: number }> {
    const log = this.#log(key);
    const seen = cursor === 0 ? 0 : cursor - this.#base;
    // What the client has seen is never asked for again.
    const old = Math.min(Math.max(0, seen - log.dropped), log.entries.length);
    log.dropped += log.entries.splice(0, old).length;
    if (log.entries.length === 0) await wakened(log.waiters, ms, signals);
    return { completions: [...log.entries], cursor: this.#base + log.dropped + log.entries.length };
  }

  /** Forgets a sampler's logs. */
  drop(samplerId: string): void {
    for (const key of this.#logs.keys()) if (key.startsWith(`${samplerId}/`)) this.#logs.delete(key);
  }

  #log(key: string): Log {
    let log = this.#logs.get(key);
    if (!log) {
      log = { entries: [], dropped: 0, waiters: new Set() };
      this.#logs.set(key, log);
    }
    return log;
  }
}
