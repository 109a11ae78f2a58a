// Lets at most `limit` tasks run at the same moment; the others wait in the order in which they came.

/** A first-come, first-served bound on concurrency. */
export class Limiter {
  readonly limit: number;
  #active = 0;
  readonly #waiting: Set<() => void> = new Set();

  constructor(limit: number) {
    this.limit = Math.max(1, Math.floor(limit));
  }

  get active(): number {
    return this.#active;
  }

  get waiting(): number {
    return this.#waiting.size;
  }

  /** Runs `task` when there is room. An aborted signal takes a waiting task out of the queue; a running one must watch it itself. */
  async run<Result>(task: () => Promise<Result>, signal?: AbortSignal): Promise<Result> {
    signal?.throwIfAborted();
    if (this.#active < this.limit) this.#active++;
    else await this.#room(signal);
    try {
      return await task();
    } finally {
      // The room goes straight to the next in line, so that nobody can slip in between.
      const [next] = this.#waiting;
      if (next) {
        this.#waiting.delete(next);
        next();
      } else this.#active--;
    }
  }

  #room(signal: AbortSignal | undefined): Promise<void> {
    return new Promise((resolve, reject) => {
      const enter = () => {
        signal?.removeEventListener("abort", leave);
        resolve();
      };
      const leave = () => {
        this.#waiting.delete(enter);
        reject(signal?.reason);
      };
      this.#waiting.add(enter);
      signal?.addEventListener("abort", leave, { once: true });
    });
  }
}
