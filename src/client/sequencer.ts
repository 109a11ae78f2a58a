// The order of one model's training requests. Calls take their place in the queue when they are made; each one's requests are
// posted when all earlier ones have been answered with their ids, and only then get their sequence numbers, so that a request
// that was surely refused leaves no gap.
import { EarlierCallFailedError } from "./errors.ts";

export class Sequencer {
  #next = 1;
  #tail: Promise<void> = Promise.resolve();
  /** Grows when a call fails to be sent; calls queued before that are not sent any more. */
  #generation = 0;
  #failure: unknown;

  /** Queues `submit`. Calls made before an earlier one failed are rejected: they counted on it. */
  run<T>(operation: string, submit: () => Promise<T>): Promise<T> {
    const generation = this.#generation;
    const result = this.#tail.then(async () => {
      if (generation !== this.#generation) throw new EarlierCallFailedError(operation, this.#failure);
      try {
        return await submit();
      } catch (error) {
        this.#generation++;
        this.#failure = error;
        throw error;
      }
    });
    this.#tail = result.then(
      () => undefined,
      () => undefined,
    );
    return result;
  }

  /** Takes the next `count` sequence numbers; the first is returned. Only from inside `submit`. */
  take(count: number): number {
    const first = this.#next;
    this.#next += count;
    return first;
  }

  /** Gives numbers back that the server has certainly not used. */
  giveBack(first: number): void {
    this.#next = first;
  }
}
