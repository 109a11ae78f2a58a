// What all clients of one ServiceClient share: connections, credentials, the server's flags, the session and its heartbeat.
import { randomUUID } from "node:crypto";
import { setMaxListeners } from "node:events";
import type { z } from "zod";
import {
  apiPrefix,
  type ClientConfig,
  decode,
  defaultClientConfig,
  encodeText,
  jsonType,
  ProtocolError,
  parseJson,
  pathOf,
  protobufType,
  type Route,
  routes,
} from "../protocol/index.ts";
import { BytesPool } from "./bytes-pool.ts";
import { Credentials } from "./credentials.ts";
import { APIResponseError, ClientClosedError } from "./errors.ts";
import { Heartbeat } from "./heartbeat.ts";
import { protocolVersion, type QueueStateEvent, type ResolvedOptions, userAgent } from "./options.ts";
import { BillingPause, type RetryContext, type RetryPolicy, withRetries } from "./retry.ts";
import { SampleGate } from "./sample-gate.ts";
import { type HttpAnswer, type HttpRequest, Transport, textOf } from "./transport.ts";
import { Budget, untilAborted } from "./wait.ts";

export interface CallOptions {
  /** What is asked, for messages; default: the path's last part. */
  what?: string;
  policy?: RetryPolicy;
  onRetry?: () => void;
  /** True for an answer that no further try would change. */
  isFinal?: (answer: HttpAnswer) => Promise<boolean>;
}

/** What a route is asked with. */
export interface Question<R extends Route> {
  message?: R["request"] extends z.ZodType ? z.output<R["request"]> : never;
  parameters?: Readonly<Record<string, string>>;
  query?: Readonly<Record<string, string | number | undefined>>;
  headers?: Readonly<Record<string, string>> | undefined;
  signal?: AbortSignal | undefined;
}

type Reply<R extends Route> = R["response"] extends z.ZodType ? z.output<R["response"]> : undefined;

/** The request that asks a route. */
export function requestOf<R extends Route>(route: R, question: Question<R>): HttpRequest {
  const { message, parameters, query = {}, headers, signal } = question;
  const pairs = Object.entries(query).filter(([, value]) => value !== undefined);
  const text = new URLSearchParams(pairs.map(([name, value]): [string, string] => [name, String(value)])).toString();
  const path = pathOf(route, parameters) + (text ? `?${text}` : "");
  const body = message === undefined || !route.request ? undefined : encodeText(route.request, message);
  return { method: route.method, path, body, contentType: jsonType, headers, signal };
}

/** Tells the user, now and then, that something takes long. */
export interface SlowNotice {
  check(now: number): void;
}

export class Connection {
  readonly options: ResolvedOptions;
  readonly transport: Transport;
  readonly credentials: Credentials;
  readonly billing: BillingPause;
  /** Aborted, with a ClientClosedError, when the client is closed. */
  readonly closing: AbortSignal;
  readonly sampleGate: SampleGate;
  readonly bodies = new BytesPool();
  /** Bytes of training data being submitted, and of large results being fetched. */
  trainingBytes = new Budget(defaultClientConfig.fwdbwdDispatchBytesSemaphoreSize);
  resultBytes = new Budget(defaultClientConfig.inflightResponseBytesSemaphoreSize);
  readonly #closer = new AbortController();
  #config: Promise<ClientConfig> | undefined;
  #session: Promise<string> | undefined;
  #heartbeat: Heartbeat | undefined;
  #modelCount = 0;
  #samplerCount = 0;
  /** Undefined: not known yet. False: training data go as JSON. */
  #protobuf: boolean | undefined;
  #probe: Promise<boolean> | undefined;
  #lastSlowNotice = Number.NEGATIVE_INFINITY;
  readonly #deprecations = new Set<string>();
  readonly #queueStates = new Map<string, QueueStateEvent["state"]>();
  #lastPauseWarning = Number.NEGATIVE_INFINITY;

