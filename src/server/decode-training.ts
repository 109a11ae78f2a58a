// Reads the body of /forward_backward and /forward, in either encoding. Runs on the main thread for small bodies and in a worker
// (decode-worker.ts) for large ones.
import {
  decodeForwardBackwardJson,
  decodeForwardBackwardRequest,
  type ForwardBackwardRequest,
} from "../protocol/index.ts";
import { fromProtocol, type NumberedRequest, ServerError } from "./errors.ts";
import { parseBody, sequenceIn } from "./json.ts";

export type TrainingEncoding = "protobuf" | "json" | "json-forward";

export function decodeTrainingBody(bytes: Uint8Array, encoding: TrainingEncoding): ForwardBackwardRequest {
  let refused: NumberedRequest | undefined;
  try {
    if (encoding === "protobuf") return decodeForwardBackwardRequest(bytes);
    const body = parseBody(bytes);
    refused = sequenceIn(body);
    return decodeForwardBackwardJson(body, encoding === "json" ? "forward_backward" : "forward");
  } catch (cause) {
    const error = fromProtocol(cause);
    throw error instanceof ServerError ? Object.assign(error, { refused }) : error;
  }
}
