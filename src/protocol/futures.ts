// Heavy operations answer with a request id; its result is fetched by polling.
import { z } from "zod";
import { fallback, message, optional } from "./message.ts";

/** What every submit answers. */
export const submitResponse = message({ request_id: z.string(), model_id: optional(z.string()) });
export type SubmitResponse = z.output<typeof submitResponse>;

export const retrieveFutureRequest = message({
  request_id: z.string(),
  allow_metadata_only: fallback(z.boolean(), false),
});
export type RetrieveFutureRequest = z.output<typeof retrieveFutureRequest>;

export type QueueState = "active" | "paused_capacity" | "paused_rate_limit" | "unknown";

/** Not ready yet: the body of a 408, or of a 200. */
export const tryAgainResponse = message({
  type: z.literal("try_again"),
  request_id: optional(z.string()),
  queue_state: optional(z.string()),
  queue_state_reason: optional(z.string()),
});
export type TryAgainResponse = z.output<typeof tryAgainResponse>;

/** Ready, but large: the client asks again without `allow_metadata_only` when it has room for it. */
export const completeMetadataResponse = message({
  status: z.literal("complete_metadata"),
  response_payload_size: z.int().min(0),
});
export type CompleteMetadataResponse = z.output<typeof completeMetadataResponse>;

export type FailureCategory = "user" | "server" | "unknown";

/** The operation failed. Sent with status 200. */
export const requestFailedResponse = message({ error: z.string(), category: fallback(z.string(), "unknown") });
export type RequestFailedResponse = z.output<typeof requestFailedResponse>;

/** What kind of operation a poll waits for, as its X-Tinker-Request-Type header says it. */
export type OperationType =
  | "CreateModel"
  | "ForwardBackward"
  | "Forward"
  | "OptimStep"
  | "SaveWeights"
  | "SaveWeightsForSampler"
  | "LoadWeights"
  | "UnloadModel"
  | "Sample";
