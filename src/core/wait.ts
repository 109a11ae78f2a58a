// Waiting that can be cut short by any of several signals.

export type Signals = readonly (AbortSignal | undefined)[];

/**
 * Follows a wait until a signal is aborted, and then rejects with that signal's reason. `start` gets what ends the wait, and returns how to
 * clean up behind it, however it ended.
 */
export function abortable<T>(
  signals: Signals,
  start: (resolve: (value: T) => void, reject: (error: unknown) => void) => () => void,
): Promise<T> {
  return new Promise<T>((resolve, reject) => {
    const aborted = () => signals.find((signal) => signal?.aborted);
    const begun = aborted();
    if (begun) {
      reject(begun.reason);
      return;
    }
    let ended = false;
    let cleanUp = () => {};
    const end = () => {
      ended = true;
      for (const signal of signals) signal?.removeEventListener("abort", abort);
      cleanUp();
    };
    const abort = () => {
      end();
      reject(aborted()?.reason);
    };
    for (const signal of signals) signal?.addEventListener("abort", abort, { once: true });
    cleanUp = start(
      (value) => {
        end();
        resolve(value);
      },
      (error) => {
        end();
        reject(error);
      },
    );
    if (ended) cleanUp();
  });
}

/** Resolves after `ms`; rejects with the reason of the first signal that is aborted. */
export function sleep(ms: number, ...signals: Signals): Promise<void> {
  return abortable(signals, (resolve) => {
    const timer = setTimeout(resolve, ms);
    return () => clearTimeout(timer);
  });
}

/** Follows `promise` until a signal is aborted; the promise itself goes on. */
export function untilAborted<T>(promise: Promise<T>, ...signals: Signals): Promise<T> {
  if (signals.every((signal) => signal === undefined)) return promise;
  // Nobody waits any more for a failure after the abort.
  promise.catch(() => {});
  return abortable(signals, (resolve, reject) => {
    promise.then(resolve, reject);
    return () => {};
  });
}