  constructor(options: ResolvedOptions) {
    this.options = options;
    this.transport = new Transport(options);
    this.credentials = new Credentials(options.credential, options.credentialCommand);
    this.billing = new BillingPause(options.timings, options.onWarning);
    this.closing = this.#closer.signal;
    this.sampleGate = new SampleGate(options.timings);
    setMaxListeners(0, this.closing);
  }

  /** Retries a fixed number of times: what starts and ends things. */
  get shortPolicy(): RetryPolicy {
    return { maxRetries: this.options.maxRetries, windowMs: 0 };
  }

  /** Retries for minutes: submits and REST calls. */
  get longPolicy(): RetryPolicy {
    return { maxRetries: this.options.maxRetries, windowMs: this.options.timings.retryWindowMs };
  }

  /** The server's flags; asked once, and again only if that failed. */
  config(): Promise<ClientConfig> {
    this.#config ??= this.#start().catch((error: unknown) => {
      this.#config = undefined;
      throw error;
    });
    return this.#config;
  }

  /** The session's id; the session is made at its first use. */
  session(): Promise<string> {
    this.#session ??= this.#createSession().catch((error: unknown) => {
      this.#session = undefined;
      throw error;
    });
    return this.#session;
  }

  nextModelSeqId(): number {
    return this.#modelCount++;
  }

  nextSamplingSeqId(): number {
    return this.#samplerCount++;
  }

  /** Asks a route and reads its answer. */
  async ask<R extends Route>(route: R, question: Question<R> = {}, options: CallOptions = {}): Promise<Reply<R>> {
    const answer = await this.call(requestOf(route, question), options);
    if (!route.response) return undefined as Reply<R>;
    return this.read(route.response, answer, options.what ?? nameOf(route)) as Reply<R>;
  }

  /** Sends a request, after start-up, with retries. Resolves to an answer below 400. */
  async call(request: HttpRequest, options: CallOptions = {}): Promise<HttpAnswer> {
    await untilAborted(this.config(), request.signal);
    return this.#callNow(request, options);
  }

  /** Sends a request once, after start-up; every status is an answer. */
  async sendOnce(request: HttpRequest): Promise<HttpAnswer> {
    await this.config();
    return this.#noted(await this.transport.send(request, await this.credentials.current()));
  }

  /** What a wait for `what` goes by. */
  retryContext(what: string, signal: AbortSignal | undefined): RetryContext {
    const { timings, onWarning: warn } = this.options;
    return { what, timings, warn, billing: this.billing, signals: [signal, this.closing] };
  }

  /**
   * False for a server that reads training data as JSON only (SkyRL 0.3). Most servers are never asked: only an answer to protobuf
   * that such a server would give leads to a question, with an empty body, that each kind refuses in its own way.
   */
  get protobuf(): boolean {
    return this.#protobuf ?? true;
  }

  /** Whether this refusal of a protobuf body means that the server reads none. */
  async refusesProtobuf(answer: HttpAnswer): Promise<boolean> {
    if (this.#protobuf !== undefined || ![415, 422, 500].includes(answer.status)) return false;
    this.#probe ??= this.#askForProtobuf().finally(() => {
      this.#probe = undefined;
    });
    return !(await this.#probe);
  }

  /** Remembers that the server has read a protobuf body. */
  readsProtobuf(): void {
    this.#protobuf = true;
  }

  async #askForProtobuf(): Promise<boolean> {
    const request: HttpRequest = {
      method: "POST",
      path: routes.forwardBackward.path,
      body: new Uint8Array(),
      contentType: protobufType,
    };
    try {
      const answer = await this.sendOnce(request);
      const { status } = answer;
      const issues = status === 422 ? issuesOf(textOf(answer)) : [];
      const unread = status === 415 || issues.some(({ type, loc }) => type === "missing" && loc?.join() === "body");
      this.#protobuf = !unread;
      if (unread)
        this.options.onWarning("This server reads no protobuf; training data are sent as JSON, which is slower.");
    } catch {
      // The call that led here is tried again, and leads here again.
    }
    return this.#protobuf ?? true;
  }

  /** For the wait of one operation: says so when it takes long, at most once a minute for all of them together. */
  slowNotice(operation: string, id: string): SlowNotice {
    const { timings, onWarning } = this.options;
    const started = performance.now();
    const intervalMs = 12 * timings.noticeMs;
    return {
      check: (now) => {
        if (now - started < intervalMs || now - this.#lastSlowNotice < intervalMs) return;
        this.#lastSlowNotice = now;
        onWarning(
          `${operation} of ${id} is not ready after ${Math.round((now - started) / 1000)} s; waiting on. A server that compiles needs minutes for the first request of each shape.`,
        );
      },
    };
  }

  /** Reads an answer as a JSON message. */
  read<T extends z.ZodType>(schema: T, answer: HttpAnswer, what: string): z.output<T> {
    try {
      return decode(schema, parseJson(textOf(answer)));
    } catch (error) {
      if (!(error instanceof ProtocolError)) throw error;
      throw badResponse(what, error);
    }
  }

  /** Passes a queue's state on when it changes. */
  reportQueueState(event: QueueStateEvent): void {
    if ((this.#queueStates.get(event.id) ?? "active") === event.state) return;
    if (event.state === "active") this.#queueStates.delete(event.id);
    else this.#queueStates.set(event.id, event.state);
    if (this.options.onQueueState) this.options.onQueueState(event);
    else if (event.state !== "active" && performance.now() - this.#lastPauseWarning >= 60_000) {
      this.#lastPauseWarning = performance.now();
      this.options.onWarning(`The queue of ${event.id} is ${event.state}${event.reason ? `: ${event.reason}` : ""}.`);
    }
  }

  async close(): Promise<void> {
    await this.#finish();
    this.#closer.abort(new ClientClosedError());
    this.credentials.close();
    this.bodies.clear();
    await Promise.all([this.transport.close(), this.#heartbeat?.close()]);
  }

  /** Tells the server that the session is over, if it wants to know. */
  async #finish(): Promise<void> {
    if (!this.#session || this.closing.aborted) return;
    try {
      const session = await this.#session;
      const request = requestOf(routes.finishSession, {
        message: { reason: { type: "success" } },
        parameters: { session },
      });
      await this.transport.send({ ...request, timeoutMs: finishTimeoutMs }, this.credentials.token);
    } catch {
      // It ends by itself when the heartbeats stop.
    }
  }

  async #start(): Promise<ClientConfig> {
    const what = "the client configuration";
    const route = routes.clientConfig;
    const request = requestOf(route, { message: { sdkVersion: protocolVersion } });
    const config = this.read(route.response, await this.#callNow(request, { what, policy: this.longPolicy }), what);
    this.billing.maxPauseMs = config.billingExceptionMaxPauseDurationSec * 1000;
    this.trainingBytes = new Budget(config.fwdbwdDispatchBytesSemaphoreSize);
    this.resultBytes = new Budget(config.inflightResponseBytesSemaphoreSize);
    this.sampleGate.setByteBudget(config.sampleDispatchBytesSemaphoreSize);
    if (config.pjwtAuthEnabled) {
      this.credentials.useCommand = config.credentialDefaultSource === "credential_cmd";
      await this.credentials.useTokens((credential) => this.#exchange(credential));
    }
    return config;
  }

  async #exchange(credential: string): Promise<string> {
    const request: HttpRequest = { method: "POST", path: routes.authToken.path, body: "{}", signal: this.closing };
    const answer = await withRetries(
      () => this.transport.send(request, credential),
      this.shortPolicy,
      this.retryContext("auth/token", undefined),
    );
    return this.read(routes.authToken.response, answer, "auth/token").jwt;
  }

  async #createSession(): Promise<string> {
    const { tags, userMetadata, projectId, displayName, timings, headers, baseUrl, onWarning } = this.options;
    const message = {
      type: "create_session" as const,
      tags: [...tags],
      userMetadata: { ...userMetadata },
      sdkVersion: protocolVersion,
      projectId,
      displayName,
    };
    const session = await this.ask(routes.createSession, { message }, { policy: this.shortPolicy });
    for (const text of [session.errorMessage, session.warningMessage]) if (text) onWarning(`The server says: ${text}`);
    this.closing.throwIfAborted();
    const beat = routes.sessionHeartbeat;
    const heartbeat = new Heartbeat(
      {
        url: baseUrl.origin + baseUrl.pathname.replace(/\/+$/, "") + apiPrefix + beat.path,
        body: encodeText(beat.request, { type: "session_heartbeat", sessionId: session.sessionId }),
        headers: {
          ...headers,
          "User-Agent": userAgent,
          "Content-Type": jsonType,
          Accept: jsonType,
          "X-API-Key": this.credentials.token,
        },
        intervalMs: timings.heartbeatIntervalMs,
        timeoutMs: Math.min(10_000, timings.requestTimeoutMs),
      },
      warnAfterBeats * timings.heartbeatIntervalMs,
      onWarning,
    );
    this.#heartbeat = heartbeat;
    this.credentials.onChange = (token) => heartbeat.setApiKey(token);
    return session.sessionId;
  }

  #callNow(
    request: HttpRequest,
    { what = nameOf(request), policy = this.longPolicy, onRetry, isFinal }: CallOptions,
  ): Promise<HttpAnswer> {
    const idempotencyKey = randomUUID();
    const send = async () => this.#noted(await this.#follow(request, await this.credentials.current(), idempotencyKey));
    return withRetries(send, policy, { ...this.retryContext(what, request.signal), onRetry, isFinal });
  }

  /** Passes a server's word on what will go away on to the user, once. */
  #noted(answer: HttpAnswer): HttpAnswer {
    const note = answer.headers["x-deprecation-note"];
    if (typeof note === "string" && !this.#deprecations.has(note)) {
      this.#deprecations.add(note);
      this.options.onWarning(`The server says: ${note}`);
    }
    return answer;
  }

  /** Sends a request and goes where a redirect points, on the same server only: the key must not leave it. */
  async #follow(request: HttpRequest, apiKey: string, idempotencyKey: string): Promise<HttpAnswer> {
    let answer = await this.transport.send(request, apiKey, idempotencyKey);
    for (let hops = 0; hops < maxRedirects && answer.status >= 300 && answer.status < 400; hops++) {
      const path = this.transport.pathOf(answer.headers["location"]);
      if (path === undefined) break;
      answer = await this.transport.send({ ...request, path }, apiKey, idempotencyKey);
    }
    if (answer.status < 300 || answer.status >= 400) return answer;
    throw badResponse(nameOf(request), new Error(`it is a redirect to ${String(answer.headers["location"])}.`));
  }
}

const maxRedirects = 5;
/** How long a client that closes waits for the server to hear of it. */
const finishTimeoutMs = 2000;
/** Missed heartbeats after which the user is warned. */
const warnAfterBeats = 12;
const nameOf = (request: { path: string }) => request.path.split("?", 1)[0]!.slice(1);

function issuesOf(text: string): { type?: unknown; loc?: unknown[] }[] {
  try {
    const { detail } = JSON.parse(text) as { detail?: unknown };
    return Array.isArray(detail) ? (detail as { type?: unknown; loc?: unknown[] }[]) : [];
  } catch {
    return [];
  }
}

/** An answer of status 200 that cannot be read. */
export function badResponse(what: string, cause: Error): APIResponseError {
  return new APIResponseError(
    `The answer to ${what} is not what the Tinker protocol says: ${cause.message} Check that baseUrl is a Tinker server of a version this client knows.`,
    { cause },
  );
}
