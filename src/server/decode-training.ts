// Reads the body of /forward_backward and /forward, in either encoding. Runs on the main thread for small bodies and in a worker
// (decode-worker.ts) for large ones.
import {
  decodeForwardBackwardJson,
  decodeForwardBackwardRequest,
  type ForwardBackwardRequest,
} from "../protocol/index.ts";
import { ServerError } from "./errors.ts";
import { parseBody, sequenceIn, translated } from "./json.ts";

export type TrainingEncoding = "protobuf" | "json" | "json-forward";

export function decodeTrainingBody(bytes: Uint8Array, encoding: TrainingEncoding): ForwardBackwardRequest {
  if (encoding === "protobuf") return translated(() => decodeForwardBackwardRequest(bytes));
  const body = parseBody(bytes);
  try {
    return translated(() => decodeForwardBackwardJson(body, encoding === "json" ? "forward_backward" : "forward"));
  } catch (error) {
    if (error instanceof ServerError) error.refused = sequenceIn(body);
    throw error;
  }
}
