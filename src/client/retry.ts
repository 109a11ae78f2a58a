// The one place where a call is tried again: which failures, how long, and with which pauses.
import { APIConnectionError, type APIStatusError, APITimeoutError, statusError } from "./errors.ts";
import type { Timings } from "./options.ts";
import { type HttpAnswer, textOf } from "./transport.ts";
import { type Signals, sleep } from "./wait.ts";

/** A call is tried again while it has retries left or its window is open. */
export interface RetryPolicy {
  maxRetries: number;
  windowMs: number;
}

export interface RetryContext {
  /** What is asked, e.g. "optim_step". */
  what: string;
  timings: Readonly<Timings>;
  billing: BillingPause;
  signals: Signals;
  /** Told before every further attempt. */
  onRetry?: (() => void) | undefined;
}

/** Sends until an answer below 400 comes. Throws the last error when the policy allows no further attempt. */
export async function withRetries(
  send: (attempt: number) => Promise<HttpAnswer>,
  policy: RetryPolicy,
  context: RetryContext,
): Promise<HttpAnswer> {
  const { timings, signals } = context;
  const start = performance.now();
  for (let attempt = 0; ; attempt++) {
    let answer: HttpAnswer | undefined;
    let error: APIConnectionError | APIStatusError;
    try {
      answer = await send(attempt);
      if (answer.status < 400) return answer;
      error = statusError(context.what, answer.status, textOf(answer));
    } catch (thrown) {
      if (!(thrown instanceof APIConnectionError)) throw thrown;
      error = thrown;
    }
    if (answer?.status === 402) {
      await context.billing.wait(error, signals);
    } else {
      const elapsed = performance.now() - start;
      // A conflict is nearly always a name that is taken: five minutes of retries would look like a hang.
      const windowMs = answer?.status === 409 ? Math.min(policy.windowMs, timings.conflictWindowMs) : policy.windowMs;
      const allowed = elapsed < windowMs || (attempt < policy.maxRetries && answer?.status !== 409);
      if (!shouldRetry(answer)) throw error;
      if (!allowed) throw givenUp(error, attempt + 1, elapsed);
      const longest = attempt < policy.maxRetries ? timings.retryMaxMs : timings.windowMaxMs;
      const delay = backoff(attempt, timings.retryBaseMs, longest) * (0.75 + Math.random() / 4);
      await sleep(retryAfter(answer, timings.retryAfterMaxMs) ?? delay, ...signals);
    }
    context.onRetry?.();
  }
}

export const backoff = (attempt: number, baseMs: number, maxMs: number) =>
  Math.min(baseMs * 2 ** Math.min(attempt, 30), maxMs);

function shouldRetry(answer: HttpAnswer | undefined): boolean {
  if (!answer) return true;
  const told = answer.headers["x-should-retry"];
  if (told === "true" || told === "false") return told === "true";
  return answer.status === 408 || answer.status === 409 || answer.status === 429 || answer.status >= 500;
}

/** The server's own delay in milliseconds, when it gives a usable one. */
export function retryAfter(answer: HttpAnswer | undefined, longestMs: number): number | undefined {
  const milliseconds = Number.parseFloat(String(answer?.headers["retry-after-ms"]));
  const text = answer?.headers["retry-after"];
  let delay = milliseconds;
  if (Number.isNaN(delay) && typeof text === "string") {
    delay = Number(text) * 1000;
    if (Number.isNaN(delay)) delay = Date.parse(text) - Date.now();
  }
  return delay > 0 && delay <= longestMs ? delay : undefined;
}

function givenUp(error: APIConnectionError | APIStatusError, tries: number, elapsedMs: number): Error {
  if (!(error instanceof APIConnectionError)) return error;
  const Class = error instanceof APITimeoutError ? APITimeoutError : APIConnectionError;
  return new Class(
    `${error.message} Gave up after ${tries} ${tries === 1 ? "try" : "tries"} in ${(elapsedMs / 1000).toFixed(1)} s. Check that the server runs and that baseUrl (TINKER_BASE_URL) is right; "whet serve" starts a local one.`,
    { cause: error },
  );
}

/** Waits out an account that cannot be charged (402), up to a limit counted from the first such answer. */
export class BillingPause {
  readonly #timings: Readonly<Timings>;
  readonly #warn: (message: string) => void;
  /** The server sets it. */
  maxPauseMs = 3_600_000;
  #since = 0;
  #last = Number.NEGATIVE_INFINITY;
  #warned = Number.NEGATIVE_INFINITY;

  constructor(timings: Readonly<Timings>, warn: (message: string) => void) {
    this.#timings = timings;
    this.#warn = warn;
  }

  /** Waits once, or throws `error` when the limit has passed. */
  async wait(error: Error, signals: Signals): Promise<void> {
    const now = performance.now();
    if (now - this.#last > 300_000) this.#since = now;
    this.#last = now;
    if (now - this.#since >= this.maxPauseMs) throw error;
    if (now - this.#warned >= 60_000) {
      this.#warned = now;
      this.#warn(`The account cannot be charged (402); waiting up to ${Math.round(this.maxPauseMs / 1000)} s for it.`);
    }
    await sleep(this.#timings.billingPauseMs, ...signals);
  }
}
