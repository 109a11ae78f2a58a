// The HTTP server: listens on the loopback interface, checks the key, finds the route, and answers. What the routes do is in App.
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { Duplex } from "node:stream";
import { setTimeout as sleep } from "node:timers/promises";
import { messageOf } from "../core/errors.ts";
import { isSecret, listen } from "../core/own-server.ts";
import type { Engine } from "../engine/engine.ts";
import { apiPrefix, encode, patternOf } from "../protocol/index.ts";
import { App, type AppSettings, defaultSettings } from "./app.ts";
import { servedDownloadRoutes } from "./downloads.ts";
import { badRequest, fromProtocol, ServerError } from "./errors.ts";
import { servedFutureRoutes } from "./future-routes.ts";
import { Answer, emptyAnswer, errorAnswer, jsonAnswer, readBody, send } from "./http.ts";
import { servedRestRoutes } from "./rest-routes.ts";
import { Call, plainBodyLimit, type ServedRoute } from "./route.ts";
import { servedSamplingRoutes } from "./sampling-routes.ts";
import { servedSessionRoutes } from "./session-routes.ts";
import { lockStateDir } from "./state-lock.ts";
import { within } from "./time-limit.ts";
import { servedTrainingRoutes } from "./training-routes.ts";

/** One request that is about to be handled, for whoever looks in between. */
export interface Exchange {
  /** The route's name in the protocol's table. */
  route: string;
  request: IncomingMessage;
  response: ServerResponse;
  /** Fires when the server closes. */
  ended: AbortSignal;
  restart: (downMs?: number) => Promise<void>;
}

/**
 * Stands between the wire and the routes: `handle` carries the request out and gives its answer. Returns what is to be sent instead
 * of it, or undefined where nothing is.
 */
export type Intercept = (exchange: Exchange, handle: () => Promise<Answer>) => Promise<Answer | undefined>;

export interface ServerOptions extends Partial<AppSettings> {
  stateDir: string;
  /** Called once at the start, and again by a scripted restart. */
  createEngine: () => Promise<Engine>;
  apiKey: string;
  /** 0: any free port. */
  port?: number;
  /** How long a shutdown waits for accepted work. */
  drainMs?: number;
  /** How long to wait for another server to leave the state folder. Default 0. */
  lockWaitMs?: number;
  /** Answers what another API of this address is asked; false: it is for the Tinker API. */
  beside?: ((request: IncomingMessage, response: ServerResponse) => Promise<boolean>) | undefined;
  /** For tests: makes the server misbehave. */
  intercept?: Intercept | undefined;
}

const host = "127.0.0.1";
const served = [
  ...servedSessionRoutes,
  ...servedTrainingRoutes,
  ...servedSamplingRoutes,
  ...servedFutureRoutes,
  ...servedRestRoutes,
  ...servedDownloadRoutes,
].map((entry) => ({ ...entry, pattern: patternOf(entry.route) }));

/** Every route's name, method and path, for documentation and tests. */
export const routeTable: readonly { name: string; method: string; path: string; pattern: RegExp }[] = served.map(
  ({ name, route, pattern }) => ({ name, method: route.method, path: route.path, pattern }),
);

export async function startServer(options: ServerOptions): Promise<TinkerServer> {
  const server = new TinkerServer(options);
  await server.open();
  return server;
}

export class TinkerServer {
  readonly #options: ServerOptions;
  #app: App | undefined;
  #http: Server | undefined;
  #port: number;
  #closing: Promise<void> | undefined;
  #unlock = () => {};
  #restarting: Promise<void> | undefined;
  /** Requests being handled. */
  readonly #active = new Set<Promise<void>>();

  constructor(options: ServerOptions) {
    this.#options = options;
    this.#port = options.port ?? 0;
  }

  get url(): string {
    return `http://${host}:${this.#port}`;
  }

  /** The current one; a restart makes another. */
  get app(): App {
    return this.#app!;
  }

  /** Takes the state folder and starts listening. */
  async open(): Promise<void> {
    this.#unlock = await lockStateDir(this.#options.stateDir, this.#options.lockWaitMs ?? 0);
    try {
      await this.#begin();
    } catch (error) {
      this.#unlock();
      throw error;
    }
  }

