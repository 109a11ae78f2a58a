// The worker thread that reads large training bodies: bytes in, typed arrays out, both moved rather than copied.
import { parentPort } from "node:worker_threads";
import type { ForwardBackwardRequest } from "../protocol/index.ts";
import { decodeTrainingBody, type TrainingEncoding } from "./decode-training.ts";
import { ServerError } from "./errors.ts";

export interface DecodeJob {
  id: number;
  bytes: Uint8Array;
  encoding: TrainingEncoding;
}

export type DecodeReply =
  | { id: number; request: ForwardBackwardRequest }
  | { id: number; refusal: Pick<ServerError, "status" | "code" | "message" | "refused"> }
  | { id: number; crash: string };

const port = parentPort!;
port.on("message", ({ id, bytes, encoding }: DecodeJob) => {
  try {
    const request = decodeTrainingBody(bytes, encoding);
    port.postMessage({ id, request } satisfies DecodeReply, buffersOf(request));
  } catch (error) {
    const reply: DecodeReply =
      error instanceof ServerError
        ? { id, refusal: { status: error.status, code: error.code, message: error.message, refused: error.refused } }
        : { id, crash: String(error) };
    port.postMessage(reply);
  }
});

function buffersOf(request: ForwardBackwardRequest): ArrayBuffer[] {
  const buffers = new Set<ArrayBuffer>();
  const add = (array: Int32Array | Float32Array | BigInt64Array | Uint8Array) => {
    if (array.buffer instanceof ArrayBuffer) buffers.add(array.buffer);
  };
  for (const { modelInput, lossFnInputs } of request.data) {
    for (const chunk of modelInput.chunks) if (chunk.type === "encoded_text") add(chunk.tokens);
    for (const { data, sparse } of Object.values(lossFnInputs)) {
      add(data);
      if (sparse) {
        add(sparse.crowIndices);
        add(sparse.colIndices);
      }
    }
  }
  return [...buffers];
}
