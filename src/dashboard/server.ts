// The dashboard's HTTP server: on the loopback interface only, behind a secret link, one process. It reads journals and writes nothing;
// what the page asks of a live run goes through the run's own controls.
import { randomBytes } from "node:crypto";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import { messageOf, WhetstoneError } from "../core/errors.ts";
import { listen, readBody, sendJson } from "../core/own-server.ts";
import type { DashboardApp } from "./app.ts";
import { DashboardError, notFound } from "./errors.ts";
import { admitted, host, safeHeaders } from "./guard.ts";

export interface DashboardOptions {
  /** Run directories, or folders of them. */
  roots: readonly string[];
  /** 0: any free port. */
  port: number;
}

/** How long a browser gets to take what is on its way when the server ends. */
const closeMs = 500;
const maxConnections = 256;
const maxBodyBytes = 16 * 1024;

export type DashboardServer = Awaited<ReturnType<typeof startDashboard>>;

/** Starts a dashboard; resolves when it listens. */
export async function startDashboard({ roots, port }: DashboardOptions) {
  const token = randomBytes(18).toString("base64url");
  let app: Promise<DashboardApp> | undefined;
  /** Everything behind the link is loaded when it is first opened: a run that nobody watches pays for a port and no more. */
  const opened = () => {
    app ??= import("./app.ts").then(({ DashboardApp }) => new DashboardApp(roots));
    return app;
  };
  const server = createServer((request, response) => void handle(request, response, token, opened));
  server.maxConnections = maxConnections;
  server.on("clientError", (_, socket) => socket.destroy());
  const listening = await listen(server, port, host).catch((cause: unknown) => {
    throw new DashboardError(
      500,
      "dashboard/listen",
      `The dashboard cannot listen on ${host}:${port} (${messageOf(cause)}). Choose another port, or port=0 for any free one.`,
      { cause },
    );
  });
  return {
    /** The link to open: whoever has it sees the runs and controls them. */
    url: `http://${host}:${listening}/${token}/`,
    /** Tells the pages, gives them a moment, and lets go of the port. */
    async close(): Promise<void> {
      const closed = new Promise((resolve) => server.close(resolve));
      const late = setTimeout(() => server.closeAllConnections(), closeMs);
      await (await app)?.close();
      server.closeIdleConnections();
      await closed;
      clearTimeout(late);
    },
  };
}

async function handle(
  request: IncomingMessage,
  response: ServerResponse,
  token: string,
  opened: () => Promise<DashboardApp>,
): Promise<void> {
  response.on("error", () => {});
  const asked = admitted(request, token);
  for (const [name, value] of Object.entries(safeHeaders)) response.setHeader(name, value);
  if (!asked) {
    request.resume();
    response.writeHead(403, { "content-type": "text/plain", connection: "close" }).end();
    return;
  }
  const { path, query } = asked;
  try {
    if (path === "") response.writeHead(302, { location: `/${token}/` }).end();
    else if (request.method === "POST") sendJson(response, 200, (await opened()).act(path, await bodyOf(request)));
    else if (request.method !== "GET" || !(await (await opened()).show(request, response, path, query)))
      throw notFound(path);
  } catch (error) {
    refuse(response, error);
  }
}

function refuse(response: ServerResponse, error: unknown): void {
  if (response.headersSent) {
    response.destroy();
    return;
  }
  const status = error instanceof DashboardError ? error.status : error instanceof WhetstoneError ? 400 : 500;
  const code = error instanceof WhetstoneError ? error.code : "dashboard/failed";
  sendJson(response, status, { code, message: messageOf(error) });
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
