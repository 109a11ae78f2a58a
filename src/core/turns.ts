// Lets long synchronous work share the event loop.
import { setImmediate as turn } from "node:timers/promises";

/** Lets timers, sockets, signals and other callbacks run. */
export const nextTurn = (): Promise<void> => turn();

/** A function to call between pieces of work: every `turnMs` it lets the event loop have a turn. */
export function turnTaker(turnMs = 20): () => Promise<void> {
  let started = performance.now();
  return async () => {
    if (performance.now() - started < turnMs) return;
    await turn();
    started = performance.now();
  };
}
