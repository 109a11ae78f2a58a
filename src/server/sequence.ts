// Applies one model's training requests in the order of their sequence numbers, one after another, whatever order they arrive
// in: the chunks of one batch come 2…n, then 1. A number that never comes (a client whose submit failed) holds the queue up for
// a limited time; after that it is passed over and refused when it does come, so nothing is ever applied out of order.

import { Recent } from "../core/recent.ts";
import { badRequest, numberReused } from "./errors.ts";

type Task = () => Promise<void>;

export class SequenceQueue {
  readonly #gapLimitMs: number;
  readonly #waiting = new Map<number, Task>();
  /** Requests without a number, in the order of arrival; they run when the numbered ones before them have. */
  readonly #unnumbered: Task[] = [];
  #next = 1;
  /** Numbers of refused requests: nothing waits for them, and until their turn is over another request may have them. */
  readonly #refused = new Recent<number, true>(4096);
  #running: Promise<void> | undefined;
  #closed = false;
  #gapTimer: NodeJS.Timeout | undefined;
  readonly #onGap: (from: number, to: number) => void;
  #onStuck: (() => void) | undefined;

  constructor(gapLimitMs: number, onGap: (from: number, to: number) => void = () => {}) {
    this.#gapLimitMs = gapLimitMs;
    this.#onGap = onGap;
  }

  /** The lowest number not yet taken. */
  get next(): number {
    return this.#next;
  }

  /** Requests that wait for their turn. */
  get length(): number {
    return this.#waiting.size + this.#unnumbered.length;
  }

  /** Throws when the number's turn is over, or when it is taken. */
  check(sequence: number): void {
    if (this.#refused.delete(sequence) && this.#next === sequence + 1) this.#next = sequence;
    if (sequence < this.#next)
      throw badRequest(
        "server/sequence-passed",
        `seq_id ${sequence} comes too late: the model is at ${this.#next}. Number requests 1, 2, 3, … and send each once; ` +
          "a number missing for too long is passed over.",
      );
    if (this.#waiting.has(sequence)) throw numberReused(`seq_id ${sequence} is taken by another request.`);
  }

  /** Queues a request. It must not throw; it reports its own failure. */
  add(sequence: number | undefined, task: Task): void {
    if (sequence === undefined) this.#unnumbered.push(task);
    else {
      this.check(sequence);
      this.#waiting.set(sequence, task);
    }
    this.#advance();
  }

  /** Uses up a number whose request was refused: what follows does not wait for it. */
  refuse(sequence: number): void {
    if (sequence < this.#next || this.#waiting.has(sequence)) return;
    this.#refused.set(sequence, true);
    this.#advance();
  }

  /** No further requests will come: runs what can run, and calls back instead of waiting for a missing number. */
  drain(onStuck: () => void): void {
    this.#onStuck = onStuck;
    this.#advance();
  }

  /** Starts nothing more; resolves when what runs has ended. */
  async close(): Promise<void> {
    this.#closed = true;
    clearTimeout(this.#gapTimer);
    this.#waiting.clear();
    this.#unnumbered.length = 0;
    await this.#running;
  }

  #advance(): void {
    if (this.#running || this.#closed) return;
    clearTimeout(this.#gapTimer);
    this.#gapTimer = undefined;
    while (this.#refused.has(this.#next)) this.#next++;
    const numbered = this.#waiting.get(this.#next);
    if (numbered) {
      this.#waiting.delete(this.#next);
      this.#next++;
      this.#start(numbered);
      return;
    }
    const unnumbered = this.#unnumbered.shift();
    if (unnumbered) this.#start(unnumbered);
    else if (this.#waiting.size > 0) {
      if (this.#onStuck) this.#onStuck();
      else this.#gapTimer = setTimeout(() => this.#passGap(), this.#gapLimitMs);
    }
  }

  #start(task: Task): void {
    this.#running = task().finally(() => {
      this.#running = undefined;
      this.#advance();
    });
  }

  #passGap(): void {
    const first = Math.min(...this.#waiting.keys());
    this.#onGap(this.#next, first - 1);
    this.#next = first;
    this.#advance();
  }
}
