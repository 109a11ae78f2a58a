// Begins work in the order in which it is asked for, each when the budget covers it. What does not fit waits while something is under
// way: that may cost less than it was counted at. When nothing is, the answer is final, and nothing begins any more.
import type { Refusal } from "./budget.ts";

interface Asked {
  /** Undefined: counted as begun. */
  admit: () => Refusal | undefined;
  begin: () => void;
}

interface AdmissionsOptions {
  /** Whether something that was admitted is not finished. */
  underWay(): boolean;
  /** Nothing more will begin. */
  onRefused(): void;
  /** Aborted: what waits is dropped. */
  signals: readonly AbortSignal[];
}

export class Admissions {
  readonly #options: AdmissionsOptions;
  readonly #waiting: Asked[] = [];
  #refusal: Refusal | undefined;
  #closed = false;
  #emptied: () => void = () => {};

  constructor(options: AdmissionsOptions) {
    this.#options = options;
    for (const signal of options.signals) {
      if (signal.aborted) this.close();
      signal.addEventListener("abort", () => this.close(), { once: true });
    }
  }

  /** Set once something did not fit although nothing was under way. */
  get refusal(): Refusal | undefined {
    return this.#refusal;
  }

  /** Begins at once where it fits and nothing waits; later, or never, otherwise. */
  ask(admit: () => Refusal | undefined, begin: () => void): void {
    if (this.#closed) return;
    this.#waiting.push({ admit, begin });
    if (this.#waiting.length === 1) this.settled();
  }

  /** Something that was under way has settled: looks at what waits again. */
  settled(): void {
    for (let asked = this.#waiting[0]; asked; asked = this.#waiting[0]) {
      const refusal = asked.admit();
      if (refusal && this.#options.underWay()) return;
      if (refusal) {
        this.#refusal = refusal;
        this.close();
        this.#options.onRefused();
        return;
      }
      this.#waiting.shift();
      asked.begin();
    }
    this.#emptied();
  }

  /** Resolves when nothing waits. */
  async empty(): Promise<void> {
    if (this.#waiting.length > 0) await new Promise<void>((resolve) => (this.#emptied = resolve));
  }

  /** Drops what waits; nothing begins any more. */
  close(): void {
    this.#closed = true;
    this.#waiting.length = 0;
    this.#emptied();
  }
}
