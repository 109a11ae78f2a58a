// HTTP plumbing: reads bodies under a limit, writes answers with an explicit Content-Length. A 400 without one is taken for a
// proxy's by the official client and sent again.
import type { IncomingMessage, ServerResponse } from "node:http";
import { pipeline } from "node:stream/promises";
import { readBody as readBytes } from "../core/own-server.ts";
import { jsonType } from "../protocol/index.ts";
import { failureOf, ServerError } from "./errors.ts";

/** What goes back over the wire. A class, so that a handler's message is never taken for one. */
export class Answer {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly contentType: string | undefined;
  readonly body: string | Uint8Array | AsyncIterable<Uint8Array> | undefined;
  /** Called when the last byte was handed to the client's connection. */
  onSent: (() => void) | undefined;

  constructor(fields: Pick<Answer, "status"> & Partial<Pick<Answer, "headers" | "contentType" | "body">>) {
    this.status = fields.status;
    this.headers = fields.headers ?? {};
    this.contentType = fields.contentType;
    this.body = fields.body;
  }
}

export const emptyAnswer = new Answer({ status: 204 });

export function jsonAnswer(body: unknown, status = 200, headers: Readonly<Record<string, string>> = {}): Answer {
  return new Answer({ status, contentType: jsonType, body: JSON.stringify(body), headers });
}

/** The answer to a request that failed before or instead of becoming an operation. */
export function errorAnswer(error: unknown): Answer {
  const { message, code } = failureOf(error);
  const headers: Record<string, string> = {};
  let status = 500;
  if (error instanceof ServerError) {
    status = error.status;
    if (error.retryAfterSeconds !== undefined) headers["retry-after"] = String(error.retryAfterSeconds);
  }
  return jsonAnswer({ detail: `${message} [${code}]`, code }, status, headers);
}

/** How long a client may go on sending a body that was already refused, before its connection is cut. */
const lingerMs = 2000;

/** Reads a whole body; throws 413 as soon as it is known to be too large. */
export const readBody = (request: IncomingMessage, limit: number): Promise<Uint8Array<ArrayBuffer>> =>
  readBytes(request, limit, (bytes) => tooLarge(bytes, limit));

function tooLarge(bytes: number, limit: number): ServerError {
  return new ServerError(
    413,
    "server/body-too-large",
    `The body has ${bytes} bytes or more, and this route takes ${limit}. Send fewer data per request, or start the server with a larger max_body_mb.`,
  );
}

/** Writes an answer. Resolves when it was written, or when the client is gone. */
export async function send(request: IncomingMessage, response: ServerResponse, answer: Answer): Promise<void> {
  const { status, contentType, body, onSent } = answer;
  if (response.destroyed || response.headersSent) return;
  const headers: Record<string, string> = { ...answer.headers };
  if (contentType !== undefined) headers["content-type"] = contentType;
  if (!request.complete) {
    // What is left of the body is of no use; let the client read the answer, then cut it off.
    headers["connection"] = "close";
    request.resume();
    const timer = setTimeout(() => request.destroy(), lingerMs);
    timer.unref();
    request.once("close", () => clearTimeout(timer));
  }
  if (body !== undefined && typeof body !== "string" && !(body instanceof Uint8Array)) {
    response.writeHead(status, headers);
    await pipeline(body, response);
    return;
  }
  const bytes = typeof body === "string" ? Buffer.from(body) : (body ?? new Uint8Array());
  headers["content-length"] = String(bytes.length);
  response.writeHead(status, headers);
  await new Promise<void>((resolve) => {
    response.once("close", resolve);
    response.once("finish", () => {
      onSent?.();
      resolve();
    });
    response.end(bytes);
  });
}
