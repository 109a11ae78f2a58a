// Training: data, losses, optimizer steps, models and their checkpoints.
import { z } from "zod";
import { ProtocolError } from "./errors.ts";
import { submitResponse } from "./futures.ts";
import { anything, decode, encode, exactInteger, fallback, kind, message, numberOr, optional } from "./message.ts";
import { type ChunkSource, estimateInputBytes, type ModelInput, modelInputSchema } from "./model-input.ts";
import { route } from "./route.ts";
import { type Tensor, tensorSchema } from "./tensors.ts";

/** One training sequence; position i predicts token i + 1, and every tensor is aligned with `modelInput`. */
export interface Datum {
  /** What the model reads. */
  modelInput: ModelInput;
  /** Keys are the protocol's names: target_tokens, weights, logprobs, advantages … */
  lossFnInputs: Record<string, Tensor>;
}

const datum: z.ZodType<Datum> = message({
  model_input: modelInputSchema,
  loss_fn_inputs: z.record(z.string(), tensorSchema),
});

export interface ForwardBackwardRequest {
  modelId: string;
  /** 1, 2, 3 … per model; 0: none. */
  seqId: number;
  data: readonly Datum[];
  lossFn: string;
  lossFnConfig: LossFnConfig;
  /** True: no gradient is accumulated. */
  forwardOnly: boolean;
}

/** Settings of a loss by name; text only for losses that a server defines itself. */
export type LossFnConfig = Readonly<Record<string, number | string>>;

/** What an encoder takes for a tensor, a datum and a request: plain lists stand for arrays and are checked as they are written. */
export interface TensorSource extends Omit<Tensor, "data"> {
  data: Tensor["data"] | readonly number[];
}
export interface DatumSource {
  modelInput: { chunks: readonly ChunkSource[] };
  lossFnInputs: Readonly<Record<string, TensorSource>>;
}
export interface ForwardBackwardSource extends Omit<ForwardBackwardRequest, "data"> {
  data: readonly DatumSource[];
}

const forwardInput = message({
  data: z.array(datum),
  loss_fn: z.string(),
  loss_fn_config: optional(z.record(z.string(), z.union([z.number(), z.string()]))),
});
const forwardBackwardJson = message({
  model_id: z.string(),
  seq_id: optional(z.int()),
  forward_backward_input: forwardInput,
});
const forwardJson = message({ model_id: z.string(), seq_id: optional(z.int()), forward_input: forwardInput });

/** Reads the JSON body of `/forward_backward`, or of `/forward` (then `forwardOnly` is true). */
export function decodeForwardBackwardJson(
  json: unknown,
  route: "forward" | "forward_backward",
): ForwardBackwardRequest {
  const forwardOnly = route === "forward";
  const body = forwardOnly ? decode(forwardJson, json) : decode(forwardBackwardJson, json);
  const input = "forwardInput" in body ? body.forwardInput : body.forwardBackwardInput;
  return {
    modelId: body.modelId,
    seqId: body.seqId ?? 0,
    data: input.data,
    lossFn: input.lossFn,
    lossFnConfig: input.lossFnConfig ?? {},
    forwardOnly,
  };
}

/** The JSON body for servers that do not read protobuf; it goes to `/forward` when `forwardOnly`, else `/forward_backward`. */
export function encodeForwardBackwardJson(request: ForwardBackwardRequest): unknown {
  const { modelId, seqId, data, lossFn, lossFnConfig, forwardOnly } = request;
  const input = { data: [...data], lossFn, lossFnConfig: { ...lossFnConfig } };
  return forwardOnly
    ? encode(forwardJson, { modelId, seqId, forwardInput: input })
    : encode(forwardBackwardJson, { modelId, seqId, forwardBackwardInput: input });
}

/** The JSON form of a forward/backward result. */
export const forwardBackwardOutput = message({
  /** The kind of the outputs, as the server names it. */
  loss_fn_output_type: fallback(z.string(), ""),
  /** One object per datum, in order. */
  loss_fn_outputs: z.array(z.record(z.string(), tensorSchema)),
  /** Names are `name:reduction`. */
  metrics: fallback(z.record(z.string(), z.number()), {}),
});
/** What a pass over data gave. */
export type ForwardBackwardOutput = z.output<typeof forwardBackwardOutput>;

