// The dashboard's HTTP server: on the loopback interface only, behind a secret link, one process. It reads journals and writes nothing;
// what the page asks of a live run goes through the run's own controls.
import { randomBytes } from "node:crypto";
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { messageOf, WhetstoneError } from "../core/errors.ts";
import { listen, readBody } from "../core/own-server.ts";
import type { DashboardApp } from "./app.ts";
import { DashboardError, notFound } from "./errors.ts";
import { Guard, host, safeHeaders } from "./guard.ts";

export interface DashboardOptions {
  /** Run directories, or folders of them. */
  roots: readonly string[];
  /** 0: any free port. */
  port: number;
}

/** How long a browser gets to take what is on its way when the server ends. */
const farewellMs = 500;
const maxConnections = 256;
const maxBodyBytes = 16 * 1024;

/** Starts a dashboard; resolves when it listens. */
export async function startDashboard(options: DashboardOptions): Promise<DashboardServer> {
  const server = new DashboardServer(options);
  await server.open();
  return server;
}

export class DashboardServer {
  readonly #options: DashboardOptions;
  readonly #token = randomBytes(18).toString("base64url");
  readonly #guard = new Guard(this.#token);
  readonly #http: Server;
  #app: Promise<DashboardApp> | undefined;

  constructor(options: DashboardOptions) {
    this.#options = options;
    this.#http = createServer((request, response) => void this.#handle(request, response));
    this.#http.maxConnections = maxConnections;
    this.#http.on("clientError", (_, socket) => socket.destroy());
  }

  /** The link to open: whoever has it sees the runs and controls them. */
  get url(): string {
    return `http://${host}:${(this.#http.address() as AddressInfo).port}/${this.#token}/`;
  }

  async open(): Promise<void> {
    const { port } = this.#options;
    await listen(this.#http, port, host).catch((cause: unknown) => {
      throw new DashboardError(
        500,
        "dashboard/listen",
        `The dashboard cannot listen on ${host}:${port} (${messageOf(cause)}). Choose another port, or port=0 for any free one.`,
        { cause },
      );
    });
  }

  /** Tells the pages, gives them a moment, and lets go of the port. */
  async close(): Promise<void> {
    const closed = new Promise((resolve) => this.#http.close(resolve));
    const late = setTimeout(() => this.#http.closeAllConnections(), farewellMs);
    await (await this.#app)?.close();
    this.#http.closeIdleConnections();
    await closed;
    clearTimeout(late);
  }

  async #handle(request: IncomingMessage, response: ServerResponse): Promise<void> {
    response.on("error", () => {});
    const asked = this.#guard.admitted(request);
    for (const [name, value] of Object.entries(safeHeaders)) response.setHeader(name, value);
    if (!asked) {
      request.resume();
      response.writeHead(403, { "content-type": "text/plain", connection: "close" }).end();
      return;
    }
    try {
      if (asked.path === "") response.writeHead(302, { location: `/${this.#token}/` }).end();
      else await this.#answer(request, response, asked.path, asked.query);
    } catch (error) {
      refuse(response, error);
    }
  }

  async #answer(
    request: IncomingMessage,
    response: ServerResponse,
    path: string,
    query: URLSearchParams,
  ): Promise<void> {
    const app = await this.#opened();
    if (request.method === "GET") {
      if (await app.show(request, response, path, query)) return;
    } else if (request.method === "POST") {
      sendJson(response, app.act(path, await bodyOf(request)));
      return;
    }
    throw notFound(path);
  }

  /** Everything behind the link is loaded when it is first opened: a run that nobody watches pays for a port and no more. */
  #opened(): Promise<DashboardApp> {
    this.#app ??= import("./app.ts").then(({ DashboardApp }) => new DashboardApp(this.#options.roots));
    return this.#app;
  }
}

function sendJson(response: ServerResponse, value: unknown, status = 200): void {
  response.writeHead(status, { "content-type": "application/json; charset=utf-8" }).end(JSON.stringify(value));
}

function refuse(response: ServerResponse, error: unknown): void {
  if (response.headersSent) {
    response.destroy();
    return;
  }
  const status = error instanceof DashboardError ? error.status : error instanceof WhetstoneError ? 400 : 500;
  const code = error instanceof WhetstoneError ? error.code : "dashboard/failed";
  sendJson(response, { code, message: messageOf(error) }, status);
}

async function bodyOf(request: IncomingMessage): Promise<unknown> {
  const tooLarge = () =>
    new DashboardError(413, "dashboard/body", `A body of more than ${maxBodyBytes} bytes is no control of a run.`);
  const bytes = await readBody(request, maxBodyBytes, tooLarge);
  try {
    return JSON.parse(Buffer.from(bytes).toString("utf8"));
  } catch {
    // What is no JSON is no control either, and refused as such.
    return undefined;
  }
}
