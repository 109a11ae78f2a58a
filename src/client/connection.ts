// What all clients of one ServiceClient share: connections, credentials, the server's flags, the session and its heartbeat.
import { randomUUID } from "node:crypto";
import { setMaxListeners } from "node:events";
import type { z } from "zod";
import { Outage } from "../core/outage.ts";
import { proxyFor } from "../core/proxy.ts";
import { untilAborted } from "../core/wait.ts";
import {
  type ClientConfig,
  decode,
  defaultClientConfig,
  encodeText,
  jsonType,
  ProtocolError,
  parseJson,
  pathOf,
  type Route,
  routes,
} from "../protocol/index.ts";
import { BytesPool } from "./bytes-pool.ts";
import { Credentials } from "./credentials.ts";
import { APIResponseError, ClientClosedError, InvalidInputError } from "./errors.ts";
import { Heartbeat } from "./heartbeat.ts";
import { Notices } from "./notices.ts";
import { protocolVersion, type QueueStateEvent, type ResolvedOptions, userAgent } from "./options.ts";
import { Budget } from "./pacing.ts";
import { BillingPause, policiesOf, type RetryContext, type RetryPolicy, withRetries } from "./retry.ts";
import { SampleGate } from "./sample-gate.ts";
import { TrainingEncoding } from "./training-encoding.ts";
import { type HttpAnswer, type HttpRequest, Transport, textOf } from "./transport.ts";

export interface CallOptions {
  /** What is asked, for messages; default: the path's last part. */
  what?: string;
  policy?: RetryPolicy;
  onRetry?: RetryContext["onRetry"];
  /** True for an answer that no further try would change. */
  isFinal?: (answer: HttpAnswer) => Promise<boolean>;
  /** False: a redirect is an answer like others. */
  follow?: boolean;
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

/** Runs an encoder of the protocol. What cannot be written, such as NaN as a number, is the caller's mistake. */
export function encoded(write: () => string, otherwise?: () => void): string {
  try {
    return write();
  } catch (error) {
    otherwise?.();
    if (!(error instanceof ProtocolError)) throw error;
    throw new InvalidInputError(`${error.message} Nothing was sent.`, { cause: error });
  }
}

/** The request that asks a route. */
export function requestOf<R extends Route>(route: R, question: Question<R>): HttpRequest {
  const { message, parameters, query = {}, headers, signal } = question;
  const pairs = Object.entries(query).filter(([, value]) => value !== undefined);
  const text = new URLSearchParams(pairs.map(([name, value]): [string, string] => [name, String(value)])).toString();
  const path = pathOf(route, parameters) + (text ? `?${text}` : "");
  const { request } = route;
  const body = message === undefined || !request ? undefined : encoded(() => encodeText(request, message));
  return { method: route.method, path, body, contentType: jsonType, headers, signal };
}

export class Connection {
  readonly options: ResolvedOptions;
  readonly transport: Transport;
  readonly credentials: Credentials;
  readonly notices: Notices;
  readonly policies: ReturnType<typeof policiesOf>;
  readonly billing: BillingPause;
  readonly outage: Outage;
  /** Aborted, with a ClientClosedError, when the client is closed. */
  readonly closing: AbortSignal;
  readonly sampleGate = new SampleGate();
  readonly bodies = new BytesPool();
  readonly trainingEncoding: TrainingEncoding;
  /** Bytes of training data being submitted, and of large results being fetched. */
  trainingBytes = new Budget(defaultClientConfig.fwdbwdDispatchBytesSemaphoreSize);
  resultBytes = new Budget(defaultClientConfig.inflightResponseBytesSemaphoreSize);
  readonly #closer = new AbortController();
  #config: Promise<ClientConfig> | undefined;
  #session: Promise<string> | undefined;
  #heartbeat: Heartbeat | undefined;
  #modelCount = 0;
  #samplerCount = 0;
  /** The session's models, but for those that were unloaded. */
  readonly models = new Set<string>();
  readonly #queueStates = new Map<string, QueueStateEvent["state"]>();

  constructor(options: ResolvedOptions) {
    this.options = options;
    this.transport = new Transport(options);
    this.credentials = new Credentials(options.credential, options.credentialCommand);
    this.notices = new Notices(options.onWarning, 12 * options.timings.noticeMs);
    this.policies = policiesOf(options);
    this.billing = new BillingPause(options.timings.retryMaxMs, this.notices);
    this.outage = new Outage({
      what: `The Tinker server at ${options.baseUrl.origin}`,
      patienceMs: options.timings.outageMs,
      quietMs: options.timings.noticeMs,
      report: options.onOutage,
    });
    this.closing = this.#closer.signal;
    this.trainingEncoding = new TrainingEncoding((request) => this.sendOnce(request), this.notices);
    setMaxListeners(0, this.closing);
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
    const { notices, billing, outage, closing } = this;
    return { what, timings: this.options.timings, notices, billing, outage, signals: [signal, closing] };
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
    else if (event.state !== "active")
      this.notices.say(
        "queue",
        `The queue of ${event.id} is ${event.state}${event.reason ? `: ${event.reason}` : ""}.`,
      );
  }

