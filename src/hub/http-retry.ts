// Requests to servers elsewhere, tried again where they may be busy for a moment. Nothing here knows what the answers mean.
import { setTimeout as sleep } from "node:timers/promises";
import { fetchFrom } from "../core/proxy.ts";

/** The server answered, with a status that is not a success. */
export class HttpStatusError extends Error {
  override name = "HttpStatusError";
  readonly status: number;
  readonly detail: string;
  /** The server's own delay before the next try. */
  readonly retryAfterMs: number | undefined;

  constructor(url: string, { status, headers }: Response, detail: string) {
    super(`HTTP ${status} from ${new URL(url).origin}${detail ? `: ${detail}` : ""}`);
    this.status = status;
    this.detail = detail;
    const seconds = Number(headers.get("retry-after"));
    this.retryAfterMs = Number.isFinite(seconds) && seconds > 0 ? Math.min(seconds, 60) * 1000 : undefined;
  }
}

/** The connection broke or fell silent. */
export class ConnectionError extends Error {
  override name = "ConnectionError";
}

export interface RetryOptions {
  signal?: AbortSignal | undefined;
  /** Default 5. */
  tries?: number;
  /** Milliseconds before the second try; doubles each time. Default 500. */
  retryDelayMs?: number | undefined;
}

/** The answer to one request. Throws HttpStatusError for a status that is neither a success nor among `expected`. */
export async function send(url: string, init: RequestInit, expected: readonly number[] = []): Promise<Response> {
  const response = await fetchFrom(url, init);
  if (response.ok || expected.includes(response.status)) return response;
  // Its body is read so that the connection is free again.
  const detail = response.headers.get("x-error-message") ?? (await response.text().catch(() => ""));
  throw new HttpStatusError(url, response, detail.replaceAll(/\s+/g, " ").trim().slice(0, 200));
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
  // fetch reports every network failure, and a body that breaks off, as a TypeError with a cause, and says only "fetch failed".
  const failure = error instanceof TypeError && error.cause instanceof Error ? error.cause : undefined;
  // A busy server or a broken connection may be gone in a moment. A full disk or a bug is not.
  const mayPass =
    error instanceof HttpStatusError
      ? error.status === 429 || error.status >= 500 || error.status === 408
      : error instanceof ConnectionError || failure !== undefined;
  if (failures >= tries || !mayPass) throw failure ?? error;
  const asked = error instanceof HttpStatusError ? error.retryAfterMs : undefined;
  await sleep(asked ?? retryDelayMs * 2 ** (failures - 1), undefined, signal && { signal });
}
