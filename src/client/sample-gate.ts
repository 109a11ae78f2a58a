// Lets samples be submitted as fast as the server wants them: a bound on submits under way and on their bytes, both much tighter
// for a while after the server has said "too many", and a pause for everybody right after it.
import { abortable, type Signals } from "../core/wait.ts";
import { Pacer } from "./pacing.ts";

const submitsUsually = 400;
const submitsThrottled = 10;
/** While throttled, a prompt counts for this many times its size. */
const throttledWeight = 20;

/** Throttling lasts this many times as long as the pause. */
const throttledTimes = 10;

/** Encoding a prompt, and often opening a connection: hundreds at once would hold up the event loop. */
const startsPerTurn = 4;

interface Waiting {
  bytes: number;
  enter: (charged: number) => void;
}

export class SampleGate {
  #bytesLeft = 10_485_760;
  #active = 0;
  #heldUntil = Number.NEGATIVE_INFINITY;
  #throttledUntil = Number.NEGATIVE_INFINITY;
  readonly #waiting = new Set<Waiting>();
  #timer: NodeJS.Timeout | undefined;
  readonly #starts = new Pacer(startsPerTurn);

  setByteBudget(bytes: number): void {
    this.#bytesLeft = bytes;
  }

  /** Waits for room and runs one submit. */
  async run<T>(bytes: number, submit: () => Promise<T>, ...signals: Signals): Promise<T> {
    const charged = this.#mayEnter() ? this.#enter(bytes) : await this.#wait(bytes, signals);
    try {
      await new Promise<void>((resolve) => this.#starts.run(resolve));
      return await submit();
    } finally {
      this.#active--;
      this.#bytesLeft += charged;
      this.#admit();
    }
  }

  /** The server asked for less: nobody is let in for `holdMs`. */
  backOff(holdMs: number): void {
    const now = performance.now();
    this.#heldUntil = Math.max(this.#heldUntil, now + holdMs);
    this.#throttledUntil = now + throttledTimes * holdMs;
  }

  #mayEnter(): boolean {
    return this.#waiting.size === 0 && this.#hasRoom();
  }

  #hasRoom(): boolean {
    const now = performance.now();
    const limit = now < this.#throttledUntil ? submitsThrottled : submitsUsually;
    return now >= this.#heldUntil && this.#active < limit && this.#bytesLeft >= 0;
  }

  #enter(bytes: number): number {
    const charged = performance.now() < this.#throttledUntil ? bytes * throttledWeight : bytes;
    this.#active++;
    this.#bytesLeft -= charged;
    return charged;
  }

  #wait(bytes: number, signals: Signals): Promise<number> {
    return abortable<number>(signals, (resolve) => {
      const entry: Waiting = { bytes, enter: resolve };
      this.#waiting.add(entry);
      this.#admit();
      return () => this.#waiting.delete(entry);
    });
  }

  #admit(): void {
    for (const next of this.#waiting) {
      if (!this.#hasRoom()) break;
      this.#waiting.delete(next);
      next.enter(this.#enter(next.bytes));
    }
    clearTimeout(this.#timer);
    const pause = this.#heldUntil - performance.now();
    if (this.#waiting.size > 0 && pause > 0) this.#timer = setTimeout(() => this.#admit(), pause + 1);
  }
}
