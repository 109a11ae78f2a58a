// One request of the OpenAI API and its answer: models, and chat completions whole or as a stream. Who is let in is decided before.
import { createHash } from "node:crypto";
import { once } from "node:events";
import type { IncomingMessage, ServerResponse } from "node:http";
import { messageOf } from "../core/errors.ts";
import { readBody, sendJson } from "../core/own-server.ts";
import { nextTurn } from "../core/turns.ts";
import { EndpointError, errorBody } from "./errors.ts";
import { type Reply, streamedReply, wholeReply } from "./reply.ts";
import { type ChatRequest, readRequest } from "./request.ts";

/** What a client asks. */
export interface Asked {
  request: ChatRequest;
  /** Equal for requests of equal bytes: a retry has no other sign. */
  key: string;
  /** Aborted when the client leaves before it has the answer. */
  gone: AbortSignal;
}

/** What answers. */
export interface ChatModel {
  readonly models: readonly string[];
  answer(asked: Asked): Promise<{ reply: Reply; delivered(): void }>;
}

const maxBodyBytes = 32 << 20;
/** Clients give up where nothing comes for long. */
const heartbeatMs = 15_000;

/** Answers `path`, what follows `/v1`. */
export async function answer(
  request: IncomingMessage,
  response: ServerResponse,
  path: string,
  model: ChatModel,
): Promise<void> {
  response.on("error", () => {});
  try {
    const route = `${request.method} ${path}`;
    if (route === "POST /chat/completions") await complete(request, response, model);
    else if (route === "GET /models") sendJson(response, 200, { object: "list", data: model.models.map(modelEntry) });
    else if (request.method === "GET" && path.startsWith("/models/")) sendModel(response, path, model);
    else throw noRoute(route);
  } catch (error) {
    refuse(request, response, error);
  }
}

const modelEntry = (id: string) => ({ id, object: "model", created: 0, owned_by: "whetstone" });

function sendModel(response: ServerResponse, path: string, { models }: ChatModel): void {
  const name = decodeURIComponent(path.slice("/models/".length));
  if (!models.includes(name))
    throw new EndpointError(
      404,
      "endpoint/model-not-found",
      `There is no model ${JSON.stringify(name.slice(0, 100))} here. There is ${models.join(", ")}.`,
    );
  sendJson(response, 200, modelEntry(name));
}

const noRoute = (route: string) =>
  new EndpointError(
    404,
    "endpoint/no-route",
    `${route.slice(0, 100)} is not answered here. There are POST /chat/completions and GET /models; a client of the responses API has a setting for chat completions.`,
  );

/** Sends an error, or breaks off where the answer has begun. */
export function refuse(request: IncomingMessage, response: ServerResponse, error: unknown): void {
  const { status, body } = errorBody(error);
  if (response.headersSent) {
    if (response.getHeader("content-type") === "text/event-stream") response.write(`data: ${JSON.stringify(body)}\n\n`);
    response.destroy();
    return;
  }
  // What is left of the body is of no use.
  request.resume();
  sendJson(response, status, body, request.complete ? {} : { connection: "close" });
}

async function complete(message: IncomingMessage, response: ServerResponse, model: ChatModel): Promise<void> {
  const gone = new AbortController();
  let isDelivered = false;
  response.once("close", () => {
    if (!isDelivered) gone.abort();
  });
  const bytes = await readBody(message, maxBodyBytes, (count) => tooLarge(count));
  const text = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString("utf8");
  const request = readRequest(parsed(text), text);
  const isStream = request.stream === true;
  const begin = () => {
    if (response.headersSent) return;
    response.setHeader("content-type", isStream ? "text/event-stream" : "application/json");
    response.setHeader("cache-control", "no-cache");
    response.writeHead(200);
  };
  const heartbeat = setInterval(() => {
    begin();
    response.write(isStream ? ": waiting\n\n" : " ");
  }, heartbeatMs);
  try {
    const key = createHash("sha256").update(bytes).digest("base64url");
    const { reply, delivered } = await model.answer({ request, key, gone: gone.signal });
    response.once("finish", () => {
      // A connection that broke calls its answer finished too.
      isDelivered = !message.socket.destroyed;
      if (isDelivered) delivered();
    });
    clearInterval(heartbeat);
    begin();
    if (isStream) await stream(response, reply, request.stream_options?.include_usage === true);
    else response.end(JSON.stringify(wholeReply(reply)));
  } finally {
    clearInterval(heartbeat);
  }
}

async function stream(response: ServerResponse, reply: Reply, withUsage: boolean): Promise<void> {
  for (const chunk of streamedReply(reply, withUsage)) {
    const goesOn = response.write(`data: ${JSON.stringify(chunk)}\n\n`);
    // A client that has left is noticed between two chunks.
    if (goesOn) await nextTurn();
    else await Promise.race([once(response, "drain"), once(response, "close")]);
    if (response.destroyed) return;
  }
  response.end("data: [DONE]\n\n");
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch (error) {
    throw new EndpointError(400, "endpoint/bad-json", `The body is no JSON: ${messageOf(error)}. Send a JSON object.`);
  }
}

const tooLarge = (bytes: number) =>
  new EndpointError(
    413,
    "endpoint/body-too-large",
    `The body has ${bytes} bytes or more, and ${maxBodyBytes} are read at most. Send a shorter conversation.`,
  );
