// What a user should know while calls go on. A thousand requests may wait for the same thing: the user reads of it once, again after a
// minute, and then ever more rarely while it lasts.

export class Notices {
  /** Between the first two notices of one kind; it doubles with each. */
  readonly intervalMs: number;
  readonly #warn: (message: string) => void;
  readonly #said = new Map<string, { at: number; pauseMs: number }>();

  constructor(warn: (message: string) => void, intervalMs: number) {
    this.#warn = warn;
    this.intervalMs = intervalMs;
  }

  say(kind: string, message: string): void {
    const now = performance.now();
    const last = this.#said.get(kind);
    const sinceMs = now - (last?.at ?? Number.NEGATIVE_INFINITY);
    if (last && sinceMs < last.pauseMs) return;
    // After a silence much longer than its pause it begins anew.
    const pauseMs = last && sinceMs < 2 * last.pauseMs + this.intervalMs ? 2 * last.pauseMs : this.intervalMs;
    this.#said.set(kind, { at: now, pauseMs });
    this.#warn(message);
  }

  /** Says something that is true for good. */
  once(message: string): void {
    if (this.#said.has(message)) return;
    this.#said.set(message, { at: 0, pauseMs: Number.POSITIVE_INFINITY });
    this.#warn(message);
  }
}
