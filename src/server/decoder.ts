// Reads the bodies of /forward_backward and /forward, in either encoding, without stalling the event loop: small ones at once, large
// ones in a worker thread (decode-worker.ts).
import { WorkerCalls } from "../core/worker-calls.ts";
import {
  decodeForwardBackwardJson,
  decodeForwardBackwardRequest,
  type ForwardBackwardRequest,
} from "../protocol/index.ts";
import { fromProtocol, type NumberedRequest, ServerError, shuttingDown } from "./errors.ts";
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

export interface DecodeJob {
  bytes: Uint8Array;
  encoding: TrainingEncoding;
}

export type Decoded =
  | { request: ForwardBackwardRequest }
  | { refusal: Pick<ServerError, "status" | "code" | "message" | "refused"> };

/** Bodies up to here are read in about 10 ms on the main thread. Protobuf is mostly block copies, JSON is not. */
const inlineBytes: Readonly<Record<TrainingEncoding, number>> = {
  protobuf: 6 << 20,
  json: 256 << 10,
  "json-forward": 256 << 10,
};

export class Decoder {
  #closed = false;
  readonly #thread = new WorkerCalls<DecodeJob, Decoded>({
    entry: new URL("./decode-worker.ts", import.meta.url),
    failed: (reason) => (this.#closed ? shuttingDown() : new Error(`the decoding worker failed: ${reason}`)),
  });

  /** `bytes` may be moved away: the caller must not use them again. */
  async decode(bytes: Uint8Array<ArrayBuffer>, encoding: TrainingEncoding): Promise<ForwardBackwardRequest> {
    if (bytes.length <= inlineBytes[encoding]) return decodeTrainingBody(bytes, encoding);
    const owned = bytes.byteLength === bytes.buffer.byteLength;
    const decoded = await this.#thread.ask({ bytes, encoding }, owned ? [bytes.buffer] : []);
    if ("request" in decoded) return decoded.request;
    const { status, code, message, refused } = decoded.refusal;
    throw Object.assign(new ServerError(status, code, message), { refused });
  }

  async close(): Promise<void> {
    this.#closed = true;
    await this.#thread.close();
  }
}