  async #begin(): Promise<void> {
    const { log = () => {} } = this.#options;
    const engine = await this.#options.createEngine();
    this.#app = new App(engine, { ...defaultSettings, ...this.#options, log });
    try {
      await this.#listen();
    } catch (error) {
      await this.#app.close(0);
      throw error;
    }
  }

  /** Drops every connection and everything in memory, then comes back over the state folder, on the same port. */
  restart(downMs = 0): Promise<void> {
    this.#restarting ??= (async () => {
      const http = this.#http!;
      const closed = new Promise((resolve) => http.close(resolve));
      http.closeAllConnections();
      await this.app.close(0);
      await closed;
      await sleep(downMs);
      if (!this.#closing) await this.#begin();
    })().finally(() => {
      this.#restarting = undefined;
    });
    return this.#restarting;
  }

  /** Stops accepting, answers what is in flight for up to `drainMs`, closes the engine. */
  close(drainMs = this.#options.drainMs ?? 10_000): Promise<void> {
    this.#closing ??= (async () => {
      await this.#restarting;
      const http = this.#http;
      const closed = new Promise((resolve) => (http ? http.close(resolve) : resolve(undefined)));
      await this.app.close(drainMs);
      await within(1000, Promise.allSettled([...this.#active]));
      http?.closeAllConnections();
      await closed;
      this.#unlock();
    })();
    return this.#closing;
  }

  async #listen(): Promise<void> {
    const http = createServer((request, response) => {
      const handled = this.#handle(request, response);
      this.#active.add(handled);
      void handled.finally(() => this.#active.delete(handled));
    });
    // Longer than any client keeps an idle connection, so that it is never closed under a request just sent.
    http.keepAliveTimeout = 75_000;
    http.maxConnections = 8192;
    http.on("clientError", refuseConnection);
    this.#port = await listen(http, this.#port, host).catch((cause: unknown) => {
      throw new ServerError(
        500,
        "server/listen",
        `Cannot listen on ${host}:${this.#port} (${messageOf(cause)}). Choose another port, or port=0 for any free one.`,
        { cause },
      );
    });
    this.#http = http;
  }

  async #handle(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const gone = new AbortController();
    response.once("close", () => gone.abort());
    response.on("error", () => {});
    try {
      if (await this.#options.beside?.(request, response)) return;
      const answer = await this.#answer(request, response, gone.signal).catch((error: unknown) =>
        this.#refusalOf(error),
      );
      if (this.#closing && !response.headersSent) response.setHeader("connection", "close");
      if (answer) await send(request, response, answer);
    } catch (error) {
      // A client that leaves in the middle of a download is expected.
      if (!gone.signal.aborted) this.#options.log?.(`an answer could not be sent: ${messageOf(error)}`);
      response.destroy();
    }
  }

  async #answer(request: IncomingMessage, response: ServerResponse, signal: AbortSignal): Promise<Answer | undefined> {
    const url = parseUrl(request);
    const { route, parameters } = findRoute(request.method ?? "", url.path);
    if (!route.open) this.#checkKey(request);
    const handle = () =>
      this.#run(route, request, { ...url, parameters, signal }).catch((error: unknown) => this.#refusalOf(error));
    const { intercept } = this.#options;
    if (!intercept) return handle();
    const restart = (downMs?: number) => this.restart(downMs);
    return intercept({ route: route.name, request, response, ended: this.app.ended, restart }, handle);
  }

  async #run(
    entry: ServedRoute,
    request: IncomingMessage,
    fields: { query: URLSearchParams; parameters: Record<string, string>; signal: AbortSignal },
  ): Promise<Answer> {
    const app = this.app;
    const { route } = entry;
    const encoding = request.headers["content-encoding"] ?? "identity";
    if (encoding !== "identity")
      throw new ServerError(
        415,
        "server/content-encoding",
        `This server does not read bodies in "${encoding.slice(0, 40)}". Send them uncompressed.`,
      );
    const { maxBodyBytes } = app.settings;
    const bytes = await readBody(request, entry.large ? maxBodyBytes : Math.min(plainBodyLimit, maxBodyBytes));
    const call = new Call({ ...fields, bytes, headers: request.headers, origin: originOf(request) ?? this.url });
    try {
      const message = route.request && call.read(route.request);
      const reply = await entry.handle(app, message, call);
      if (reply instanceof Answer) return reply;
      return route.response ? jsonAnswer(encode(route.response, reply)) : emptyAnswer;
    } catch (cause) {
      const error = fromProtocol(cause);
      // A refusal uses its sequence number up: the client goes on with the next, which must not wait.
      const refused = error instanceof ServerError ? (error.refused ?? call.numbered) : undefined;
      if (refused) app.training.refuse(refused, error as ServerError);
      throw error;
    }
  }

  #refusalOf(error: unknown): Answer {
    if (!(error instanceof ServerError) && !isAborted(error))
      this.#options.log?.(error instanceof Error ? (error.stack ?? error.message) : String(error));
    return errorAnswer(error);
  }

  #checkKey(request: IncomingMessage): void {
    const given = request.headers["x-api-key"];
    if (typeof given === "string" && isSecret(given, this.#options.apiKey)) return;
    throw new ServerError(
      401,
      "server/api-key",
      given === undefined
        ? "The X-API-Key header is missing. Set TINKER_API_KEY to the key the server was started with."
        : "The API key is not the one the server was started with. Set TINKER_API_KEY to that one.",
    );
  }
}

