// Sampling: sessions, requests and results.
import { z } from "zod";
import { float32Array, int32Array } from "./arrays.ts";
import { fallback, message, optional } from "./message.ts";
import { chunkSchema, modelInputSchema } from "./model-input.ts";

export const createSamplingSessionRequest = message({
  type: fallback(z.literal("create_sampling_session"), "create_sampling_session"),
  session_id: z.string(),
  sampling_session_seq_id: z.int(),
  base_model: optional(z.string()),
  model_path: optional(z.string()),
});
export type CreateSamplingSessionRequest = z.output<typeof createSamplingSessionRequest>;
export const createSamplingSessionResponse = message({ sampling_session_id: z.string(), type: optional(z.string()) });

/**
 * `seed` may be any 64-bit value; JSON numbers beyond 2^53 lose their low bits, which a seed can bear. `stop` is one string, a
 * list of strings, or a list of token ids.
 */
export const samplingParams = message({
  max_tokens: optional(z.int()),
  seed: optional(z.number()),
  stop: optional(z.union([z.string(), z.array(z.string()), z.array(z.int())])),
  /** 0: greedy. */
  temperature: fallback(z.number(), 1),
  /** -1: off. */
  top_k: fallback(z.int(), -1),
  /** 1: off. */
  top_p: fallback(z.number(), 1),
});
export type SamplingParams = z.output<typeof samplingParams>;
export const defaultSamplingParams: Readonly<SamplingParams> = z.decode(samplingParams, {});

const sampleRequestFields = {
  type: fallback(z.literal("sample"), "sample"),
  sampling_session_id: optional(z.string()),
  seq_id: optional(z.int()),
  base_model: optional(z.string()),
  model_path: optional(z.string()),
  num_samples: fallback(z.int(), 1),
  sampling_params: samplingParams,
  prompt_logprobs: optional(z.boolean()),
  topk_prompt_logprobs: fallback(z.int(), 0),
};
const sampleRequestHead = message(sampleRequestFields);

/** One of `sampling_session_id` (with `seq_id`), `base_model` and `model_path` says what is sampled. */
export const sampleRequest = message({ ...sampleRequestFields, prompt: modelInputSchema });
export type SampleRequest = z.output<typeof sampleRequest>;

/** The body of `POST /asample`. Prompts are long and requests are many, so the tokens are written without a list in between. */
export function encodeSampleRequest(request: SampleRequest): string {
  const { prompt, ...rest } = request;
  const chunks = prompt.chunks.map((chunk) =>
    chunk.type === "encoded_text"
      ? `{"type":"encoded_text","tokens":[${chunk.tokens.join()}]}`
      : JSON.stringify(z.encode(chunkSchema, chunk)),
  );
  const head = JSON.stringify(z.encode(sampleRequestHead, rest));
  return `${head.slice(0, -1)},"prompt":{"chunks":[${chunks.join()}]}}`;
}

export type StopReason = "stop" | "length";

export interface SampledSequence {
  stopReason: StopReason;
  /** The generated part only; a stop token, or the tokens of a stop string, stand at its end. */
  tokens: Int32Array;
  logprobs?: Float32Array | undefined;
}

/** Up to k [token, logprob] pairs for each prompt token, null where there is none (the first). */
export type TopkPromptLogprobs = ([token: number, logprob: number][] | null)[];

export interface SampleResponse {
  sequences: SampledSequence[];
  /** One per prompt token, NaN where undefined (the first). */
  promptLogprobs?: Float32Array | undefined;
  topkPromptLogprobs?: TopkPromptLogprobs | undefined;
  promptCacheHitTokens: number;
}

/** The JSON form of a sampling result. */
export const sampleResponse: z.ZodType<SampleResponse> = message({
  sequences: z.array(
    message({ stop_reason: z.enum(["stop", "length"]), tokens: int32Array, logprobs: optional(float32Array) }),
  ),
  prompt_logprobs: optional(float32Array),
  topk_prompt_logprobs: optional(z.array(z.array(z.tuple([z.int(), z.number()])).nullable())),
  prompt_cache_hit_tokens: fallback(z.int(), 0),
});
