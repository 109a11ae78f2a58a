// Lets long synchronous work share the event loop.
import { setImmediate as nextTurn } from "node:timers/promises";

/** A function to call between pieces of work: every `turnMs` it lets timers, signals and other requests have a turn. */
export function turnTaker(turnMs = 20): () => Promise<void> {
  let started = performance.now();
  return async () => {
    if (performance.now() - started < turnMs) return;
    await nextTurn();
    started = performance.now();
  };
}
