// Reads training bodies without stalling the event loop: small ones at once, large ones in a worker thread.
import { WorkerCalls } from "../core/worker-calls.ts";
import type { ForwardBackwardRequest } from "../protocol/index.ts";
import { decodeTrainingBody, type TrainingEncoding } from "./decode-training.ts";
import { ServerError, shuttingDown } from "./errors.ts";

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
