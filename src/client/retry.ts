// The one place that decides about trying again: which failures, how often and for how long, with which pauses, and what the user reads
// meanwhile. Whoever may have to ask a server again (calls, polls, samples, archives, traces) makes an `Attempts` with one of the policies
// below and asks it after every failure, and after every answer that says "not yet".
import type { Outage } from "../core/outage.ts";
import { type Signals, sleep } from "../core/wait.ts";
import { APIConnectionError, APIStatusError, APITimeoutError, statusError } from "./errors.ts";
import type { Notices } from "./notices.ts";
import type { Timings } from "./options.ts";
import { type HttpAnswer, textOf } from "./transport.ts";

/**
 * What follows a failure: "usual" is to wait, longer each time, while the policy allows it; "final" is to give up; a number is to ask
 * again after that many milliseconds (or what the server's Retry-After says), however often.
 */
type Verdict = "usual" | "final" | number;

/** A call is tried again while it has retries left or its window is open. */
export interface RetryPolicy {
  maxRetries: number;
  windowMs: number;
  /** What follows an answer of this status (0: none came) after so many of the same. Without it: "usual" for what may pass. */
  rule?: (status: number, before: number) => Verdict;
}

/** Without end but that of an outage: for waits that only the caller, or closing the client, can end while the server answers. */
const endless = { maxRetries: Number.POSITIVE_INFINITY, windowMs: Number.POSITIVE_INFINITY };
const largePromptBytes = 131_072;

/** How patient a client is with what. */
export function policiesOf({ maxRetries, timings }: { maxRetries: number; timings: Readonly<Timings> }) {
  const { retryWindowMs, retryBaseMs, retryMaxMs, outageMs } = timings;
  return {
    /** What starts and ends things. */
    start: { maxRetries, windowMs: 0 },
    /** Submits and REST calls. */
    call: { maxRetries, windowMs: retryWindowMs },
    /** The first 5xx is asked again at once; a server that stays down is not hammered. Some proxies answer 400 now and then. */
    poll: {
      maxRetries: 0,
      windowMs: outageMs,
      rule(status: number, before: number): Verdict {
        if (status === 400) return before < 3 ? 0 : "final";
        if (status >= 500 && before === 0) return 0;
        return status === 0 || status === 402 || status === 429 || status >= 500 ? "usual" : "final";
      },
    },
    /** A sample, asked for anew each time. */
    sample: endless,
    /** A submit is repeated twice; then the sample is asked for anew. A server that has too many is waited for. */
    submitSample: (bytes: number): RetryPolicy => ({
      maxRetries: 2,
      windowMs: 0,
      rule: (status) =>
        status === 429
          ? 2 * retryBaseMs * (bytes > largePromptBytes ? 5 : 1)
          : status === 0 || status === 402
            ? "usual"
            : "final",
    }),
    /** 503 means "being built", which takes half a minute or more. */
    archive: {
      maxRetries,
      windowMs: 0,
      rule: (status: number, before: number): Verdict =>
        status === 503 ? (before < 5 ? 3 * retryMaxMs : "final") : status === 0 ? "usual" : "final",
    },
    /** Something the server makes, however long it takes. */
    report: endless,
  } satisfies Record<string, RetryPolicy | ((bytes: number) => RetryPolicy)>;
}

export interface RetryContext {
  /** What is asked, e.g. "optim_step". */
  what: string;
  /** What it is for, e.g. "Sample of SAMPLER"; default: the same. */
  waitsFor?: string | undefined;
  timings: Readonly<Timings>;
  billing: BillingPause;
  signals: Signals;
  notices: Notices;
  /** Of the server, whoever asks it. */
  outage: Outage;
  /** The error for an answer of status 400 and above; default: what the status says. */
  errorOf?: ((answer: HttpAnswer) => Error) | undefined;
  /** Called before every further try. What it throws ends the attempts. */
  onRetry?: ((delayMs: number, failure: { status: number; error: Error }) => void) | undefined;
}

/** The longest Retry-After that is obeyed. */
const retryAfterMaxMs = 60_000;
/** A conflict (409) is retried for this share of the window only: it is nearly always a name that is taken. */
const conflictShare = 1 / 20;
/** A server that answers "not ready" faster than this is not holding its polls. */
const quickAnswerMs = 50;

