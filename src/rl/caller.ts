// The functions that a program gives to a run, such as `onEvent`: what goes wrong in them is theirs, and must neither be lost nor hold the
// run up.
import { sleep } from "../core/wait.ts";

/** How long what such functions began may hold up the end of a run. */
const graceMs = 2000;

/** Calls a caller's functions. A mistake of theirs, at once or in a promise, ends the run and comes back to them. */
export class Caller {
  readonly #onFailure: (error: unknown) => void;
  readonly #pending = new Set<Promise<unknown>>();
  #failure: { error: unknown } | undefined;

  constructor(onFailure: (error: unknown) => void) {
    this.#onFailure = onFailure;
  }

  call(callback: () => unknown): void {
    try {
      const returned = callback();
      if (!isThenable(returned)) return;
      const answer = Promise.resolve(returned)
        .catch((error: unknown) => this.#fail(error))
        .finally(() => this.#pending.delete(answer));
      this.#pending.add(answer);
    } catch (error) {
      this.#fail(error);
    }
  }

  /** Waits a while for what was begun; rejects with the first mistake. */
  async settled(): Promise<void> {
    const grace = new AbortController();
    const enough = sleep(graceMs, grace.signal).catch(() => {});
    await Promise.race([Promise.all(this.#pending), enough]);
    grace.abort();
    this.#pending.clear();
    if (this.#failure) throw this.#failure.error;
  }

  #fail(error: unknown): void {
    this.#failure ??= { error };
    this.#onFailure(error);
  }
}

const isThenable = (value: unknown): value is PromiseLike<unknown> =>
  typeof value === "object" && value !== null && "then" in value && typeof value.then === "function";