/** Answers what is not HTTP with an error that has a length and a body, and closes the connection. */
function refuseConnection(error: NodeJS.ErrnoException, socket: Duplex): void {
  if (error.code === "ECONNRESET" || !socket.writable) {
    socket.destroy();
    return;
  }
  const [status, reason] =
    error.code === "HPE_HEADER_OVERFLOW"
      ? [431, "Request Header Fields Too Large"]
      : error.code === "ERR_HTTP_REQUEST_TIMEOUT"
        ? [408, "Request Timeout"]
        : [400, "Bad Request"];
  const { body } = errorAnswer(
    new ServerError(
      status,
      "server/malformed-http",
      `This is no HTTP request (${error.code ?? error.message}). Send one.`,
    ),
  );
  socket.end(
    `HTTP/1.1 ${status} ${reason}\r\nContent-Type: application/json\r\nContent-Length: ${Buffer.byteLength(body as string)}\r\n` +
      `Connection: close\r\n\r\n${body as string}`,
  );
}

/** A client that went away while its body was read is expected. */
const isAborted = (error: unknown) => (error as { code?: string } | undefined)?.code === "ECONNRESET";

function parseUrl(request: IncomingMessage): { path: string; query: URLSearchParams } {
  const [rawPath = "", ...query] = (request.url ?? "").split("?");
  try {
    return { path: decodeURIComponent(rawPath), query: new URLSearchParams(query.join("?")) };
  } catch {
    throw badRequest("server/bad-path", `The path "${rawPath.slice(0, 80)}" is not well encoded. Correct it.`);
  }
}

function findRoute(method: string, path: string): { route: ServedRoute; parameters: Record<string, string> } {
  const allowed: string[] = [];
  if (path.startsWith(`${apiPrefix}/`))
    for (const entry of served) {
      const match = entry.pattern.exec(path.slice(apiPrefix.length));
      if (!match) continue;
      if (entry.route.method === method) return { route: entry, parameters: { ...match.groups } };
      allowed.push(entry.route.method);
    }
  if (allowed.length > 0)
    throw new ServerError(405, "server/method", `${path.slice(0, 80)} takes ${allowed.join(", ")}, not ${method}.`);
  throw new ServerError(
    404,
    "server/unknown-route",
    `There is nothing at ${path.slice(0, 80)}. The API is under ${apiPrefix}; docs/compatibility.md lists its routes.`,
  );
}

function originOf(request: IncomingMessage): string | undefined {
  const given = request.headers.host;
  return given !== undefined && /^[\w.-]+(:\d+)?$/.test(given) ? `http://${given}` : undefined;
}
