// Sampling: sessions, requests and results.
import { z } from "zod";
import { float32Array, int32Array } from "./arrays.ts";
import { submitResponse } from "./futures.ts";
import { encode, exactInteger, fallback, kind, message, numberOr, optional, snake } from "./message.ts";
import { chunkSchema, modelInputSchema } from "./model-input.ts";
import {
  type PromptAnswers,
  promptAnswers,
  questionFields,
  type SequenceAnswers,
  sequenceAnswers,
} from "./questions.ts";
import { route } from "./route.ts";

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
  temperature: numberOr(1),
  /** -1: off. */
  top_k: fallback(z.int(), -1),
  /** 1: off. */
  top_p: numberOr(1),
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

/** Any whole number as a seed from 0 to below `limit`. */
export function foldSeed(seed: number | bigint, limit: number): number {
  const modulus = BigInt(limit);
  return Number(((BigInt(seed) % modulus) + modulus) % modulus);
}

const sampleRequestFields = {
  type: kind("sample"),
  sampling_session_id: optional(z.string()),
  /** Copies of a client count from multiples of 10⁹ up to 10¹⁸. */
  seq_id: optional(exactInteger),
  base_model: optional(z.string()),
  model_path: optional(z.string()),
  num_samples: fallback(z.int(), 1),
  sampling_params: samplingParams,
  ...questionFields,
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
      : JSON.stringify(encode(chunkSchema, chunk)),
  );
  const head = JSON.stringify(encode(sampleRequestHead, rest));
  return `${head.slice(0, -1)},"prompt":{"chunks":[${chunks.join()}]}}`;
}

/** Why a completion ended: it was long enough, or it came to a stop. */
export type StopReason = "stop" | "length";

/** One completion. */
export interface SampledSequence extends SequenceAnswers {
  /** Why it ended. */
  stopReason: StopReason;
  /** The generated part only; a stop token, or the tokens of a stop string, stand at its end. */
  tokens: Int32Array;
  /** The log-probability of each token when it was drawn. */
  logprobs?: Float32Array | undefined;
  /** What the server calls this sequence; it comes with the answer to the submit. */
  sequenceId?: string | undefined;
}

/** Completions, and what was asked about the prompt. */
export interface SampleResponse extends PromptAnswers {
  /** The completions. */
  sequences: SampledSequence[];
  /** Tokens of the prompt that the server had computed before. */
  promptCacheHitTokens: number;
}

const answerFields = (forms: Readonly<Record<string, { json: z.ZodType }>>) =>
  Object.fromEntries(Object.entries(forms).map(([name, { json }]) => [snake(name), optional(json)]));

/** The JSON form of a sampling result. */
export const sampleResponse = message({
  sequences: z.array(
    message({
      stop_reason: z.enum(["stop", "length"]),
      tokens: int32Array,
      logprobs: optional(float32Array),
      sequence_id: optional(z.string()),
      ...answerFields(sequenceAnswers),
    }),
  ),
  prompt_cache_hit_tokens: fallback(z.int(), 0),
  ...answerFields(promptAnswers),
}) as unknown as z.ZodType<SampleResponse>;

export const samplingRoutes = {
  createSamplingSession: route("POST", "/create_sampling_session", {
    request: message({
      type: kind("create_sampling_session"),
      session_id: z.string(),
      sampling_session_seq_id: z.int(),
      base_model: optional(z.string()),
      model_path: optional(z.string()),
    }),
    response: message({ sampling_session_id: z.string(), type: optional(z.string()) }),
  }),
  /** Gives a copy of a sampling client its place among the others: its sequence ids start at 10⁹ times this. */
  joinSamplingSession: route("POST", "/join_sampling_session", {
    request: message({ type: kind("join_sampling_session"), sampling_session_id: z.string() }),
    response: message({ client_counter: z.int().min(1), type: optional(z.string()) }),
  }),
  sample: route("POST", "/asample", { request: sampleRequest, response: submitResponse, result: sampleResponse }),
};
