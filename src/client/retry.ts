// The one place where something is tried again: which failures, how long, with which pauses, and what is said meanwhile. Calls,
// polls, samples and archives each make an `Attempts` and ask it after every failure.
import { APIConnectionError, type APIStatusError, APITimeoutError, statusError } from "./errors.ts";
import type { Timings } from "./options.ts";
import { type HttpAnswer, textOf } from "./transport.ts";
import { type Signals, sleep } from "./wait.ts";

/** A call is tried again while it has retries left or its window is open. */
export interface RetryPolicy {
  maxRetries: number;
  windowMs: number;
}

/** Without end: for waits that only the caller, or closing the client, can end. */
export const endless: RetryPolicy = { maxRetries: Number.POSITIVE_INFINITY, windowMs: Number.POSITIVE_INFINITY };

export interface RetryContext {
  /** What is asked, e.g. "optim_step". */
  what: string;
  timings: Readonly<Timings>;
  billing: BillingPause;
  signals: Signals;
  warn: (message: string) => void;
}

/** The longest Retry-After that is obeyed. */
const retryAfterMaxMs = 60_000;
/** A conflict (409) is retried for this share of the window only: it is nearly always a name that is taken. */
const conflictShare = 1 / 20;
/** A wait that goes on is mentioned again after this many times as long as before the first time. */
const noticeEvery = 12;

/** One thing that is tried until it works. */
export class Attempts {
  readonly #context: RetryContext;
  readonly #policy: RetryPolicy;
  #failures = 0;
  #started = performance.now();
  #noticeAt: number;

  constructor(context: RetryContext, policy: RetryPolicy) {
    this.#context = context;
    this.#policy = policy;
    this.#noticeAt = this.#started + context.timings.noticeMs;
  }

  /** True once something was tried again. */
  get retried(): boolean {
    return this.#failures > 0;
  }

  /** A success in between: what comes next starts anew. */
  reset(): void {
    if (this.#failures === 0) return;
    this.#failures = 0;
    this.#started = performance.now();
    this.#noticeAt = this.#started + this.#context.timings.noticeMs;
  }

  /**
   * Waits after a failure, which is what was thrown or an answer of status 400 and above. Throws it when it is final or the policy
   * allows no further try. `atOnce`: the first time is not waited. `isFinal` overrules what the failure looks like.
   */
  async again(failure: unknown, options: { atOnce?: boolean; isFinal?: boolean | undefined } = {}): Promise<void> {
    const { what, timings, billing, signals } = this.#context;
    const answer = isAnswer(failure) ? failure : undefined;
    const error = answer ? statusError(what, answer.status, textOf(answer)) : failure;
    const transient = answer ? answer.status === 402 || isTransient(answer) : error instanceof APIConnectionError;
    if (options.isFinal ?? !transient) throw error;
    if (answer?.status === 402) {
      await billing.wait(error as Error, signals);
      this.#failures++;
      return;
    }
    const elapsed = performance.now() - this.#started;
    const { maxRetries, windowMs } = this.#policy;
    const allowed =
      answer?.status === 409 ? elapsed < windowMs * conflictShare : elapsed < windowMs || this.#failures < maxRetries;
    if (!allowed) throw givenUp(error as APIConnectionError | APIStatusError, this.#failures + 1, elapsed);
    this.#notice(error as Error);
    const delay = backoff(this.#failures++, timings) * (0.75 + Math.random() / 4);
    if (options.atOnce && this.#failures === 1) return;
    await sleep(retryAfter(answer) ?? delay, ...signals);
  }

  /** Says that this goes on, and why, where it has gone on for a while. */
  #notice(error: Error): void {
    const now = performance.now();
    if (now < this.#noticeAt) return;
    const { what, timings, warn } = this.#context;
    this.#noticeAt = now + noticeEvery * timings.noticeMs;
    const seconds = (now - this.#started) / 1000;
    const until = Number.isFinite(this.#policy.windowMs)
      ? `for up to ${Math.round(Math.max(this.#policy.windowMs / 1000, seconds))} s in all`
      : "until it works";
    warn(
      `${what} has failed for ${Math.round(seconds)} s (${this.#failures + 1} tries) and is tried again ${until}. The last try: ${error.message}`,
    );
  }
}

/** Sends until an answer below 400 comes. Throws the last error when the policy allows no further attempt. */
export async function withRetries(
  send: () => Promise<HttpAnswer>,
  policy: RetryPolicy,
  context: RetryContext & {
    onRetry?: (() => void) | undefined;
    isFinal?: ((answer: HttpAnswer) => Promise<boolean>) | undefined;
  },
): Promise<HttpAnswer> {
  const attempts = new Attempts(context, policy);
  for (;;) {
    const outcome = await send().catch((error: unknown) => ({ error }));
    if ("error" in outcome) await attempts.again(outcome.error);
    else if (outcome.status < 400) return outcome;
    else await attempts.again(outcome, { isFinal: (await context.isFinal?.(outcome)) || undefined });
    context.onRetry?.();
  }
}

const isAnswer = (value: unknown): value is HttpAnswer =>
  typeof value === "object" && value !== null && "status" in value && "headers" in value;

const backoff = (failures: number, { retryBaseMs, retryMaxMs }: Readonly<Timings>) =>
  Math.min(retryBaseMs * 2 ** Math.min(failures, 30), retryMaxMs);

/** An answer that another try may change. */
function isTransient(answer: HttpAnswer): boolean {
  const told = answer.headers["x-should-retry"];
  if (told === "true" || told === "false") return told === "true";
  return isTransientStatus(answer.status);
}

export const isTransientStatus = (status: number): boolean =>
  status === 408 || status === 409 || status === 429 || status >= 500;

/** The server's own delay in milliseconds, when it gives a usable one. */
export function retryAfter(answer: HttpAnswer | undefined): number | undefined {
  const milliseconds = Number.parseFloat(String(answer?.headers["retry-after-ms"]));
  const text = answer?.headers["retry-after"];
  let delay = milliseconds;
  if (Number.isNaN(delay) && typeof text === "string") {
    delay = Number(text) * 1000;
    if (Number.isNaN(delay)) delay = Date.parse(text) - Date.now();
  }
  return delay > 0 && delay <= retryAfterMaxMs ? delay : undefined;
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
    await sleep(this.#timings.pauseMs, ...signals);
  }
}
