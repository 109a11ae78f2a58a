// Waiting with a limit.

/** Resolves when the promise settles or the time has passed, whichever is first; leaves no timer behind. */
export async function within(ms: number, promise: Promise<unknown>): Promise<void> {
  let timer: NodeJS.Timeout | undefined;
  const limit = new Promise<void>((resolve) => {
    timer = setTimeout(resolve, ms);
  });
  try {
    await Promise.race([promise, limit]);
  } finally {
    clearTimeout(timer);
  }
}

/** Resolves when one of the waiters' callers wakes it, when the time has passed, or when a signal fires; leaves nothing behind. */
export function wakened(waiters: Set<() => void>, ms: number, signals: readonly AbortSignal[]): Promise<void> {
  if (signals.some((signal) => signal.aborted)) return Promise.resolve();
  return new Promise((resolve) => {
    const finish = () => {
      clearTimeout(timer);
      waiters.delete(finish);
      for (const signal of signals) signal.removeEventListener("abort", finish);
      resolve();
    };
    const timer = setTimeout(finish, ms);
    waiters.add(finish);
    for (const signal of signals) signal.addEventListener("abort", finish);
  });
}
