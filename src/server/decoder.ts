// Reads training bodies without stalling the event loop: small ones at once, large ones in a worker thread that is started when
// the first one comes.
import type { Worker } from "node:worker_threads";
import { startWorker } from "../core/workers.ts";
import type { ForwardBackwardRequest } from "../protocol/index.ts";
import { decodeTrainingBody, type TrainingEncoding } from "./decode-training.ts";
import type { DecodeJob, DecodeReply } from "./decode-worker.ts";
import { ServerError, shuttingDown } from "./errors.ts";

/** Bodies up to here are read in about 10 ms on the main thread. Protobuf is mostly block copies, JSON is not. */
const inlineBytes: Readonly<Record<TrainingEncoding, number>> = {
  protobuf: 6 << 20,
  json: 256 << 10,
  "json-forward": 256 << 10,
};

export class Decoder {
  #worker: Worker | undefined;
  #jobs = 0;
  #closed = false;
  readonly #waiting = new Map<number, { resolve(request: ForwardBackwardRequest): void; reject(error: Error): void }>();

  /** `bytes` may be moved away: the caller must not use them again. */
  decode(bytes: Uint8Array<ArrayBuffer>, encoding: TrainingEncoding): Promise<ForwardBackwardRequest> {
    if (bytes.length <= inlineBytes[encoding])
      return new Promise((resolve) => {
        resolve(decodeTrainingBody(bytes, encoding));
      });
    return new Promise((resolve, reject) => {
      const id = this.#jobs++;
      this.#waiting.set(id, { resolve, reject });
      const owned = bytes.byteLength === bytes.buffer.byteLength;
      this.#start().postMessage({ id, bytes, encoding } satisfies DecodeJob, owned ? [bytes.buffer] : []);
    });
  }

  async close(): Promise<void> {
    this.#closed = true;
    await this.#worker?.terminate();
  }

  #start(): Worker {
    if (this.#worker) return this.#worker;
    const worker = startWorker(new URL("./decode-worker.ts", import.meta.url), undefined);
    worker.unref();
    worker.on("message", (reply: DecodeReply) => {
      const job = this.#waiting.get(reply.id);
      this.#waiting.delete(reply.id);
      if ("request" in reply) job?.resolve(reply.request);
      else if ("refusal" in reply) {
        const { status, code, message, refused } = reply.refusal;
        job?.reject(Object.assign(new ServerError(status, code, message), { refused }));
      } else job?.reject(new Error(reply.crash));
    });
    const fail = (reason: string) => {
      if (this.#worker === worker) this.#worker = undefined;
      const error = this.#closed ? shuttingDown() : new Error(`the decoding worker ended: ${reason}`);
      for (const { reject } of this.#waiting.values()) reject(error);
      this.#waiting.clear();
    };
    worker.on("error", (error) => fail(String(error)));
    worker.on("exit", (code) => fail(`exit code ${code}`));
    this.#worker = worker;
    return worker;
  }
}
