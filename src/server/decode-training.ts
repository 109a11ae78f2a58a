// Reads the body of /forward_backward and /forward, in either encoding. Runs on the main thread for small bodies and in a worker
// (decode-worker.ts) for large ones.
import {
  decodeForwardBackwardJson,
  decodeForwardBackwardRequest,
  type ForwardBackwardRequest,
} from "../protocol/index.ts";
import { parseBody, translated } from "./json.ts";

export type TrainingEncoding = "protobuf" | "json" | "json-forward";

export function decodeTrainingBody(bytes: Uint8Array, encoding: TrainingEncoding): ForwardBackwardRequest {
  return translated(() =>
    encoding === "protobuf"
      ? decodeForwardBackwardRequest(bytes)
      : decodeForwardBackwardJson(parseBody(bytes), encoding === "json" ? "forward_backward" : "forward"),
  );
}
