// How long the event loop keeps others waiting. On a busy machine a process also waits for a processor; where Linux says how long
// that was, it is taken off, so that the figure is the program's own.
import { closeSync, openSync, readSync } from "node:fs";

const tickMs = 2;

export class LoopLag {
  /** Milliseconds, one per tick: with and without the wait for a processor. */
  readonly #total: number[] = [];
  readonly #own: number[] = [];
  #timer: NodeJS.Timeout | undefined;
  readonly #file = openSchedstat();
  readonly #bytes = Buffer.alloc(128);

  start(): void {
    let expected = performance.now() + tickMs;
    let waited = this.#waitedMs();
    const tick = () => {
      const now = performance.now();
      const waitedNow = this.#waitedMs();
      const lag = Math.max(0, now - expected);
      this.#total.push(lag);
      this.#own.push(Math.max(0, lag - (waitedNow - waited)));
      waited = waitedNow;
      expected = performance.now() + tickMs;
      this.#timer = setTimeout(tick, tickMs);
    };
    this.#timer = setTimeout(tick, tickMs);
  }

  /** Ends and returns the 99th percentiles. */
  stop(): { totalMs: number; ownMs: number } {
    clearTimeout(this.#timer);
    if (this.#file !== undefined) closeSync(this.#file);
    return { totalMs: percentile99(this.#total), ownMs: percentile99(this.#own) };
  }

  /** How long this thread has waited for a processor since it began; 0 where that is not known. */
  #waitedMs(): number {
    if (this.#file === undefined) return 0;
    const count = readSync(this.#file, this.#bytes, 0, this.#bytes.length, 0);
    return Number(this.#bytes.toString("latin1", 0, count).split(" ")[1]) / 1e6;
  }
}

function openSchedstat(): number | undefined {
  try {
    return openSync("/proc/self/schedstat", "r");
  } catch {
    return undefined;
  }
}

function percentile99(values: number[]): number {
  const sorted = values.sort((a, b) => a - b);
  return sorted[Math.floor(sorted.length * 0.99)] ?? 0;
}
