// One HTTP exchange: a request goes out over a pool of kept-alive connections, and its whole answer comes back, or an error that
// says why none did. It uses undici's dispatch interface directly, which makes no stream and no AbortController per request.
import { Readable } from "node:stream";
import type { Dispatcher, Pool } from "undici";
import { ProxyError, poolTo, refuseLogin } from "../core/proxy.ts";
import { nextTurn } from "../core/turns.ts";
import { apiPrefix, jsonType } from "../protocol/index.ts";
import { APIConnectionError, APITimeoutError, ClientClosedError } from "./errors.ts";
import { type ResolvedOptions, userAgent } from "./options.ts";
import { Pacer } from "./pacing.ts";

export interface HttpRequest {
  method: "GET" | "POST" | "PUT" | "DELETE";
  /** After the API prefix, query included. */
  path: string;
  body?: string | Uint8Array | undefined;
  contentType?: string | undefined;
  accept?: string | undefined;
  headers?: Readonly<Record<string, string>> | undefined;
  timeoutMs?: number | undefined;
  signal?: AbortSignal | undefined;
  /** Polls have connections of their own, so that a thousand of them cannot hold up a submit. */
  poll?: boolean | undefined;
}

export interface HttpAnswer {
  status: number;
  headers: Readonly<Record<string, string | string[] | undefined>>;
  body: Uint8Array;
}

/** An answer's body as text. */
export function textOf(answer: HttpAnswer): string {
  const { buffer, byteOffset, byteLength } = answer.body;
  return Buffer.from(buffer, byteOffset, byteLength).toString("utf8");
}

/** How many answers in a row may be taken for a proxy's before they are believed. */
const proxyRejectionBudget = 16;

const connectTimeoutMs = 5_000;
const answersPerTurn = 4;
/** Calls are answered soon; polls each hold a connection for as long as their work takes. */
const callConnections = 128;

export class Transport {
  readonly #options: ResolvedOptions;
  readonly #calls: Pool;
  readonly #polls: Pool;
  readonly #prefix: string;
  readonly #headers: Readonly<Record<string, string>>;
  readonly #active = new Set<(error: Error) => void>();
  /** What follows an answer (decoding, the caller's code, the next request) takes far longer than reading it. */
  readonly #answers = new Pacer(answersPerTurn);
  #proxyRejectionsLeft = proxyRejectionBudget;
  #closed = false;

  constructor(options: ResolvedOptions) {
    this.#options = options;
    this.#prefix = options.baseUrl.pathname.replace(/\/+$/, "") + apiPrefix;
    this.#headers = { "User-Agent": userAgent, ...options.headers };
    const pool = (connections: number) =>
      poolTo(options.baseUrl.origin, {
        connections,
        connect: { timeout: connectTimeoutMs },
        // Every exchange has a time limit of its own, below.
        headersTimeout: 0,
        bodyTimeout: 0,
        keepAliveTimeout: 30_000,
      });
    this.#calls = pool(Math.min(options.maxConnections, callConnections));
    this.#polls = pool(options.maxConnections);
  }