const loraConfig = message({
  rank: z.int(),
  seed: optional(exactInteger),
  train_unembed: fallback(z.boolean(), true),
  train_mlp: fallback(z.boolean(), true),
  train_attn: fallback(z.boolean(), true),
});
export type LoraConfig = z.output<typeof loraConfig>;

const checkpointMetadata = z.record(z.string(), z.string());

/** adamw, or what other servers have. */
export const optimizerConfig = z.looseObject({ type: z.string() });

const getInfoResponse = message({
  /** The kind of this message. */
  type: optional(z.string()),
  /** The model's id. */
  model_id: z.string(),
  /** The base model's architecture, name and tokenizer. */
  model_data: message({
    arch: optional(z.string()),
    model_name: optional(z.string()),
    tokenizer_id: optional(z.string()),
  }),
  /** Whether an adapter is trained. */
  is_lora: optional(z.boolean()),
  /** The adapter's rank. */
  lora_rank: optional(z.int()),
  /** The base model. */
  model_name: optional(z.string()),
  /** The optimizer and its settings. */
  optimizer_config: optional(optimizerConfig),
});
/** What the server knows of a model. */
export type GetInfoResponse = z.output<typeof getInfoResponse>;

/** AdamW with decoupled weight decay; the defaults are those of the protocol. */
const adamParams = message({
  /** How far the step goes. */
  learning_rate: numberOr(1e-4),
  /** Decay of the mean of gradients. */
  beta1: numberOr(0.9),
  /** Decay of the mean of their squares. */
  beta2: numberOr(0.95),
  /** Keeps the division by small gradients within bounds. */
  eps: numberOr(1e-12),
  /** Decoupled weight decay; 0: none. */
  weight_decay: numberOr(0),
  /** 0: no clipping; else the global norm is clipped to it. */
  grad_clip_norm: numberOr(0),
});
/** Settings of one Adam step. */
export type AdamParams = z.output<typeof adamParams>;
export const defaultAdamParams: Readonly<AdamParams> = z.decode(adamParams, {});

const optimStepResponse = message({
  /** What the server measured, such as the gradient's norm. */
  metrics: optional(z.record(z.string(), z.number())),
  /** The kind of this message. */
  type: optional(z.string()),
});
/** The optimizer made a step. */
export type OptimStepResponse = z.output<typeof optimStepResponse>;

const saveWeightsResponse = message({
  /** `tinker://…`, to load or sample them by. */
  path: z.string(),
  /** The kind of this message. */
  type: optional(z.string()),
});
/** Weights were saved. */
export type SaveWeightsResponse = z.output<typeof saveWeightsResponse>;

const saveWeightsExternalResponse = message({
  /** Where the server lists them. */
  path: z.string(),
  /** Their size. */
  size_bytes: optional(z.int()),
  /** The kind of this message. */
  type: optional(z.string()),
});
/** Weights were saved elsewhere. */
export type SaveWeightsExternalResponse = z.output<typeof saveWeightsExternalResponse>;

const loadWeightsResponse = message({
  /** Where from. */
  path: optional(z.string()),
  /** Into which model. */
  model_id: optional(z.string()),
  /** The kind of this message. */
  type: optional(z.string()),
});
/** Weights were loaded. */
export type LoadWeightsResponse = z.output<typeof loadWeightsResponse>;

/** Bytes a datum counts for when a batch is cut into requests. */
export function estimateDatumBytes(datum: DatumSource): number {
  let bytes = estimateInputBytes(datum.modelInput, 4);
  for (const value of Object.values(datum.lossFnInputs)) {
    bytes += value.data.length * (value.dtype === "int64" ? 8 : 4);
    if (value.sparse) bytes += 8 * (value.sparse.crowIndices.length + value.sparse.colIndices.length);
  }
  return bytes;
}

/** The reduction in a metric's name. Throws when the name has not exactly one colon, which the official SDK cannot read. */
export function metricReduction(name: string): string {
  const parts = name.split(":");
  if (parts.length === 2) return parts[1]!;
  throw new ProtocolError(
    "protocol/invalid-message",
    `Metric "${name}" is not written as name:reduction with one colon. Rename it, e.g. "loss:sum".`,
  );
}

