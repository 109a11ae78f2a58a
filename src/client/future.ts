// The handle of a submitted operation. It is made when the method is called, not when the server has answered, so that calls can
// be submitted back to back and awaited later.

import { abortable } from "../core/wait.ts";
import { WaitTimeoutError } from "./errors.ts";

/** How long to wait for a result. */
export interface ResultOptions {
  /** Stops waiting after this long; the operation goes on. */
  timeoutMs?: number | undefined;
  /** Stops waiting; the operation goes on. */
  signal?: AbortSignal | undefined;
}

/**
 * A result that will come. Await it like a promise. It never causes an unhandled rejection by itself: a failure is kept and
 * raised wherever the future is awaited.
 */
export class APIFuture<T> implements PromiseLike<T> {
  /** Resolves when the server has accepted the operation (every request of it has its id). */
  readonly submitted: Promise<void>;
  readonly #result: Promise<T>;

  /** Made by the client's methods; not for use elsewhere. */
  constructor(result: Promise<T>, submitted: Promise<unknown> = result) {
    this.#result = result;
    this.submitted = submitted.then(() => undefined);
    result.catch(ignore);
    this.submitted.catch(ignore);
  }

  /** Waits for the result. It is kept, so this can be called again, also after a time limit has passed. */
  async result({ timeoutMs, signal }: ResultOptions = {}): Promise<T> {
    if (timeoutMs === undefined && !signal) return this.#result;
    return abortable<T>([signal], (resolve, reject) => {
      const timer =
        timeoutMs === undefined ? undefined : setTimeout(() => reject(new WaitTimeoutError(timeoutMs)), timeoutMs);
      this.#result.then(resolve, reject);
      return () => clearTimeout(timer);
    });
  }

  // biome-ignore lint/suspicious/noThenProperty: a future is awaited like a promise.
  then<Value = T, Failure = never>(
    onResult?: ((value: T) => Value | PromiseLike<Value>) | null,
    onError?: ((reason: unknown) => Failure | PromiseLike<Failure>) | null,
  ): Promise<Value | Failure> {
    return this.#result.then(onResult, onError);
  }

  /** As of a promise. */
  catch<Failure = never>(onError?: ((reason: unknown) => Failure | PromiseLike<Failure>) | null): Promise<T | Failure> {
    return this.#result.catch(onError);
  }

  /** As of a promise. */
  finally(onSettled?: (() => void) | null): Promise<T> {
    return this.#result.finally(onSettled);
  }
}

function ignore(): void {}
