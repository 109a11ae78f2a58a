// What a user should know while calls go on. A thousand requests may wait for the same thing: it is said once, and again after a minute.

export class Notices {
  /** Between two notices of one kind. */
  readonly intervalMs: number;
  readonly #warn: (message: string) => void;
  readonly #said = new Map<string, number>();

  constructor(warn: (message: string) => void, intervalMs: number) {
    this.#warn = warn;
    this.intervalMs = intervalMs;
  }

  say(kind: string, message: string): void {
    const now = performance.now();
    if (now - (this.#said.get(kind) ?? Number.NEGATIVE_INFINITY) < this.intervalMs) return;
    this.#said.set(kind, now);
    this.#warn(message);
  }

  /** Says something that is true for good. */
  once(message: string): void {
    if (this.#said.get(message) !== undefined) return;
    this.#said.set(message, Number.POSITIVE_INFINITY);
    this.#warn(message);
  }
}
