// Models and their training: everything that carries a model's sequence number.
import type { LoraSpec } from "../engine/engine.ts";
import {
  type AdamParams,
  createModelRequest,
  type ForwardBackwardRequest,
  getInfoRequest,
  type LoraConfig,
  loadWeightsRequest,
  optimStepRequest,
  parseTinkerPath,
  protobufType,
  saveWeightsForSamplerRequest,
  saveWeightsRequest,
  unloadModelRequest,
} from "../protocol/index.ts";
import type { App } from "./app.ts";
import { toTrainingBatch } from "./batch.ts";
import type { TrainingEncoding } from "./decode-training.ts";
import { ServerError } from "./errors.ts";
import { type Answer, jsonAnswer } from "./http.ts";
import { translated } from "./json.ts";
import type { Operation } from "./operations.ts";
import type { Call, Route } from "./route.ts";
import type { TrainingRequest } from "./training.ts";
import { requireTrainingPath } from "./training-refusals.ts";

const maxRank = 1024;

/** What a submit answers. */
export const submitted = (operation: Operation, more: Readonly<Record<string, unknown>> = {}): Answer =>
  jsonAnswer({ request_id: operation.id, ...more });

export const trainingRoutes: readonly Route[] = [
  { name: "create_model", method: "POST", path: /^\/create_model$/, handle: createModel },
  {
    name: "unload_model",
    method: "POST",
    path: /^\/unload_model$/,
    handle: (app, call) => submitted(app.training.unload(call.read(unloadModelRequest).modelId)),
  },
  { name: "get_info", method: "POST", path: /^\/get_info$/, handle: getInfo },
  {
    name: "forward_backward",
    method: "POST",
    path: /^\/forward_backward$/,
    maxBody: (app) => app.settings.maxBodyBytes,
    handle: (app, call) => forwardBackward(app, call, "json"),
  },
  {
    name: "forward",
    method: "POST",
    path: /^\/forward$/,
    maxBody: (app) => app.settings.maxBodyBytes,
    handle: (app, call) => forwardBackward(app, call, "json-forward"),
  },
  { name: "optim_step", method: "POST", path: /^\/optim_step$/, handle: optimStep },
  { name: "save_weights", method: "POST", path: /^\/save_weights$/, handle: saveWeights },
  { name: "save_weights_for_sampler", method: "POST", path: /^\/save_weights_for_sampler$/, handle: saveForSampler },
  { name: "load_weights", method: "POST", path: /^\/load_weights$/, handle: loadWeights },
];

function createModel(app: App, call: Call): Answer {
  const { sessionId, modelSeqId, baseModel, loraConfig, userMetadata } = call.read(createModelRequest);
  const { operation, modelId } = app.training.createModel({
    sessionId,
    sequence: checkCount(modelSeqId, "model_seq_id"),
    baseModel,
    lora: toLora(loraConfig ?? { rank: 32, trainAttn: true, trainMlp: true, trainUnembed: true }),
    userMetadata: userMetadata ?? {},
  });
  return submitted(operation, { model_id: modelId });
}

function toLora(config: LoraConfig): LoraSpec {
  const { rank, seed, trainAttn, trainMlp, trainUnembed } = config;
  if (rank < 1 || rank > maxRank)
    throw new ServerError(
      400,
      "server/lora",
      `A LoRA rank of ${rank} is not possible. Choose 1 to ${maxRank}; 32 is usual.`,
    );
  if (!trainAttn && !trainMlp && !trainUnembed)
    throw new ServerError(400, "server/lora", "Nothing is to be trained. Set train_attn, train_mlp or train_unembed.");
  return { rank, trainAttn, trainMlp, trainUnembed, ...(seed !== undefined && { seed }) };
}

function getInfo(app: App, call: Call): Answer {
  const { modelId } = call.read(getInfoRequest);
  const record = app.registry.model(modelId);
  const { name, tokenizerId } = app.training.engineModel(record.baseModel);
  return jsonAnswer({
    type: "get_info",
    model_id: record.id,
    model_data: { model_name: name, arch: "lora", ...(tokenizerId !== undefined && { tokenizer_id: tokenizerId }) },
    is_lora: true,
    lora_rank: record.lora.rank,
    model_name: name,
  });
}

async function forwardBackward(app: App, call: Call, json: TrainingEncoding): Promise<Answer> {
  const encoding = call.contentType.toLowerCase().startsWith(protobufType) ? "protobuf" : json;
  const bytes = call.bytes.length;
  // A body whose encoding is neither is refused by its content type, before it is read as one of them.
  if (encoding !== "protobuf") call.requireJson();
  const request = await app.decoder.decode(call.bytes, encoding);
  const sequence = checkSequence(request.seqId);
  return refusable(app, request.modelId, sequence, async () => {
    const record = app.registry.model(request.modelId);
    const fingerprint = fingerprintOf(request);
    const batch = await toTrainingBatch(request, app.training.engineModel(record.baseModel));
    return submitted(app.training.forwardBackward({ modelId: request.modelId, sequence, fingerprint, bytes }, batch));
  });
}

/** The same for a repeat of the same request, whatever the order of its map entries. */
function fingerprintOf(request: ForwardBackwardRequest): string {
  let tokens = 0;
  for (const { modelInput } of request.data)
    for (const chunk of modelInput.chunks) if (chunk.type === "encoded_text") tokens += chunk.tokens.length;
  return `forward_backward ${request.lossFn} ${request.forwardOnly} ${request.data.length} ${tokens}`;
}

