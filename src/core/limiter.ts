// Runs at most `limit` tasks at the same moment. The others wait in the order in which they came, those with `canWait` behind all others.
import { abortable } from "./wait.ts";

/** What a task says of itself. */
export interface TaskOptions {
  /** Takes a waiting task out of the queue; a running one must watch it itself. */
  signal?: AbortSignal | undefined;
  /** Begins only when nothing else waits. */
  canWait?: boolean | undefined;
}

/** A first-come, first-served bound on concurrency. */
export class Limiter {
  readonly limit: number;
  #active = 0;
  readonly #waiting: Set<() => void> = new Set();
  readonly #behind: Set<() => void> = new Set();

  constructor(limit: number) {
    this.limit = Math.max(1, Math.floor(limit));
  }

  get active(): number {
    return this.#active;
  }

  get waiting(): number {
    return this.#waiting.size + this.#behind.size;
  }

  /** Runs `task` when there is room. */
  async run<Result>(task: () => Promise<Result>, { signal, canWait }: TaskOptions = {}): Promise<Result> {
    signal?.throwIfAborted();
    if (this.#active < this.limit) this.#active++;
    else await this.#room(canWait ? this.#behind : this.#waiting, signal);
    try {
      return await task();
    } finally {
      // The room goes straight to the next in line, so that no other task can take it.
      const queue = this.#waiting.size > 0 ? this.#waiting : this.#behind;
      const [next] = queue;
      if (next) {
        queue.delete(next);
        next();
      } else this.#active--;
    }
  }

  #room(queue: Set<() => void>, signal: AbortSignal | undefined): Promise<void> {
    return abortable<void>([signal], (resolve) => {
      const enter = () => resolve();
      queue.add(enter);
      return () => queue.delete(enter);
    });
  }
}
