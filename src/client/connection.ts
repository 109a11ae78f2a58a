// What all clients of one ServiceClient share: connections, credentials, the server's flags, the session and its heartbeat.
import { randomUUID } from "node:crypto";
import { setMaxListeners } from "node:events";
import type { z } from "zod";
import {
  apiPrefix,
  authTokenResponse,
  type ClientConfig,
  clientConfig,
  clientConfigRequest,
  createSessionRequest,
  createSessionResponse,
  decode,
  defaultClientConfig,
  encodeText,
  jsonType,
  ProtocolError,
  parseJson,
  routes,
  sessionHeartbeatRequest,
} from "../protocol/index.ts";
import { BytesPool } from "./bytes-pool.ts";
import { Credentials } from "./credentials.ts";
import { APIResponseError, ClientClosedError } from "./errors.ts";
import { Heartbeat } from "./heartbeat.ts";
import { protocolVersion, type QueueStateEvent, type ResolvedOptions, userAgent } from "./options.ts";
import { BillingPause, type RetryPolicy, withRetries } from "./retry.ts";
import { SampleGate } from "./sample-gate.ts";
import { type HttpAnswer, type HttpRequest, Transport, textOf } from "./transport.ts";
import { Budget, untilAborted } from "./wait.ts";

export interface CallOptions {
  /** What is asked, for messages; default: the path's last part. */
  what?: string;
  policy?: RetryPolicy;
  onRetry?: () => void;
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

  /** Sends a request, after start-up, with retries. Resolves to an answer below 400. */
  async call(request: HttpRequest, options: CallOptions = {}): Promise<HttpAnswer> {
    await untilAborted(this.config(), request.signal);
    return this.#callNow(request, options);
  }

  /** Like `call`, and reads the answer as a JSON message. */
  async json<T extends z.ZodType>(schema: T, request: HttpRequest, options: CallOptions = {}): Promise<z.output<T>> {
    return this.read(schema, await this.call(request, options), options.what ?? nameOf(request));
  }

  /** Sends a request once, after start-up; every status is an answer. */
  async sendOnce(request: HttpRequest): Promise<HttpAnswer> {
    await this.config();
    return this.transport.send(request, await this.credentials.current());
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
    this.#closer.abort(new ClientClosedError());
    this.credentials.close();
    this.bodies.clear();
    await Promise.all([this.transport.close(), this.#heartbeat?.close()]);
  }

  async #start(): Promise<ClientConfig> {
    const body = encodeText(clientConfigRequest, { sdkVersion: protocolVersion });
    const what = "the client configuration";
    const request: HttpRequest = { method: "POST", path: routes.clientConfig, body };
    const config = this.read(clientConfig, await this.#callNow(request, { what, policy: this.longPolicy }), what);
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
    const request: HttpRequest = { method: "POST", path: routes.authToken, body: "{}", signal: this.closing };
    const answer = await withRetries(() => this.transport.send(request, credential), this.shortPolicy, {
      what: "auth/token",
      timings: this.options.timings,
      billing: this.billing,
      signals: [this.closing],
    });
    return this.read(authTokenResponse, answer, "auth/token").jwt;
  }

  async #createSession(): Promise<string> {
    const { tags, userMetadata, projectId, timings, headers, baseUrl, onWarning } = this.options;
    const body = encodeText(createSessionRequest, {
      type: "create_session",
      tags: [...tags],
      userMetadata: { ...userMetadata },
      sdkVersion: protocolVersion,
      projectId,
    });
    const request: HttpRequest = { method: "POST", path: routes.createSession, body };
    const session = await this.json(createSessionResponse, request, { policy: this.shortPolicy });
    for (const text of [session.errorMessage, session.warningMessage]) if (text) onWarning(`The server says: ${text}`);
    this.closing.throwIfAborted();
    const heartbeat = new Heartbeat(
      {
        url: baseUrl.origin + baseUrl.pathname.replace(/\/+$/, "") + apiPrefix + routes.sessionHeartbeat,
        body: encodeText(sessionHeartbeatRequest, { type: "session_heartbeat", sessionId: session.sessionId }),
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
      timings.heartbeatWarningMs,
      onWarning,
    );
    this.#heartbeat = heartbeat;
    this.credentials.onChange = (token) => heartbeat.setApiKey(token);
    return session.sessionId;
  }

  #callNow(request: HttpRequest, { what = nameOf(request), policy = this.longPolicy, onRetry }: CallOptions) {
    const { timings } = this.options;
    const idempotencyKey = randomUUID();
    const send = async () => this.#follow(request, await this.credentials.current(), idempotencyKey);
    const signals = [request.signal, this.closing];
    return withRetries(send, policy, { what, timings, billing: this.billing, signals, onRetry });
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
const nameOf = (request: HttpRequest) => request.path.split("?", 1)[0]!.slice(1);

/** An answer of status 200 that cannot be read. */
export function badResponse(what: string, cause: Error): APIResponseError {
  return new APIResponseError(
    `The answer to ${what} is not what the Tinker protocol says: ${cause.message} Check that baseUrl is a Tinker server of a version this client knows.`,
    { cause },
  );
}