function optimStep(app: App, call: Call): Promise<Answer> {
  const { modelId, seqId, adamParams } = call.read(optimStepRequest);
  return sequenced(app, call, modelId, seqId, adamParams, (request) =>
    app.training.optimStep(request, toAdam(adamParams)),
  );
}

function toAdam(params: AdamParams) {
  const { learningRate, beta1, beta2, eps, weightDecay, gradClipNorm } = params;
  const rules: [name: string, value: number, fits: boolean, range: string][] = [
    ["learning_rate", learningRate, learningRate >= 0, "at least 0"],
    ["beta1", beta1, beta1 >= 0 && beta1 < 1, "from 0 to below 1"],
    ["beta2", beta2, beta2 >= 0 && beta2 < 1, "from 0 to below 1"],
    ["eps", eps, eps >= 0, "at least 0"],
    ["weight_decay", weightDecay, weightDecay >= 0, "at least 0"],
    ["grad_clip_norm", gradClipNorm, gradClipNorm >= 0, "at least 0; 0 turns clipping off"],
  ];
  for (const [name, value, fits, range] of rules)
    if (!fits || !Number.isFinite(value))
      throw new ServerError(400, "server/adam", `${name}=${value} is out of range. Send a number ${range}.`);
  return { learningRate, beta1, beta2, epsilon: eps, weightDecay, gradClipNorm };
}

function saveWeights(app: App, call: Call): Promise<Answer> {
  const { modelId, seqId, path, ttlSeconds, overwrite } = call.read(saveWeightsRequest);
  return sequenced(app, call, modelId, seqId, { path, ttlSeconds, overwrite }, (request) =>
    app.training.saveWeights(request, { name: requireName(path), ttlSeconds: checkTtl(ttlSeconds), overwrite }),
  );
}

function saveForSampler(app: App, call: Call): Promise<Answer> {
  const { modelId, seqId, path, samplingSessionSeqId, ttlSeconds } = call.read(saveWeightsForSamplerRequest);
  return sequenced(app, call, modelId, seqId, { path, samplingSessionSeqId, ttlSeconds }, (request) =>
    path === undefined && samplingSessionSeqId !== undefined
      ? app.training.snapshotForSampler(request, checkCount(samplingSessionSeqId, "sampling_session_seq_id"))
      : app.training.saveForSampler(request, { name: requireName(path), ttlSeconds: checkTtl(ttlSeconds) }),
  );
}

async function loadWeights(app: App, call: Call): Promise<Answer> {
  const request = call.read(loadWeightsRequest);
  const { modelId, path, optimizer } = request;
  if (modelId !== undefined)
    return sequenced(app, call, modelId, request.seqId, { path, optimizer }, (training) =>
      translated(() => app.training.loadWeights(training, { path, optimizer })),
    );
  const { sessionId, modelSeqId, userMetadata } = request;
  if (sessionId === undefined || modelSeqId === undefined)
    throw new ServerError(
      422,
      "server/invalid-message",
      "Neither model_id nor session_id with model_seq_id was given. Say which model the weights go into.",
    );
  const address = requireTrainingPath(
    translated(() => parseTinkerPath(path)),
    path,
  );
  const checkpoint = app.checkpoints.get(address);
  const created = app.training.createModel(
    {
      sessionId,
      sequence: checkCount(modelSeqId, "model_seq_id"),
      baseModel: request.baseModel ?? checkpoint.baseModel,
      lora: checkpoint.lora,
      userMetadata: userMetadata ?? {},
    },
    { checkpoint, optimizer },
  );
  return submitted(created.operation, { model_id: created.modelId });
}

/** A small request with a sequence number: a repeat of it is the same request when its content is. */
function sequenced(
  app: App,
  call: Call,
  modelId: string,
  seqId: number | undefined,
  content: unknown,
  submit: (request: TrainingRequest) => Operation,
): Promise<Answer> {
  const sequence = checkSequence(seqId ?? 0);
  const request = { modelId, sequence, fingerprint: JSON.stringify(content), bytes: call.bytes.length };
  return refusable(app, modelId, sequence, async () => submitted(submit(request)));
}

/** A refusal uses the sequence number up: the client will not send it again, and later requests must not wait for it. */
async function refusable(
  app: App,
  modelId: string,
  sequence: number | undefined,
  run: () => Promise<Answer>,
): Promise<Answer> {
  const sessionId = app.registry.findModel(modelId)?.sessionId;
  if (sessionId !== undefined) app.sessions.touch(sessionId);
  try {
    return await run();
  } catch (error) {
    if (error instanceof ServerError) app.training.refuse(modelId, sequence, error);
    throw error;
  }
}

/** 0 stands for "none": protobuf cannot say it otherwise. */
function checkSequence(seqId: number): number | undefined {
  return seqId === 0 ? undefined : checkCount(seqId, "seq_id");
}

export function checkCount(value: number, name: string): number {
  if (value >= 0 && value <= 0x7fffffff) return value;
  throw new ServerError(400, "server/sequence-number", `${name}=${value} is out of range. Count from 0 or 1 upwards.`);
}

export function checkTtl(ttlSeconds: number | undefined): number | undefined {
  if (ttlSeconds === undefined || (ttlSeconds > 0 && ttlSeconds <= 10 * 366 * 86_400)) return ttlSeconds;
  throw new ServerError(
    400,
    "server/ttl",
    `ttl_seconds=${ttlSeconds} is out of range. Send a positive number of seconds, up to ten years, or none.`,
  );
}

function requireName(path: string | undefined): string {
  if (path !== undefined) return path;
  throw new ServerError(400, "server/checkpoint-name", "The checkpoint has no name. Send one as path.");
}
