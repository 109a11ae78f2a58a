// Waiting with a limit.
import { abortable } from "../core/wait.ts";

/** Resolves when the promise settles or the time has passed, whichever is first; leaves no timer behind. */
export function within(ms: number, promise: Promise<unknown>): Promise<void> {
  return abortable([], (resolve, reject) => {
    const timer = setTimeout(resolve, ms);
    promise.then(() => resolve(), reject);
    return () => clearTimeout(timer);
  });
}

/** Resolves when one of the waiters' callers wakes it, when the time has passed, or when a signal fires; leaves nothing behind. */
export function wakened(waiters: Set<() => void>, ms: number, signals: readonly AbortSignal[]): Promise<void> {
  return abortable<void>(signals, (resolve) => {
    const wake = () => resolve();
    const timer = setTimeout(wake, ms);
    waiters.add(wake);
    return () => {
      clearTimeout(timer);
      waiters.delete(wake);
    };
  }).catch(() => {});
}
