// A client of one or several Sandbox Fusion instances: keep-alive connections, a bound on requests in flight, the instance with
// the least to do first, instances that fail set aside and asked again later, and retries of everything that is not a verdict.

import { setTimeout as sleep } from "node:timers/promises";
import type { Pool } from "undici";
import { messageOf } from "../../core/errors.ts";
import { Limiter } from "../../core/limiter.ts";
import { whet } from "../../core/program.ts";
import { poolTo } from "../../core/proxy.ts";
import { SandboxError } from "../sandbox.ts";
import { type RunCodeRequest, type RunCodeResponse, runCodeResponse } from "./api.ts";
import { excessOf } from "./modest.ts";

export interface FusionOptions {
  /** One or several addresses, separated by commas, with or without /run_code. */
  url: string;
  /** Requests in flight per instance; default 4. */
  maxConcurrency?: number | undefined;
  /** Sent as a bearer token, for servers that want one. */
  token?: string | undefined;
  /** Pauses between tries, in seconds; their number is the number of retries. Default 1, 2, 4, each with jitter. */
  retryPausesS?: readonly number[];
}

interface Instance {
  origin: string;
  /** Path before /run_code, without a slash at its end. */
  prefix: string;
  pool: Pool;
  inFlight: number;
  failures: number;
  /** Not used before this moment (performance.now). */
  asideUntil: number;
}

/** One try that gave no answer; `retry` says whether another one may. */
class NoAnswer extends Error {
  readonly retry: boolean;
  readonly pauseS: number | undefined;
  /** The instance itself is in trouble, not only this request. */
  readonly unhealthy: boolean;

  constructor(message: string, more: { retry: boolean; unhealthy?: boolean; pauseS?: number | undefined }) {
    super(message);
    this.retry = more.retry;
    this.unhealthy = more.unhealthy ?? false;
    this.pauseS = more.pauseS;
  }
}

const maxResponseBytes = 160 * 1024 ** 2;
const pingTimeoutMs = 4_000;

export class FusionClient {
  readonly urls: readonly string[];
  /** Requests in flight at the same moment, over all instances. */
  readonly capacity: number;
  readonly #instances: readonly Instance[];
  readonly #limiter: Limiter;
  readonly #pausesS: readonly number[];
  readonly #headers: Record<string, string>;
  /** Questions to instances that were set aside; they never reject. */
  readonly #probes: Set<Promise<string | undefined>> = new Set();

