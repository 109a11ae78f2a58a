// Waiting that can be cut short by any of several signals.

export type Signals = readonly (AbortSignal | undefined)[];

/** Follows a wait until a signal is aborted; `start` gets what ends it and returns how to call it off. */
export function abortable<T>(
  signals: Signals,
  start: (resolve: (value: T) => void, reject: (error: unknown) => void) => () => void,
): Promise<T> {
  return new Promise<T>((resolve, reject) => {
    for (const signal of signals) {
      if (signal?.aborted) {
        reject(signal.reason);
        return;
      }
    }
    const stopListening = () => {
      for (const signal of signals) signal?.removeEventListener("abort", abort);
    };
    let callOff: (() => void) | undefined;
    const abort = () => {
      stopListening();
      callOff?.();
      reject(signals.find((signal) => signal?.aborted)?.reason);
    };
    for (const signal of signals) signal?.addEventListener("abort", abort, { once: true });
    callOff = start(
      (value) => {
        stopListening();
        resolve(value);
      },
      (error) => {
        stopListening();
        reject(error);
      },
    );
  });
}

/** Resolves after `ms`; rejects with the reason of the first signal that is aborted. */
export function sleep(ms: number, ...signals: Signals): Promise<void> {
  return abortable(signals, (resolve) => {
    const timer = setTimeout(resolve, ms);
    return () => clearTimeout(timer);
  });
}

/** Follows `promise` until a signal is aborted; the promise itself goes on. */
export function untilAborted<T>(promise: Promise<T>, ...signals: Signals): Promise<T> {
  if (signals.every((signal) => signal === undefined)) return promise;
  // Nobody waits any more for a failure after the abort.
  promise.catch(() => undefined);
  return abortable(signals, (resolve, reject) => {
    promise.then(resolve, reject);
    return () => undefined;
  });
}

/**
 * Spreads bursts over turns of the event loop: a few tasks run at once, the rest a few per turn, in order. With hundreds of answers
 * coming in together, timers and other callbacks get their turn in between.
 */
export class Pacer {
  readonly #perTurn: number;
  #queue: (() => void)[] = [];
  #ranThisTurn = 0;
  #scheduled = false;

  constructor(perTurn: number) {
    this.#perTurn = perTurn;
  }

  run(task: () => void): void {
    this.#schedule();
    if (this.#queue.length > 0 || this.#ranThisTurn >= this.#perTurn) this.#queue.push(task);
    else {
      this.#ranThisTurn++;
      task();
    }
  }

  #schedule(): void {
    if (this.#scheduled) return;
    this.#scheduled = true;
    setImmediate(() => {
      this.#scheduled = false;
      const tasks = this.#queue.slice(0, this.#perTurn);
      this.#queue = this.#queue.slice(this.#perTurn);
      this.#ranThisTurn = tasks.length;
      if (this.#queue.length > 0) this.#schedule();
      for (const task of tasks) task();
    });
  }
}

/** A total from which callers take; the next one is let in while it is not negative, so that one oversized taker can pass. */
export class Budget {
  #left: number;
  readonly #waiting: { amount: number; enter: () => void }[] = [];

  constructor(size: number) {
    this.#left = size;
  }

  /** Takes `amount`; give it back with the same amount. */
  async take(amount: number, ...signals: Signals): Promise<void> {
    if (this.#left >= 0 && this.#waiting.length === 0) {
      this.#left -= amount;
      return;
    }
    await abortable<void>(signals, (resolve) => {
      const entry = { amount, enter: () => resolve() };
      this.#waiting.push(entry);
      return () => this.#waiting.splice(this.#waiting.indexOf(entry), 1);
    });
  }

  give(amount: number): void {
    this.#left += amount;
    while (this.#left >= 0) {
      const next = this.#waiting.shift();
      if (!next) return;
      this.#left -= next.amount;
      next.enter();
    }
  }
}
