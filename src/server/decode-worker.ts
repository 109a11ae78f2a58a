// The worker thread that reads large training bodies: bytes in, typed arrays out, both moved rather than copied.
import { answerCalls } from "../core/worker-calls.ts";
import type { ForwardBackwardRequest } from "../protocol/index.ts";
import { type Decoded, type DecodeJob, decodeTrainingBody } from "./decoder.ts";
import { ServerError } from "./errors.ts";

answerCalls(
  ({ bytes, encoding }: DecodeJob): Decoded => {
    try {
      return { request: decodeTrainingBody(bytes, encoding) };
    } catch (error) {
      if (!(error instanceof ServerError)) throw error;
      const { status, code, message, refused } = error;
      return { refusal: { status, code, message, refused } };
    }
  },
  (decoded) => ("request" in decoded ? buffersOf(decoded.request) : []),
);

function buffersOf(request: ForwardBackwardRequest): ArrayBuffer[] {
  const arrays = request.data.flatMap(({ modelInput, lossFnInputs }) => [
    ...modelInput.chunks.flatMap((chunk) => (chunk.type === "encoded_text" ? [chunk.tokens] : [])),
    ...Object.values(lossFnInputs).flatMap(({ data, sparse }) =>
      sparse ? [data, sparse.crowIndices, sparse.colIndices] : [data],
    ),
  ]);
  return [...new Set(arrays.map(({ buffer }) => buffer).filter((buffer) => buffer instanceof ArrayBuffer))];
}