  /** Sends a request once. Throws APIConnectionError or APITimeoutError when no answer comes; every status is an answer. */
  send(request: HttpRequest, apiKey: string, idempotencyKey?: string): Promise<HttpAnswer> {
    return new Promise((resolve, reject) => {
      if (this.#closed) {
        reject(new ClientClosedError());
        return;
      }
      if (request.signal?.aborted) {
        reject(request.signal.reason);
        return;
      }
      const timeoutMs = request.timeoutMs ?? this.#options.timings.requestTimeoutMs;
      let controller: Dispatcher.DispatchController | undefined;
      let settled = false;
      let status = 0;
      let headers: HttpAnswer["headers"] = {};
      const chunks: Buffer[] = [];

      const settle = () => {
        settled = true;
        clearTimeout(timer);
        this.#active.delete(fail);
        request.signal?.removeEventListener("abort", abort);
      };
      const fail = (error: Error) => {
        if (settled) return;
        settle();
        controller?.abort(error);
        reject(error);
      };
      const abort = () => {
        if (settled) return;
        settle();
        controller?.abort(new Error("aborted"));
        reject(request.signal?.reason);
      };
      const timer = setTimeout(
        () => fail(new APITimeoutError(`${this.#describe(request)} got no complete answer within ${timeoutMs} ms.`)),
        timeoutMs,
      );
      this.#active.add(fail);
      request.signal?.addEventListener("abort", abort, { once: true });

      const pool = request.poll ? this.#polls : this.#calls;
      pool.dispatch(
        {
          path: this.#prefix + request.path,
          method: request.method,
          headers: this.#headersOf(request, apiKey, idempotencyKey),
          body: bodyOf(request),
        },
        {
          onRequestStart: (started) => {
            controller = started;
            // It waited for a connection and is not wanted any more.
            if (settled) started.abort(new Error("aborted"));
          },
          onResponseStart: (_, statusCode, responseHeaders) => {
            status = statusCode;
            headers = responseHeaders;
            if (status === 407) {
              try {
                refuseLogin(this.#options.baseUrl, status);
              } catch (error) {
                fail(error as Error);
              }
            }
            if (status === 400 && this.#looksLikeProxy(headers))
              fail(
                new APIConnectionError(
                  `${this.#describe(request)} was answered 400 by something before the server (the answer has no length).`,
                ),
              );
          },
          onResponseData: (_, chunk) => {
            chunks.push(chunk);
          },
          onResponseEnd: () => {
            if (settled) return;
            settle();
            if (status < 400 && this.#proxyRejectionsLeft < proxyRejectionBudget) this.#proxyRejectionsLeft++;
            const answer = { status, headers, body: chunks.length === 1 ? chunks[0]! : Buffer.concat(chunks) };
            this.#answers.run(() => resolve(answer));
          },
          onResponseError: (_, error) => {
            const message = `${this.#describe(request)} got no answer (${reasonOf(error)}).`;
            // What a proxy refuses for good is not tried again.
            fail(error instanceof ProxyError ? error : new APIConnectionError(message, { cause: error }));
          },
        },
      );
    });
  }

  /** The path of a redirect, as `send` takes it; undefined when it leaves this server's API. */
  pathOf(location: string | string[] | undefined): string | undefined {
    if (typeof location !== "string") return undefined;
    const url = new URL(location, this.#options.baseUrl.origin);
    if (url.origin !== this.#options.baseUrl.origin || !url.pathname.startsWith(`${this.#prefix}/`)) return undefined;
    return url.pathname.slice(this.#prefix.length) + url.search;
  }

  /** Fails what is in flight and closes every connection. */
  async close(): Promise<void> {
    this.#closed = true;
    const error = new ClientClosedError();
    for (const fail of [...this.#active]) fail(error);
    await Promise.all([this.#calls.destroy(), this.#polls.destroy()]);
  }

  /** Where a path of the API is. */
  urlOf(path: string): string {
    return this.#options.baseUrl.origin + this.#prefix + path;
  }

  #describe({ method, path }: HttpRequest): string {
    return `${method} ${this.urlOf(path.split("?", 1)[0]!)}`;
  }

  #headersOf(request: HttpRequest, apiKey: string, idempotencyKey: string | undefined): Record<string, string> {
    const headers: Record<string, string> = {
      ...this.#headers,
      "X-API-Key": apiKey,
      Accept: request.accept ?? jsonType,
    };
    if (request.body !== undefined) headers["Content-Type"] = request.contentType ?? jsonType;
    // A body in slices would be sent without its length.
    if (request.body instanceof Uint8Array) headers["Content-Length"] = String(request.body.length);
    if (idempotencyKey !== undefined && request.method !== "GET") headers["X-Idempotency-Key"] = idempotencyKey;
    return request.headers ? { ...headers, ...request.headers } : headers;
  }

  /** The protocol's servers give every 400 a body and its length; some proxies do not. */
  #looksLikeProxy(headers: HttpAnswer["headers"]): boolean {
    const length = headers["content-length"];
    if (length !== undefined && length !== "0") return false;
    if (this.#proxyRejectionsLeft === 0) return false;
    this.#proxyRejectionsLeft--;
    return true;
  }
}

/** What one write hands to the system at once: a few hundred microseconds of copying. */
const sliceBytes = 1 << 19;

function bodyOf({ body }: HttpRequest): string | Uint8Array | Readable | null {
  if (!(body instanceof Uint8Array) || body.length <= sliceBytes) return body ?? null;
  return Readable.from(slices(body), { objectMode: false });
}

/** Megabytes written in one go would hold up the event loop while the system copies them. */
async function* slices(body: Uint8Array): AsyncGenerator<Uint8Array> {
  for (let start = 0; start < body.length; start += sliceBytes) {
    if (start > 0) await nextTurn();
    yield body.subarray(start, start + sliceBytes);
  }
}

const reasons: Readonly<Record<string, string>> = {
  ECONNREFUSED: "connection refused",
  ECONNRESET: "connection reset",
  ENOTFOUND: "host not found",
  UND_ERR_SOCKET: "connection closed",
  UND_ERR_CONNECT_TIMEOUT: "no connection in time",
};

function reasonOf(error: Error & { code?: string; errors?: Error[] }): string {
  const code = error.code ?? (error.errors?.[0] as { code?: string } | undefined)?.code;
  return (code && reasons[code]) ?? (error.message || code || error.name);
}
