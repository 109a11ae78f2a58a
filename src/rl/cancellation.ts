// Controllers that follow a signal above them: aborted with it, or by themselves, and let go of when their work is over.
import { setMaxListeners } from "node:events";

export interface LinkedController {
  readonly signal: AbortSignal;
  abort(reason: unknown): void;
  /** Stops following; without this the signal above would keep every controller it ever had. */
  unlink(): void;
}

export function linkedController(...above: readonly AbortSignal[]): LinkedController {
  const controller = new AbortController();
  // A batch has hundreds of requests and programs under way, and each listens.
  setMaxListeners(0, controller.signal);
  const follow = (event: Event) => controller.abort((event.target as AbortSignal).reason);
  for (const signal of above) {
    if (signal.aborted) controller.abort(signal.reason);
    else signal.addEventListener("abort", follow, { once: true });
  }
  return {
    signal: controller.signal,
    abort: (reason) => controller.abort(reason),
    unlink: () => {
      for (const signal of above) signal.removeEventListener("abort", follow);
    },
  };
}