  async close(): Promise<void> {
    await this.#finish();
    this.#closer.abort(new ClientClosedError());
    this.credentials.close();
    this.bodies.clear();
    await Promise.all([this.transport.close(), this.#heartbeat?.close()]);
  }

  /** Tells the server that the session is over. One that does not know the question (SkyRL) is asked to let go of its models instead. */
  async #finish(): Promise<void> {
    if (!this.#session || this.closing.aborted) return;
    const send = (request: HttpRequest) =>
      this.transport.send({ ...request, timeoutMs: finishTimeoutMs }, this.credentials.token);
    try {
      const session = await this.#session;
      const message = { reason: { type: "success" as const } };
      const { status } = await send(requestOf(routes.finishSession, { message, parameters: { session } }));
      if (status !== 404 && status !== 405) return;
      for (const modelId of this.models) await send(requestOf(routes.unloadModel, { message: { modelId } }));
    } catch {
      // It ends by itself when the heartbeats stop.
    }
  }

  async #start(): Promise<ClientConfig> {
    const what = "the client configuration";
    const route = routes.clientConfig;
    const request = requestOf(route, { message: { sdkVersion: protocolVersion } });
    const config = this.read(route.response, await this.#callNow(request, { what }), what);
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
      this.policies.start,
      this.retryContext("auth/token", undefined),
    );
    return this.read(routes.authToken.response, answer, "auth/token").jwt;
  }

  async #createSession(): Promise<string> {
    const { tags, userMetadata, projectId, displayName, timings, headers, baseUrl, onWarning } = this.options;
    const message = {
      tags: [...tags],
      userMetadata: { ...userMetadata },
      sdkVersion: protocolVersion,
      projectId,
      displayName,
    };
    const session = await this.ask(routes.createSession, { message }, { policy: this.policies.start });
    for (const text of [session.errorMessage, session.warningMessage]) if (text) onWarning(`The server says: ${text}`);
    this.closing.throwIfAborted();
    const beat = routes.sessionHeartbeat;
    const heartbeat = new Heartbeat(
      {
        url: this.transport.urlOf(beat.path),
        body: encodeText(beat.request, { sessionId: session.sessionId }),
        headers: {
          ...headers,
          "User-Agent": userAgent,
          "Content-Type": jsonType,
          Accept: jsonType,
          "X-API-Key": this.credentials.token,
        },
        proxy: proxyFor(baseUrl),
        intervalMs: timings.heartbeatIntervalMs,
        timeoutMs: Math.min(10_000, timings.requestTimeoutMs),
      },
      warnAfterBeats * timings.heartbeatIntervalMs,
      { notices: this.notices, outage: this.outage },
    );
    this.#heartbeat = heartbeat;
    this.credentials.onChange = (token) => heartbeat.setApiKey(token);
    return session.sessionId;
  }

  #callNow(
    request: HttpRequest,
    { what = nameOf(request), policy = this.policies.call, onRetry, isFinal, follow = true }: CallOptions,
  ): Promise<HttpAnswer> {
    const idempotencyKey = randomUUID();
    const send = async () => {
      const apiKey = await this.credentials.current();
      const answer = await this.transport.send(request, apiKey, idempotencyKey);
      return this.#noted(follow ? await this.#follow(answer, request, apiKey, idempotencyKey) : answer);
    };
    return withRetries(send, policy, { ...this.retryContext(what, request.signal), onRetry, isFinal });
  }

  /** Notes that the server answers, and passes its word on what will go away on to the user, once. */
  #noted(answer: HttpAnswer): HttpAnswer {
    if (answer.status < 500) this.outage.answered();
    const note = answer.headers["x-deprecation-note"];
    if (typeof note === "string") this.notices.once(`The server says: ${note}`);
    return answer;
  }

  /** Goes where a redirect points, on the same server only: the key must not leave it. */
  async #follow(answer: HttpAnswer, request: HttpRequest, apiKey: string, idempotencyKey: string): Promise<HttpAnswer> {
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

/** An answer of status 200 that cannot be read. */
export function badResponse(what: string, cause: Error): APIResponseError {
  return new APIResponseError(
    `The answer to ${what} is not what the Tinker protocol says: ${cause.message} Check that baseUrl is a Tinker server of a version this client knows.`,
    { cause },
  );
}