const submits = { response: submitResponse };

export const trainingRoutes = {
  createModel: route("POST", "/create_model", {
    ...submits,
    request: message({
      type: kind("create_model"),
      session_id: z.string(),
      model_seq_id: z.int(),
      base_model: z.string(),
      user_metadata: optional(anything),
      lora_config: optional(loraConfig),
      optimizer_config: optional(optimizerConfig),
    }),
    result: message({ model_id: z.string(), type: optional(z.string()) }),
  }),
  unloadModel: route("POST", "/unload_model", {
    ...submits,
    request: message({ type: kind("unload_model"), model_id: z.string() }),
    result: message({ model_id: z.string(), type: optional(z.string()) }),
  }),
  getInfo: route("POST", "/get_info", {
    request: message({ type: kind("get_info"), model_id: z.string() }),
    response: getInfoResponse,
  }),
  /** Protobuf, or JSON. */
  forwardBackward: route("POST", "/forward_backward", { ...submits, result: forwardBackwardOutput }),
  /** JSON: SDK versions up to 0.24.1 and servers without protobuf. */
  forward: route("POST", "/forward", { ...submits, result: forwardBackwardOutput }),
  /** One of `adam_params` and, for optimizers that other servers have, `optimizer_params`. */
  optimStep: route("POST", "/optim_step", {
    ...submits,
    request: message({
      type: kind("optim_step"),
      model_id: z.string(),
      seq_id: optional(z.int()),
      adam_params: optional(adamParams),
      optimizer_params: optional(z.looseObject({ type: z.string() })),
    }),
    result: optimStepResponse,
  }),
  saveWeights: route("POST", "/save_weights", {
    ...submits,
    request: message({
      type: kind("save_weights"),
      model_id: z.string(),
      /** The checkpoint's name. Servers other than ours may make one up when it is absent. */
      path: optional(z.string()),
      seq_id: optional(z.int()),
      ttl_seconds: optional(z.int()),
      overwrite: fallback(z.boolean(), false),
      user_metadata: optional(checkpointMetadata),
    }),
    result: saveWeightsResponse,
  }),
  /** With `path`: a named checkpoint. With `sampling_session_seq_id`: an unnamed one, opened as a sampling session at once. */
  saveWeightsForSampler: route("POST", "/save_weights_for_sampler", {
    ...submits,
    request: message({
      type: kind("save_weights_for_sampler"),
      model_id: z.string(),
      path: optional(z.string()),
      sampling_session_seq_id: optional(z.int()),
      seq_id: optional(z.int()),
      ttl_seconds: optional(z.int()),
      user_metadata: optional(checkpointMetadata),
    }),
    result: message({
      path: optional(z.string()),
      sampling_session_id: optional(z.string()),
      type: optional(z.string()),
    }),
  }),
  /** The weights as files to download, encrypted for the given age recipients if there are any. */
  saveWeightsExternal: route("POST", "/save_weights_external", {
    ...submits,
    request: message({
      type: kind("save_weights_external"),
      model_id: z.string(),
      path: z.string(),
      seq_id: optional(z.int()),
      ttl_seconds: optional(z.int()),
      age_encryption_recipients: optional(z.array(z.string()).max(10)),
    }),
    result: saveWeightsExternalResponse,
  }),
  /** With `model_id` and `seq_id`: into that model. With `session_id` and `model_seq_id`: a new model made from the checkpoint. */
  loadWeights: route("POST", "/load_weights", {
    ...submits,
    request: message({
      type: kind("load_weights"),
      model_id: optional(z.string()),
      seq_id: optional(z.int()),
      session_id: optional(z.string()),
      model_seq_id: optional(z.int()),
      base_model: optional(z.string()),
      user_metadata: optional(anything),
      path: z.string(),
      optimizer: fallback(z.boolean(), true),
      weights_access_token: optional(z.string()),
      optimizer_config: optional(optimizerConfig),
    }),
    result: loadWeightsResponse,
  }),
  createCustomLoss: route("POST", "/create_custom_loss", { ...submits }),
};
