// Sampling: sessions, requests and results.
import { z } from "zod";
import { float32Array, int32Array } from "./arrays.ts";
import { submitResponse } from "./futures.ts";
import { exactInteger, fallback, message, optional } from "./message.ts";
import { chunkSchema, modelInputSchema } from "./model-input.ts";
import { route } from "./route.ts";
import { type Tensor, tensorSchema } from "./tensors.ts";

export const createSamplingSessionRequest = message({
  type: fallback(z.literal("create_sampling_session"), "create_sampling_session"),
  session_id: z.string(),
  sampling_session_seq_id: z.int(),
  base_model: optional(z.string()),
  model_path: optional(z.string()),
});
export const createSamplingSessionResponse = message({ sampling_session_id: z.string(), type: optional(z.string()) });

/** Gives a copy of a sampling client its place among the others: its sequence ids start at 10⁹ times this. */
export const joinSamplingSessionRequest = message({
  type: fallback(z.literal("join_sampling_session"), "join_sampling_session"),
  sampling_session_id: z.string(),
});
export const joinSamplingSessionResponse = message({ client_counter: z.int().min(1), type: optional(z.string()) });

/**
 * `seed` may be any 64-bit value. `stop` is one string, a list of strings, or a list of token ids; absent, the model's end of
 * sequence stops, and with an empty list nothing does.
 */
export const samplingParams = message({
  /** Longest completion; absent: up to the context window. */
  max_tokens: optional(z.int()),
  /** Makes the draw repeatable; any 64-bit value. */
  seed: optional(exactInteger),
  /** What ends a completion: texts, or token ids. */
  stop: optional(z.union([z.string(), z.array(z.string()), z.array(z.int())])),
  /** 0: greedy. */
  temperature: fallback(z.number(), 1),
  /** -1: off. */
  top_k: fallback(z.int(), -1),
  /** 1: off. */
  top_p: fallback(z.number(), 1),
});
/** How completions are drawn. */
export type SamplingParams = z.output<typeof samplingParams>;

/** How a token is drawn: the settings that go to an engine as they are. */
export type DrawSettings = Omit<SamplingParams, "stop" | "seed" | "maxTokens">;

/** What the numbers among the settings may be; `off` is allowed beside the range. */
export const samplingRanges: Readonly<
  Record<keyof DrawSettings, { wire: string; low: number; high: number; off?: number }>
> = {
  temperature: { wire: "temperature", low: 0, high: 100 },
  topK: { wire: "top_k", low: 0, high: 0x7fffffff, off: -1 },
  topP: { wire: "top_p", low: Number.MIN_VALUE, high: 1 },
};
export const defaultSamplingParams: Readonly<SamplingParams> = z.decode(samplingParams, {});

const sampleRequestFields = {
  type: fallback(z.literal("sample"), "sample"),
  sampling_session_id: optional(z.string()),
  /** Copies of a client count from multiples of 10⁹ up to 10¹⁸. */
  seq_id: optional(exactInteger),
  base_model: optional(z.string()),
  model_path: optional(z.string()),
  num_samples: fallback(z.int(), 1),
  sampling_params: samplingParams,
  prompt_logprobs: optional(z.boolean()),
  topk_prompt_logprobs: fallback(z.int(), 0),
  /** The likeliest tokens at every generated position. */
  topk_sample_logprobs: fallback(z.int(), 0),
  /** int64 [N - 1, K]: row i names tokens to score at prompt position i + 1; -1 is not asked. */
  target_prompt_logprobs: optional(tensorSchema),
  /** Tokens to draw at every prompt position from the second on. */
  prompt_alt_tokens_k: fallback(z.int(), 0),
  /** Prompt logprobs of the last n positions only. */
  prompt_logprobs_last_n: optional(z.int()),
  /** For stable_reinforce. */
  record_stability_info: optional(z.boolean()),
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

/** Why a completion ended: it was long enough, or it came to a stop. */
export type StopReason = "stop" | "length";

/** One completion. */
export interface SampledSequence {
  /** Why it ended. */
  stopReason: StopReason;
  /** The generated part only; a stop token, or the tokens of a stop string, stand at its end. */
  tokens: Int32Array;
  /** The log-probability of each token when it was drawn. */
  logprobs?: Float32Array | undefined;
  /** One row per token of `tokens`. */
  topkSampledLogprobs?: TopkLogprobs | undefined;
  /** What the server calls this sequence; it comes with the answer to the submit. */
  sequenceId?: string | undefined;
}

/** Up to k [token, logprob] pairs for each token, null where there is none (the first of a prompt). */
export type TopkLogprobs = ([token: number, logprob: number][] | null)[];

/** Completions, and what was asked about the prompt. */
export interface SampleResponse {
  /** The completions. */
  sequences: SampledSequence[];
  /** One per prompt token, NaN where undefined (the first). */
  promptLogprobs?: Float32Array | undefined;
  /** The likeliest tokens at each position of the prompt. */
  topkPromptLogprobs?: TopkLogprobs | undefined;
  /** Tokens of the prompt that the server had computed before. */
  promptCacheHitTokens: number;
  /** float32, of the shape and layout that was asked for. */
  targetPromptLogprobs?: Tensor | undefined;
  /** Tokens drawn at each position of the prompt. */
  promptAltTokens?: PromptAltTokens | undefined;
}

/** Drawn tokens and their log-probabilities, both [N - 1, k]. */
export interface PromptAltTokens {
  /** Token ids, one row for each position of the prompt. */
  tokens: Tensor;
  /** Their log-probabilities. */
  logprobs: Tensor;
}

const topkRows = z.array(z.array(z.tuple([z.int(), z.number()])).nullable());

/** The JSON form of a sampling result. */
export const sampleResponse: z.ZodType<SampleResponse> = message({
  sequences: z.array(
    message({
      stop_reason: z.enum(["stop", "length"]),
      tokens: int32Array,
      logprobs: optional(float32Array),
      topk_sampled_logprobs: optional(topkRows),
      sequence_id: optional(z.string()),
    }),
  ),
  prompt_logprobs: optional(float32Array),
  topk_prompt_logprobs: optional(topkRows),
  prompt_cache_hit_tokens: fallback(z.int(), 0),
  target_prompt_logprobs: optional(tensorSchema),
  prompt_alt_tokens: optional(message({ tokens: tensorSchema, logprobs: tensorSchema })),
});

export const samplingRoutes = {
  createSamplingSession: route("POST", "/create_sampling_session", {
    request: createSamplingSessionRequest,
    response: createSamplingSessionResponse,
  }),
  joinSamplingSession: route("POST", "/join_sampling_session", {
    request: joinSamplingSessionRequest,
    response: joinSamplingSessionResponse,
  }),
  sample: route("POST", "/asample", { request: sampleRequest, response: submitResponse, result: sampleResponse }),
};
