// How a client holds itself back: bursts are spread over turns of the event loop, and what is under way stays within a budget.
import { abortable, type Signals } from "../core/wait.ts";

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
  readonly #waiting = new Set<{ amount: number; enter: () => void }>();

  constructor(size: number) {
    this.#left = size;
  }

  /** Takes `amount`; give it back with the same amount. */
  async take(amount: number, ...signals: Signals): Promise<void> {
    if (this.#left >= 0 && this.#waiting.size === 0) {
      this.#left -= amount;
      return;
    }
    await abortable<void>(signals, (resolve) => {
      const entry = { amount, enter: () => resolve() };
      this.#waiting.add(entry);
      return () => this.#waiting.delete(entry);
    });
  }

  give(back: number): void {
    this.#left += back;
    for (const { amount, enter } of this.#waiting) {
      if (this.#left < 0) return;
      this.#left -= amount;
      enter();
    }
  }
}
