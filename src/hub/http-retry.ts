// GET with a few tries: for servers elsewhere that may be busy for a moment. Nothing here knows what the answers mean.
import { setTimeout as sleep } from "node:timers/promises";
import { fetchFrom } from "../core/proxy.ts";

/** The server answered, with a status that is not a success. */
export class HttpStatusError extends Error {
  readonly status: number;
  readonly detail: string;

  constructor(url: string, status: number, detail: string) {
    super(`HTTP ${status} from ${new URL(url).origin}${detail ? `: ${detail}` : ""}`);
    this.name = "HttpStatusError";
    this.status = status;
    this.detail = detail;
  }
}

/** The connection broke or fell silent. */
export class ConnectionError extends Error {
  override name = "ConnectionError";
}

export interface RetryOptions {
  headers?: Record<string, string>;
  signal?: AbortSignal;
  /** Default 5. */
  tries?: number;
  /** Milliseconds before the second try; doubles each time. Default 500. */
  retryDelayMs?: number;
}

/** The answer to a GET once it is a success. Busy and broken servers (429, 5xx) and broken connections are tried again. */
export async function fetchWithRetries(url: string, options: RetryOptions = {}): Promise<Response> {
  return retrying(options, async () => {
    const { headers = {}, signal } = options;
    const response = await fetchFrom(url, { headers, ...(signal ? { signal } : {}) });
    if (response.ok) return response;
    throw await statusError(url, response);
  });
}

/** What a response that is no success says, its body read so that the connection is free again. */
export async function statusError(url: string, response: Response): Promise<HttpStatusError> {
  const detail = response.headers.get("x-error-message") ?? (await response.text().catch(() => ""));
  const error = new HttpStatusError(url, response.status, detail.replaceAll(/\s+/g, " ").trim().slice(0, 200));
  const seconds = Number(response.headers.get("retry-after"));
  if (Number.isFinite(seconds) && seconds > 0) retryAfterMs.set(error, Math.min(seconds, 60) * 1000);
  return error;
}

/** Runs `attempt` until it succeeds, fails for good, or has been tried often enough. */
export async function retrying<T>(options: RetryOptions, attempt: () => Promise<T>): Promise<T> {
  for (let failures = 1; ; failures++) {
    try {
      return await attempt();
    } catch (error) {
      await pauseOrThrow(error, failures, options);
    }
  }
}

/** Waits before the next try; throws when the failure will not pass or there were too many in a row. */
export async function pauseOrThrow(error: unknown, failures: number, options: RetryOptions): Promise<void> {
  const { tries = 5, retryDelayMs = 500, signal } = options;
  signal?.throwIfAborted();
  if (failures >= tries || !isPassing(error)) throw rootCause(error);
  const delayMs = retryAfterMs.get(error as Error) ?? retryDelayMs * 2 ** (failures - 1);
  await sleep(delayMs, undefined, signal ? { signal } : {});
}

const retryAfterMs = new WeakMap<Error, number>();

/** May be gone in a moment: a busy server, a broken connection. A full disk or a bug is not. */
function isPassing(error: unknown): boolean {
  if (error instanceof HttpStatusError) return error.status === 429 || error.status >= 500 || error.status === 408;
  // fetch reports every network failure, and a body that breaks off, as a TypeError with a cause.
  return error instanceof ConnectionError || (error instanceof TypeError && error.cause instanceof Error);
}

/** fetch says only "fetch failed"; the reason is its cause. */
function rootCause(error: unknown): unknown {
  return error instanceof TypeError && error.cause instanceof Error ? error.cause : error;
}
