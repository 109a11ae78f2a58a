// Cuts a long computation into slices, so that other requests are answered in between.
import { setImmediate as nextTurn } from "node:timers/promises";

export class Slices {
  readonly #sliceMs: number;
  #end: number;

  constructor(sliceMs = 8) {
    this.#sliceMs = sliceMs;
    this.#end = performance.now() + sliceMs;
  }

  /** Lets the event loop turn when the slice is used up. */
  async pause(): Promise<void> {
    if (performance.now() < this.#end) return;
    await nextTurn();
    this.#end = performance.now() + this.#sliceMs;
  }
}
