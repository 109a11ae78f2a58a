// Heavy operations answer with a request id; its result is fetched by polling.
import { z } from "zod";
import { fallback, message, optional } from "./message.ts";
import { route } from "./route.ts";

/** What every submit answers. A sample's also names the sequences that will come, one id each. */
export const submitResponse = message({
  request_id: z.string(),
  model_id: optional(z.string()),
  sample_sequence_ids: optional(z.array(z.string())),
});
export type SubmitResponse = z.output<typeof submitResponse>;

/** Whether work is held up, and by what. */
export type QueueState = "active" | "paused_capacity" | "paused_rate_limit" | "unknown";

/** Not ready yet: the body of a 408, or of a 200. */
export const tryAgainResponse = message({
  type: z.literal("try_again"),
  request_id: optional(z.string()),
  queue_state: optional(z.string()),
  queue_state_reason: optional(z.string()),
});

/** Ready, but large: the client asks again without `allow_metadata_only` when it has room for it. */
export const completeMetadataResponse = message({
  status: z.literal("complete_metadata"),
  response_payload_size: z.int().min(0),
});

/** Whose fault a failed request was. */
export type FailureCategory = "user" | "server" | "unknown";

/** The operation failed. Sent with status 200. */
export const requestFailedResponse = message({
  error: z.string(),
  category: fallback(z.string(), "unknown"),
  code: optional(z.string()),
});

export const futureRoutes = {
  /** Answers with the operation's result, in JSON or protobuf. */
  retrieveFuture: route("POST", "/retrieve_future", {
    request: message({ request_id: z.string(), allow_metadata_only: fallback(z.boolean(), false) }),
  }),
  /** Which of a sampler's requests have finished since the cursor; held open while there are none. */
  retrieveFutures: route("POST", "/retrieve_futures", {
    request: message({
      target: message({
        type: z.literal("sampling_session"),
        sampling_session_id: z.string(),
        /** Which copy of the sampling client asks: its sequence ids divided by 10⁹. */
        cloned_sampler_id: fallback(z.int(), 0),
      }),
      prev_cursor: fallback(z.int(), 0),
      /** Results that were fetched and may be freed. */
      retrieved_request_ids: fallback(z.array(z.string()), []),
    }),
    response: message({
      completions: z.array(
        message({
          state: z.enum(["finished", "failed"]),
          request_id: z.string(),
          response_payload_uncompressed_size: optional(z.int()),
        }),
      ),
      cursor: z.int(),
    }),
  }),
  cancelFuture: route("POST", "/cancel_future", { request: message({ request_id: z.string() }) }),
};