  constructor(options: FusionOptions) {
    const perInstance = Math.max(1, options.maxConcurrency ?? 4);
    this.#instances = parseUrls(options.url).map((url) => ({
      origin: url.origin,
      prefix: url.pathname.replace(/\/(run_code\/?)?$/, ""),
      pool: poolTo(url.origin, { connections: perInstance, pipelining: 1, headersTimeout: 0, bodyTimeout: 0 }),
      inFlight: 0,
      failures: 0,
      asideUntil: 0,
    }));
    this.urls = this.#instances.map((instance) => instance.origin + instance.prefix);
    this.capacity = perInstance * this.#instances.length;
    this.#limiter = new Limiter(this.capacity);
    this.#pausesS = options.retryPausesS ?? [1, 2, 4];
    this.#headers = options.token ? { authorization: `Bearer ${options.token}` } : {};
  }

  /** Asks every instance for a sign of life; rejects when none gives one. */
  async ping(): Promise<void> {
    const answers = await Promise.all(this.#instances.map((instance) => this.#isAlive(instance)));
    if (answers.every((problem) => problem !== undefined))
      throw new SandboxError(
        "sandbox/fusion-unreachable",
        `No Sandbox Fusion server answered at ${this.urls.join(", ")} (${answers[0]}). Start one (docker run -p 8080:8080 volcengine/sandbox-fusion:server-20250609, or ${whet} sandbox port=8080), or leave sandbox_url unset for the embedded jail.`,
      );
  }

  /** Runs one request; resolves with the server's answer, also to a program that failed. Rejects with SandboxError after the last try. */
  async runCode(request: RunCodeRequest, options: { signal?: AbortSignal | undefined } = {}): Promise<RunCodeResponse> {
    return this.#limiter.run(async () => {
      // Serialised once: a request may carry megabytes, and a retry sends the same bytes.
      const body = JSON.stringify({ compile_timeout: 10, run_timeout: 10, ...request });
      const deadlineMs = ((request.run_timeout ?? 10) + 30) * 1000;
      let last: NoAnswer | undefined;
      for (let attempt = 0; attempt <= this.#pausesS.length; attempt++) {
        if (attempt > 0) await this.#pause(attempt, last, options.signal);
        const instance = await this.#choose(options.signal);
        try {
          const answer = await this.#send(instance, body, deadlineMs, options.signal);
          instance.failures = 0;
          return answer;
        } catch (error) {
          options.signal?.throwIfAborted();
          if (!(error instanceof NoAnswer)) throw error;
          if (error.unhealthy) setAside(instance);
          if (!error.retry)
            throw new SandboxError(
              "sandbox/fusion-refused",
              `Sandbox Fusion at ${instance.origin} refused a request: ${error.message}. The request will not get better by repeating; check the server's limits and version.`,
            );
          last = error;
        }
      }
      throw new SandboxError(
        "sandbox/fusion-failed",
        `Sandbox Fusion gave no answer after ${this.#pausesS.length + 1} tries at ${this.urls.join(", ")} (${last?.message}). Look at the server's log; the program is ungraded, not wrong.`,
      );
    }, options);
  }

  async close(): Promise<void> {
    await Promise.all(this.#instances.map((instance) => instance.pool.destroy()));
    await Promise.all(this.#probes);
  }

  async #send(
    instance: Instance,
    body: string,
    deadlineMs: number,
    signal: AbortSignal | undefined,
  ): Promise<RunCodeResponse> {
    instance.inFlight++;
    const deadline = AbortSignal.timeout(deadlineMs);
    try {
      const response = await instance.pool.request({
        method: "POST",
        path: `${instance.prefix}/run_code`,
        headers: { ...this.#headers, "content-type": "application/json" },
        body,
        signal: signal ? AbortSignal.any([signal, deadline]) : deadline,
      });
      const bytes = await readBody(response.body);
      const start = bytes.toString("utf8", 0, 200);
      if (response.statusCode !== 200) throw refusal(response.statusCode, response.headers["retry-after"], start);
      const excess = excessOf(bytes);
      if (excess !== undefined) throw new NoAnswer(`an answer that is too large: ${excess}`, { retry: true });
      const answer = asRunCodeResponse(bytes);
      if (!answer) throw new NoAnswer(`an answer that is not Sandbox Fusion's: ${start}`, { retry: true });
      if (answer.status === "SandboxError")
        throw new NoAnswer(`SandboxError: ${answer.message.slice(-200)}`, { retry: true });
      return answer;
    } catch (error) {
      if (error instanceof NoAnswer) throw error;
      if (signal?.aborted) throw signal.reason;
      const reason = deadline.aborted ? `no answer within ${deadlineMs / 1000} s` : describe(error);
      throw new NoAnswer(reason, { retry: true, unhealthy: true });
    } finally {
      instance.inFlight--;
    }
  }

  /** The healthy instance with the least in flight; when all are set aside, the first that may be asked again. */
  async #choose(signal: AbortSignal | undefined): Promise<Instance> {
    const now = performance.now();
    const byLoad = this.#instances.toSorted((a, b) => a.inFlight - b.inFlight);
    const healthy = byLoad.find((instance) => instance.failures === 0);
    const due = byLoad.find((instance) => instance.failures > 0 && instance.asideUntil <= now);
    if (due) {
      // One request finds out for all; until it knows, the others pass this instance by.
      due.asideUntil = now + pingTimeoutMs;
      const probe = this.#isAlive(due);
      this.#probes.add(probe);
      const ended = probe.finally(() => this.#probes.delete(probe));
      if (!healthy && (await ended) === undefined) return due;
      signal?.throwIfAborted();
    }
    return healthy ?? byLoad.reduce((a, b) => (b.asideUntil < a.asideUntil ? b : a));
  }

  /** undefined when the instance answers a ping, else what went wrong. */
  async #isAlive(instance: Instance): Promise<string | undefined> {
    try {
      const response = await instance.pool.request({
        method: "GET",
        path: `${instance.prefix}/v1/ping`,
        headers: this.#headers,
        signal: AbortSignal.timeout(pingTimeoutMs),
      });
      await readBody(response.body);
      if (response.statusCode >= 500) throw new Error(`HTTP ${response.statusCode}`);
      instance.failures = 0;
      return undefined;
    } catch (error) {
      setAside(instance);
      return describe(error);
    }
  }

  async #pause(attempt: number, last: NoAnswer | undefined, signal: AbortSignal | undefined): Promise<void> {
    const now = performance.now();
    // Another instance can be asked at once.
    if (last?.unhealthy && this.#instances.some(({ failures, asideUntil }) => failures === 0 && asideUntil <= now))
      return;
    const planned = this.#pausesS[attempt - 1]!;
    const seconds = Math.min(30, Math.max(last?.pauseS ?? 0, planned * (0.75 + Math.random() / 2)));
    await sleep(seconds * 1000, undefined, signal ? { signal } : {});
  }
}

function setAside(instance: Instance): void {
  instance.failures++;
  instance.asideUntil = performance.now() + Math.min(30_000, 500 * 2 ** Math.min(instance.failures, 6));
}

function refusal(status: number, retryAfter: string | string[] | undefined, text: string): NoAnswer {
  const seconds = Number(retryAfter);
  return new NoAnswer(`HTTP ${status} ${text}`, {
    retry: status === 408 || status === 429 || status >= 500,
    unhealthy: status === 502 || status === 503 || status === 504,
    pauseS: Number.isFinite(seconds) && seconds > 0 ? seconds : undefined,
  });
}

async function readBody(body: AsyncIterable<Uint8Array>): Promise<Buffer> {
  const pieces: Uint8Array[] = [];
  let size = 0;
  for await (const piece of body) {
    size += piece.length;
    if (size > maxResponseBytes) throw new Error(`an answer of more than ${maxResponseBytes} bytes`);
    pieces.push(piece);
  }
  return Buffer.concat(pieces);
}

function asRunCodeResponse(body: Buffer): RunCodeResponse | undefined {
  try {
    return runCodeResponse.safeParse(JSON.parse(body.toString("utf8"))).data;
  } catch {
    return undefined;
  }
}

/** The addresses in a comma-separated list. */
function parseUrls(list: string): URL[] {
  const parts = list
    .split(",")
    .map((part) => part.trim())
    .filter((part) => part !== "");
  return (parts.length > 0 ? parts : [""]).map((part) => {
    const url = URL.canParse(part) ? new URL(part) : undefined;
    if (url && /^https?:$/.test(url.protocol)) return url;
    throw new SandboxError(
      "sandbox/fusion-url",
      `SANDBOX_URL holds "${part}", which is no http address. Write for example http://localhost:8080/run_code; separate several with commas.`,
    );
  });
}

/** undici hides the reason (ECONNREFUSED …) in `code` or `cause`. */
function describe(error: unknown): string {
  const code = (error as { code?: unknown }).code ?? (error as { cause?: { code?: unknown } }).cause?.code;
  const message = messageOf(error);
  return typeof code === "string" && !message.includes(code) ? `${code} ${message}`.trim() : message;
}