/** One thing that is tried until it works. */
export class Attempts {
  readonly #context: RetryContext;
  readonly #policy: RetryPolicy;
  readonly #began = performance.now();
  /** When something was last heard, how often it failed since, and how often with which status. */
  #lastHeard = this.#began;
  #failures = 0;
  readonly #statuses = new Map<number, number>();
  #quickAnswers = 0;

  constructor(context: RetryContext, policy: RetryPolicy) {
    this.#context = context;
    this.#policy = policy;
  }

  /** Waits after a failure, which is what was thrown or an answer of status 400 and above. Throws it when there is no further try. */
  async again(failure: unknown): Promise<void> {
    const { what, billing, signals, outage, errorOf, onRetry } = this.#context;
    const answer = isAnswer(failure) ? failure : undefined;
    const error = answer ? (errorOf?.(answer) ?? statusError(what, answer.status, textOf(answer))) : failure;
    const status = answer?.status ?? statusOf(failure);
    if (status === undefined) throw error;
    const before = this.#statuses.get(status) ?? 0;
    const verdict = this.#policy.rule?.(status, before) ?? usualVerdict(status, answer);
    if (verdict === "final") throw error;
    if (verdict === "usual" && status !== 402) this.#checkPolicy(error as Error, status);
    this.#statuses.set(status, before + 1);
    const delayMs = retryAfter(answer) ?? (verdict === "usual" ? this.#backoff() : verdict);
    this.#failures++;
    onRetry?.(delayMs, { status, error: error as Error });
    if (status === 402) await billing.wait(error as Error, signals);
    else {
      this.#mention(error as Error, status);
      // Once more at the end of what an outage may last.
      if (delayMs > 0) await sleep(Math.min(delayMs, outage.leftMs), ...signals);
    }
  }

  /**
   * After an answer that says "not yet", which took so long to come: waits for `pauseMs`, or not at all where the server holds its
   * answers; one that does not is asked more and more slowly. `silent`: what came was no answer, as from a server that holds one for
   * longer than is waited; throws it where nothing else is heard of the server either.
   */
  async notYet(tookMs: number, { pauseMs, silent }: { pauseMs?: number; silent?: Error } = {}): Promise<void> {
    const { what, waitsFor = what, signals, notices, outage } = this.#context;
    if (silent && outage.spent) throw givenUp(silent, this.#failures + 1, performance.now() - this.#lastHeard);
    this.#lastHeard = performance.now();
    this.#failures = 0;
    this.#statuses.clear();
    const waitedMs = this.#lastHeard - this.#began;
    if (waitedMs >= notices.intervalMs)
      notices.say(
        "slow",
        `${waitsFor} is not ready after ${Math.round(waitedMs / 1000)} s; waiting on. A server that compiles needs minutes for the first request of each shape.`,
      );
    this.#quickAnswers = tookMs < quickAnswerMs ? this.#quickAnswers + 1 : 0;
    const slowdown = this.#quickAnswers > 1 ? Math.min(10 * 2 ** (this.#quickAnswers - 2), 1000) : 0;
    if ((pauseMs ?? slowdown) > 0) await sleep(pauseMs ?? slowdown, ...signals);
  }

  #checkPolicy(error: Error, status: number): void {
    const { outage } = this.#context;
    const elapsedMs = performance.now() - this.#lastHeard;
    const { maxRetries, windowMs } = this.#policy;
    if (isAway(error, status)) {
      outage.failed(error.message);
      if (outage.spent) throw givenUp(error, this.#failures + 1, elapsedMs);
    }
    if (status === 409 ? elapsedMs < windowMs * conflictShare : elapsedMs < windowMs || this.#failures < maxRetries)
      return;
    throw givenUp(error, this.#failures + 1, elapsedMs);
  }

  #backoff(): number {
    const { retryBaseMs, retryMaxMs } = this.#context.timings;
    return Math.min(retryBaseMs * 2 ** Math.min(this.#failures, 30), retryMaxMs) * (0.75 + Math.random() / 4);
  }

  /** Says that this goes on, and why, where it has gone on for a while. An outage is reported elsewhere. */
  #mention(error: Error, status: number): void {
    if (isAway(error, status)) return;
    const { what, timings, notices } = this.#context;
    const seconds = (performance.now() - this.#lastHeard) / 1000;
    if (seconds * 1000 < timings.noticeMs) return;
    const { windowMs } = this.#policy;
    const until = Number.isFinite(windowMs)
      ? `for up to ${Math.round(Math.max(windowMs / 1000, seconds))} s in all`
      : "until it works";
    notices.say(
      `failing ${what}`,
      `${what} has failed for ${Math.round(seconds)} s (${this.#failures} tries) and is tried again ${until}. The last try: ${error.message}`,
    );
  }
}

/** Sends until an answer below 400 comes. Throws the last error when the policy allows no further attempt. */
export async function withRetries(
  send: () => Promise<HttpAnswer>,
  policy: RetryPolicy,
  context: RetryContext & { isFinal?: ((answer: HttpAnswer) => Promise<boolean>) | undefined },
): Promise<HttpAnswer> {
  const attempts = new Attempts(context, policy);
  for (;;) {
    const outcome = await send().catch((error: unknown) => ({ error }));
    if ("error" in outcome) await attempts.again(outcome.error);
    else if (outcome.status < 400) return outcome;
    else if (await context.isFinal?.(outcome)) throw statusError(context.what, outcome.status, textOf(outcome));
    else await attempts.again(outcome);
  }
}

/** Whether a failure is the whole server's, or of what stands before it; a 500 may be one route's alone. */
const isAway = (error: Error, status: number): boolean =>
  [502, 503, 504].includes(status) ||
  (error instanceof APIConnectionError && /^client\/(connection|timeout)$/.test(error.code));

const isAnswer = (value: unknown): value is HttpAnswer =>
  typeof value === "object" && value !== null && "status" in value && "headers" in value;

/** Of what was thrown: 0 where no answer came, undefined where it is not about the server. */
const statusOf = (error: unknown): number | undefined =>
  error instanceof APIConnectionError ? 0 : error instanceof APIStatusError ? error.status : undefined;

function usualVerdict(status: number, answer: HttpAnswer | undefined): Verdict {
  const shouldRetry = answer?.headers["x-should-retry"];
  if (shouldRetry === "true" || shouldRetry === "false") return shouldRetry === "true" ? "usual" : "final";
  return status === 0 || [402, 408, 409, 429].includes(status) || status >= 500 ? "usual" : "final";
}

/** The server's own delay in milliseconds, when it gives a usable one. */
function retryAfter(answer: HttpAnswer | undefined): number | undefined {
  const milliseconds = Number.parseFloat(String(answer?.headers["retry-after-ms"]));
  const text = answer?.headers["retry-after"];
  let delay = milliseconds;
  if (Number.isNaN(delay) && typeof text === "string") {
    delay = Number(text) * 1000;
    if (Number.isNaN(delay)) delay = Date.parse(text) - Date.now();
  }
  return delay > 0 && delay <= retryAfterMaxMs ? delay : undefined;
}

function givenUp(error: Error, tries: number, elapsedMs: number): Error {
  if (!(error instanceof APIConnectionError)) return error;
  const Class = error instanceof APITimeoutError ? APITimeoutError : APIConnectionError;
  return new Class(
    `${error.message} Gave up after ${tries} ${tries === 1 ? "try" : "tries"} in ${(elapsedMs / 1000).toFixed(1)} s. Check that the server runs and that baseUrl (TINKER_BASE_URL) is right; "whet serve" starts a local one.`,
    { cause: error },
  );
}

/** Waits out an account that cannot be charged (402), up to a limit counted from the first such answer. */
export class BillingPause {
  readonly #pauseMs: number;
  readonly #notices: Notices;
  /** The server sets it. */
  maxPauseMs = 3_600_000;
  #since = 0;
  #last = Number.NEGATIVE_INFINITY;

  constructor(pauseMs: number, notices: Notices) {
    this.#pauseMs = pauseMs;
    this.#notices = notices;
  }

  /** Waits once, or throws `error` when the limit has passed. */
  async wait(error: Error, signals: Signals): Promise<void> {
    const now = performance.now();
    if (now - this.#last > 300_000) this.#since = now;
    this.#last = now;
    if (now - this.#since >= this.maxPauseMs) throw error;
    const seconds = Math.round(this.maxPauseMs / 1000);
    this.#notices.say("billing", `The account cannot be charged (402); waiting up to ${seconds} s for it.`);
    await sleep(this.#pauseMs, ...signals);
  }
}
