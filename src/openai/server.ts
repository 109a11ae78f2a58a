// The endpoint of a run: one HTTP server on the loopback interface, with an address and a key of its own for each episode. Whoever does
// not know an episode's secret gets nothing; when it ends, its address is dead.
import { createHash, randomBytes } from "node:crypto";
import { once } from "node:events";
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { messageOf } from "../core/errors.ts";
import { refusalOf } from "../core/loopback.ts";
import { isSecret, listen as listenOn } from "../core/own-server.ts";
import { answer, type ChatModel, refuse } from "./answer.ts";
import { EndpointError } from "./errors.ts";

/** What a client needs. */
export interface Address {
  /** As `OPENAI_BASE_URL`. */
  baseURL: string;
  /** As `OPENAI_API_KEY`. */
  apiKey: string;
}

const host = "127.0.0.1";
/** How long a server that nobody needs stays: episodes come in batches. */
const idleMs = 30_000;
/** Secrets of ended episodes that are remembered, to say so to agents that call late. */
const maxEnded = 4096;

export class EndpointServer {
  readonly #open = new Map<string, ChatModel>();
  readonly #ended = new Set<string>();
  #listening: Promise<Server> | undefined;
  #idle: NodeJS.Timeout | undefined;

  /** An address under which `model` answers until `close`. */
  async add(model: ChatModel): Promise<Address & { close(): void }> {
    clearTimeout(this.#idle);
    const secret = randomBytes(18).toString("base64url");
    const name = digestOf(secret);
    // Before anything is waited for: from here on the server is needed.
    this.#open.set(name, model);
    try {
      this.#listening ??= listen((request, response) => serve(request, response, () => this.#admitted(request)));
      const { port } = (await this.#listening).address() as AddressInfo;
      return { baseURL: `http://${host}:${port}/${secret}/v1`, apiKey: secret, close: () => this.#remove(name) };
    } catch (error) {
      this.#listening = undefined;
      this.#remove(name);
      throw error;
    }
  }

  #remove(name: string): void {
    if (!this.#open.delete(name)) return;
    this.#ended.add(name);
    for (const oldest of this.#ended) {
      if (this.#ended.size <= maxEnded) break;
      this.#ended.delete(oldest);
    }
    if (this.#open.size > 0) return;
    this.#idle = setTimeout(() => void this.close(), idleMs);
    this.#idle.unref();
    void this.#listening?.then((server) => server.closeIdleConnections());
  }

  /** Lets go of the port; the next episode takes another one. */
  async close(): Promise<void> {
    clearTimeout(this.#idle);
    const listening = this.#listening;
    this.#listening = undefined;
    const server = await listening;
    server?.close();
    server?.closeAllConnections();
  }

  #admitted(request: IncomingMessage): { path: string; model: ChatModel } {
    const [, secret = "", path = ""] = /^\/([^/?#]{1,200})\/v1(\/[^?#]*)/.exec(request.url ?? "") ?? [];
    const name = digestOf(secret);
    if (this.#ended.has(name)) throw ended();
    const model = this.#open.get(name);
    if (!model || !hasKey(request, secret))
      throw new EndpointError(
        401,
        "endpoint/unauthorized",
        "No episode has this address and this key. Use the baseURL and the apiKey that the episode gave, both as they are.",
      );
    return { path, model };
  }
}

/** Answers a request from this machine; `admitted` says which model it may ask, or throws. */
async function serve(
  request: IncomingMessage,
  response: ServerResponse,
  admitted: () => { path: string; model: ChatModel },
): Promise<void> {
  try {
    const refused = refusalOf(request.headers, host);
    if (refused !== undefined) throw new EndpointError(403, "endpoint/refused", refused);
    const { path, model } = admitted();
    await answer(request, response, path, model);
  } catch (error) {
    refuse(request, response, error);
  }
}

/** The episode is over, and its address with it. */
export const ended = () =>
  new EndpointError(
    400,
    "endpoint/ended",
    "The episode of this address has ended: nothing more is sampled for it. End the agent when its run has returned.",
  );

/** A model behind a key that stays. */
export interface ChatServer {
  apiKey: string;
  model: ChatModel;
}

/** Answers a request for what is below `/v1`; false: it is for somebody else. */
export async function answersChat(
  request: IncomingMessage,
  response: ServerResponse,
  { apiKey, model }: ChatServer,
): Promise<boolean> {
  const path = /^\/v1(\/[^?#]*)/.exec(request.url ?? "")?.[1];
  if (path === undefined) return false;
  await serve(request, response, () => {
    if (!hasKey(request, apiKey))
      throw new EndpointError(
        401,
        "endpoint/api-key",
        "The key is not the one that this server was started with. Set OPENAI_API_KEY to that one.",
      );
    return { path, model };
  });
  return true;
}

/** Serves such a model alone; port 0: any free one. */
export async function listenChat(chat: ChatServer, port: number): Promise<{ baseURL: string; close(): Promise<void> }> {
  const server = await listen(async (request, response) => {
    if (!(await answersChat(request, response, chat)))
      refuse(
        request,
        response,
        new EndpointError(404, "endpoint/no-route", "There is nothing here. The API is under /v1."),
      );
  }, port);
  server.ref();
  const closed = once(server, "close");
  return {
    baseURL: `http://${host}:${(server.address() as AddressInfo).port}/v1`,
    async close() {
      server.close();
      server.closeAllConnections();
      await closed;
    },
  };
}

/** Whether the key that a request bears is this one. */
function hasKey({ headers }: IncomingMessage, key: string): boolean {
  const given = /^bearer\s+(\S+)\s*$/i.exec(headers.authorization ?? "")?.[1] ?? "";
  return isSecret(given, key);
}

const digestOf = (text: string) => createHash("sha256").update(text).digest("base64url");

async function listen(
  handle: (request: IncomingMessage, response: ServerResponse) => Promise<void>,
  port = 0,
): Promise<Server> {
  const server = createServer((request, response) => void handle(request, response));
  // An agent that thinks for a while and calls again must not find its connection cut.
  server.keepAliveTimeout = 600_000;
  server.on("clientError", (_, socket) => socket.destroy());
  await listenOn(server, port, host).catch((cause: unknown) => {
    throw new EndpointError(
      500,
      "endpoint/listen",
      `Cannot listen on ${host}:${port} (${messageOf(cause)}). Choose another port, or port=0 for any free one.`,
      { cause },
    );
  });
  // Episodes keep a run alive, and nothing else here does.
  server.unref();
  return server;
}
