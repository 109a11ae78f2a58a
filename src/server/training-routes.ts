// Models and their training: everything that carries a model's sequence number.
import { turnTaker } from "../core/turns.ts";
import type { AdamSettings, LoraSpec } from "../engine/engine.ts";
import { type AdamParams, type LoraConfig, parseTinkerPath, protobufType, trainingRoutes } from "../protocol/index.ts";
import { parseRecipient } from "./age.ts";
import type { App } from "./app.ts";
import { fingerprintOf, toTrainingBatch, turnMs } from "./batch.ts";
import { checkName } from "./checkpoints.ts";
import type { TrainingEncoding } from "./decoder.ts";
import { badRequest, ServerError } from "./errors.ts";
import type { Operation } from "./operations.ts";
import { type Call, serve } from "./route.ts";
import { toSeed } from "./sample-request.ts";
import type { TrainingRequest } from "./training.ts";
import { requireTrainingPath } from "./training-refusals.ts";

const maxRank = 1024;

export const servedTrainingRoutes = serve(
  trainingRoutes,
  {
    createModel(app, { sessionId, modelSeqId, baseModel, loraConfig, userMetadata = {}, optimizerConfig }) {
      requireAdam(optimizerConfig);
      const { operation, modelId } = app.training.createModel({
        sessionId,
        sequence: checkCount(modelSeqId, "model_seq_id"),
        baseModel,
        lora: toLora(loraConfig ?? { rank: 32, trainAttn: true, trainMlp: true, trainUnembed: true }),
        userMetadata,
      });
      return { requestId: operation.id, modelId };
    },
    unloadModel: (app, { modelId }) => ({ requestId: app.training.unload(modelId).id }),
    getInfo(app, { modelId }) {
      const record = app.registry.model(modelId);
      const { name, tokenizerId } = app.modelInfo(record.baseModel);
      return {
        type: "get_info",
        modelId: record.id,
        modelData: { modelName: name, arch: "lora", tokenizerId },
        isLora: true,
        loraRank: record.lora.rank,
        modelName: name,
      };
    },
    forwardBackward: (app, _message, call) => forwardBackward(app, call, "json"),
    forward: (app, _message, call) => forwardBackward(app, call, "json-forward"),
    optimStep(app, message, call) {
      requireAdam(message.optimizerParams);
      return submitted(app.training.optimStep(numbered(app, message, call), toAdam(message.adamParams)));
    },
    saveWeights(app, message, call) {
      const { path, ttlSeconds, overwrite, userMetadata } = message;
      const options = { name: checkName(path), ttlSeconds: checkTtl(ttlSeconds), overwrite, userMetadata };
      return submitted(app.training.save(numbered(app, message, call), { kind: "training", ...options }));
    },
    saveWeightsForSampler(app, message, call) {
      const { path, samplingSessionSeqId, ttlSeconds, userMetadata } = message;
      const request = numbered(app, message, call);
      if (path === undefined && samplingSessionSeqId !== undefined) {
        const sequence = checkCount(samplingSessionSeqId, "sampling_session_seq_id");
        return submitted(app.training.snapshotForSampler(request, sequence));
      }
      const options = { name: checkName(path), ttlSeconds: checkTtl(ttlSeconds), userMetadata };
      return submitted(app.training.save(request, { kind: "sampler", ...options }));
    },
    saveWeightsExternal(app, message, call) {
      const { path, ttlSeconds, ageEncryptionRecipients = [] } = message;
      const recipients = ageEncryptionRecipients.map(parseRecipient);
      // A name given again is a new download.
      const options = { name: checkName(path), ttlSeconds: checkTtl(ttlSeconds), overwrite: true, recipients };
      return submitted(app.training.save(numbered(app, message, call), { kind: "external", ...options }));
    },
    loadWeights(app, message, call) {
      const { modelId, path, optimizer } = message;
      if (modelId !== undefined)
        return submitted(app.training.loadWeights(numbered(app, { ...message, modelId }, call), { path, optimizer }));
      const { sessionId, modelSeqId, userMetadata = {}, optimizerConfig } = message;
      if (sessionId === undefined || modelSeqId === undefined)
        throw new ServerError(
          422,
          "server/invalid-message",
          "Neither model_id nor session_id with model_seq_id was given. Say which model the weights go into.",
        );
      requireAdam(optimizerConfig);
      const checkpoint = app.checkpoints.get(requireTrainingPath(parseTinkerPath(path), path));
      const created = app.training.createModel(
        {
          sessionId,
          sequence: checkCount(modelSeqId, "model_seq_id"),
          baseModel: message.baseModel ?? checkpoint.baseModel,
          lora: checkpoint.lora,
          userMetadata,
        },
        { checkpoint, optimizer },
      );
      return { requestId: created.operation.id, modelId: created.modelId };
    },
    createCustomLoss() {
      throw badRequest(
        "server/custom-loss",
        "This server runs no losses of clients. Leave its flag custom_loss_server_side off: the SDK then computes them itself.",
      );
    },
  },
  { large: ["forwardBackward", "forward"] },
);

