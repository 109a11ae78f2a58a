// Request bodies in JSON: parsed, and bounded in depth. Each message decides what null means.
import { parseJson } from "../protocol/index.ts";
import { badRequest, type NumberedRequest } from "./errors.ts";

/** Deeper than any message; beyond it, code that walks values would run out of stack. */
const maxDepth = 64;

/** The JSON object in a body. */
export function parseBody(bytes: Uint8Array): Record<string, unknown> {
  const value = parseJson(Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString("utf8"));
  if (typeof value !== "object" || value === null || Array.isArray(value))
    throw badRequest(
      "server/malformed-body",
      `The body is ${Array.isArray(value) ? "a list" : value === null ? "null" : `a ${typeof value}`}. Send a JSON object.`,
    );
  checkDepth(value, 1);
  return value as Record<string, unknown>;
}

function checkDepth(value: object, depth: number): void {
  if (depth > maxDepth)
    throw badRequest(
      "server/malformed-body",
      `The body nests deeper than ${maxDepth} levels. Send the message that this route expects.`,
    );
  for (const item of Object.values(value)) if (typeof item === "object" && item !== null) checkDepth(item, depth + 1);
}

/** The model and sequence number in a body, whatever else it holds. */
export function sequenceIn(body: Readonly<Record<string, unknown>>): NumberedRequest | undefined {
  const { model_id: modelId, seq_id: sequence } = body;
  return typeof modelId === "string" && Number.isInteger(sequence)
    ? { modelId, sequence: sequence as number }
    : undefined;
}
