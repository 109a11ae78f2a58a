// Request bodies in JSON: parsed, bounded in depth, and with nulls dropped, since the protocol treats null and absent alike.
import type { z } from "zod";
import { decode, ProtocolError, parseJson } from "../protocol/index.ts";
import { ServerError } from "./errors.ts";

/** Deeper than any message; beyond it, code that walks values would run out of stack. */
const maxDepth = 64;

/** The JSON object in a body. */
export function parseBody(bytes: Uint8Array): Record<string, unknown> {
  const value = translated(() =>
    parseJson(Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString("utf8")),
  );
  if (typeof value !== "object" || value === null || Array.isArray(value))
    throw new ServerError(
      400,
      "server/malformed-body",
      `The body is ${Array.isArray(value) ? "a list" : value === null ? "null" : `a ${typeof value}`}. Send a JSON object.`,
    );
  dropNulls(value as Record<string, unknown>, 1);
  return value as Record<string, unknown>;
}

/** Reads a parsed body as a message; what does not fit is answered with 422. */
export function readMessage<T extends z.ZodType>(schema: T, body: unknown): z.output<T> {
  return translated(() => decode(schema, body));
}

/** Runs a decoder and gives its errors their place in this server's answers. */
export function translated<T>(run: () => T): T {
  try {
    return run();
  } catch (error) {
    throw error instanceof ProtocolError ? fromProtocol(error) : error;
  }
}

export function fromProtocol(error: Pick<ProtocolError, "code" | "message">): ServerError {
  if (error.code === "protocol/invalid-message" || error.code === "protocol/not-expressible")
    return new ServerError(422, "server/invalid-message", error.message);
  if (error.code === "protocol/bad-path") return new ServerError(400, "server/bad-path", error.message);
  return new ServerError(400, "server/malformed-body", error.message);
}

function dropNulls(value: Record<string, unknown> | unknown[], depth: number): void {
  if (depth > maxDepth)
    throw new ServerError(
      400,
      "server/malformed-body",
      `The body nests deeper than ${maxDepth} levels. Send the message that this route expects.`,
    );
  if (Array.isArray(value)) {
    // Nulls in lists have a meaning of their own (a prompt logprob that is not there).
    for (const item of value)
      if (typeof item === "object" && item !== null) dropNulls(item as Record<string, unknown>, depth + 1);
    return;
  }
  for (const key of Object.keys(value)) {
    const item = value[key];
    if (item === null) delete value[key];
    else if (typeof item === "object") dropNulls(item as Record<string, unknown>, depth + 1);
  }
}

/** The model and sequence number in a body that is otherwise not what it should be. */
export function sequenceIn(body: Readonly<Record<string, unknown>>): ServerError["refused"] {
  const { model_id: modelId, seq_id: sequence } = body;
  return typeof modelId === "string" && Number.isInteger(sequence)
    ? { modelId, sequence: sequence as number }
    : undefined;
}