function toLora(config: LoraConfig): LoraSpec {
  const { rank, seed, trainAttn, trainMlp, trainUnembed } = config;
  if (rank < 1 || rank > maxRank)
    throw badRequest("server/lora", `A LoRA rank of ${rank} is not possible. Choose 1 to ${maxRank}; 32 is usual.`);
  if (!trainAttn && !trainMlp && !trainUnembed)
    throw badRequest("server/lora", "Nothing is to be trained. Set train_attn, train_mlp or train_unembed.");
  return { rank, trainAttn, trainMlp, trainUnembed, ...(seed !== undefined && { seed: toSeed(seed) }) };
}

/** Adam is the only optimizer there is. */
function requireAdam(given: { type: string } | undefined): void {
  if (given === undefined || given.type === "adamw" || given.type === "adam") return;
  throw badRequest(
    "server/optimizer",
    `This server has no optimizer "${given.type.slice(0, 60)}". Use AdamW: adam_params in optim_step.`,
  );
}

async function forwardBackward(app: App, call: Call, json: TrainingEncoding) {
  const encoding = call.header("content-type").toLowerCase().startsWith(protobufType) ? "protobuf" : json;
  const bytes = call.bytes.length;
  // A body whose encoding is neither is refused by its content type, before it is read as one of them.
  if (encoding !== "protobuf") call.requireJson();
  const request = await app.decoder.decode(call.bytes, encoding);
  const { modelId, seqId } = request;
  const place = placeOf(app, request);
  call.numbered = { modelId, sequence: seqId };
  const record = app.registry.model(modelId);
  const takeTurns = turnTaker(turnMs);
  const fingerprint = await fingerprintOf(request, takeTurns);
  const batch = await toTrainingBatch(request, app.modelInfo(record.baseModel), takeTurns);
  return submitted(app.training.forwardBackward({ ...place, fingerprint, bytes }, batch));
}

function toAdam(params: AdamParams | undefined): AdamSettings {
  if (!params)
    throw new ServerError(
      422,
      "server/invalid-message",
      'Field "adam_params" is missing. Send the optimizer\'s settings.',
    );
  const { learningRate, beta1, beta2, eps, weightDecay, gradClipNorm } = params;
  const rules: [name: string, value: number, fits: boolean, range: string][] = [
    ["learning_rate", learningRate, learningRate >= 0, "at least 0"],
    ["beta1", beta1, beta1 >= 0 && beta1 < 1, "from 0 to below 1"],
    ["beta2", beta2, beta2 >= 0 && beta2 < 1, "from 0 to below 1"],
    ["eps", eps, eps > 0, "above 0"],
    ["weight_decay", weightDecay, weightDecay >= 0, "at least 0"],
    ["grad_clip_norm", gradClipNorm, gradClipNorm >= 0, "at least 0; 0 turns clipping off"],
  ];
  for (const [name, value, fits, range] of rules)
    if (!fits || !Number.isFinite(value))
      throw badRequest("server/adam", `${name}=${value} is out of range. Send a number ${range}.`);
  return { learningRate, beta1, beta2, epsilon: eps, weightDecay, gradClipNorm };
}

const submitted = ({ id }: Operation) => ({ requestId: id });

/** A small request in its place: a repeat of it is the same request when its content is. */
function numbered(app: App, message: { modelId: string; seqId?: number | undefined }, call: Call): TrainingRequest {
  const { modelId: _, seqId: __, ...content } = message;
  return { ...placeOf(app, message), fingerprint: JSON.stringify(content), bytes: call.bytes.length };
}

/** Whose turn a request is. It is a sign of life of its session, too. */
function placeOf(app: App, { modelId, seqId = 0 }: { modelId: string; seqId?: number | undefined }) {
  const sessionId = app.registry.findModel(modelId)?.sessionId;
  if (sessionId !== undefined) app.sessions.touch(sessionId);
  return { modelId, sequence: checkSequence(seqId) };
}

/** 0 stands for "none": protobuf cannot say it otherwise. */
function checkSequence(seqId: number): number | undefined {
  return seqId === 0 ? undefined : checkCount(seqId, "seq_id");
}

export function checkCount(value: number, name: string): number {
  if (value >= 0 && value <= 0x7fffffff) return value;
  throw badRequest("server/sequence-number", `${name}=${value} is out of range. Count from 0 or 1 upwards.`);
}

export function checkTtl(ttlSeconds: number | undefined): number | undefined {
  if (ttlSeconds === undefined || (ttlSeconds > 0 && ttlSeconds <= 10 * 366 * 86_400)) return ttlSeconds;
  throw badRequest(
    "server/ttl",
    `ttl_seconds=${ttlSeconds} is out of range. Send a positive number of seconds, up to ten years, or none.`,
  );
}
