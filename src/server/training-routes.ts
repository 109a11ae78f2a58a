// Models and their training: everything that carries a model's sequence number.
import { turnTaker } from "../core/turns.ts";
import type { AdamSettings, LoraSpec } from "../engine/engine.ts";
import { type AdamParams, type LoraConfig, parseTinkerPath, protobufType, trainingRoutes } from "../protocol/index.ts";
import { parseRecipient } from "./age.ts";
import type { App } from "./app.ts";
import { fingerprintOf, toTrainingBatch, turnMs } from "./batch.ts";
import type { TrainingEncoding } from "./decode-training.ts";
import { ServerError } from "./errors.ts";
import { translated } from "./json.ts";
import type { Operation } from "./operations.ts";
import { type Call, serve } from "./route.ts";
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
      const { name, tokenizerId } = app.training.engineModel(record.baseModel);
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
    optimStep(app, { modelId, seqId, adamParams, optimizerParams }, call) {
      return sequenced(app, call, { modelId, seqId, content: { adamParams, optimizerParams } }, (request) => {
        requireAdam(optimizerParams);
        return app.training.optimStep(request, toAdam(adamParams));
      });
    },
    saveWeights(app, { modelId, seqId, path, ttlSeconds, overwrite, userMetadata }, call) {
      const content = { path, ttlSeconds, overwrite, userMetadata };
      return sequenced(app, call, { modelId, seqId, content }, (request) =>
        app.training.save(request, {
          kind: "training",
          name: requireName(path),
          ttlSeconds: checkTtl(ttlSeconds),
          overwrite,
          userMetadata,
        }),
      );
    },
    saveWeightsForSampler(app, { modelId, seqId, path, samplingSessionSeqId, ttlSeconds, userMetadata }, call) {
      const content = { path, samplingSessionSeqId, ttlSeconds, userMetadata };
      return sequenced(app, call, { modelId, seqId, content }, (request) =>
        path === undefined && samplingSessionSeqId !== undefined
          ? app.training.snapshotForSampler(request, checkCount(samplingSessionSeqId, "sampling_session_seq_id"))
          : app.training.save(request, {
              kind: "sampler",
              name: requireName(path),
              ttlSeconds: checkTtl(ttlSeconds),
              userMetadata,
            }),
      );
    },
    saveWeightsExternal(app, { modelId, seqId, path, ttlSeconds, ageEncryptionRecipients: recipients = [] }, call) {
      return sequenced(app, call, { modelId, seqId, content: { path, ttlSeconds, recipients } }, (request) =>
        app.training.save(request, {
          kind: "external",
          name: path,
          ttlSeconds: checkTtl(ttlSeconds),
          // A name given again is a new download.
          overwrite: true,
          recipients: recipients.map(parseRecipient),
        }),
      );
    },
    loadWeights(app, message, call) {
      const { modelId, path, optimizer } = message;
      if (modelId !== undefined)
        return sequenced(app, call, { modelId, seqId: message.seqId, content: { path, optimizer } }, (request) =>
          translated(() => app.training.loadWeights(request, { path, optimizer })),
        );
      const { sessionId, modelSeqId, userMetadata = {}, optimizerConfig } = message;
      if (sessionId === undefined || modelSeqId === undefined)
        throw new ServerError(
          422,
          "server/invalid-message",
          "Neither model_id nor session_id with model_seq_id was given. Say which model the weights go into.",
        );
      requireAdam(optimizerConfig);
      const address = translated(() => requireTrainingPath(parseTinkerPath(path), path));
      const checkpoint = app.checkpoints.get(address);
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
      throw new ServerError(
        400,
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
    throw new ServerError(
      400,
      "server/lora",
      `A LoRA rank of ${rank} is not possible. Choose 1 to ${maxRank}; 32 is usual.`,
    );
  if (!trainAttn && !trainMlp && !trainUnembed)
    throw new ServerError(400, "server/lora", "Nothing is to be trained. Set train_attn, train_mlp or train_unembed.");
  return { rank, trainAttn, trainMlp, trainUnembed, ...(seed !== undefined && { seed }) };
}

/** Adam is the only optimizer there is. */
function requireAdam(given: { type: string } | undefined): void {
  if (given === undefined || given.type === "adamw" || given.type === "adam") return;
  throw new ServerError(
    400,
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
  const sequence = checkSequence(request.seqId);
  return refusable(app, request.modelId, sequence, async () => {
    const record = app.registry.model(request.modelId);
    const takeTurns = turnTaker(turnMs);
    const fingerprint = await fingerprintOf(request, takeTurns);
    const batch = await toTrainingBatch(request, app.training.engineModel(record.baseModel), takeTurns);
    return app.training.forwardBackward({ modelId: request.modelId, sequence, fingerprint, bytes }, batch);
  });
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
      throw new ServerError(400, "server/adam", `${name}=${value} is out of range. Send a number ${range}.`);
  return { learningRate, beta1, beta2, epsilon: eps, weightDecay, gradClipNorm };
}

/** A small request with a sequence number: a repeat of it is the same request when its content is. */
function sequenced(
  app: App,
  call: Call,
  { modelId, seqId, content }: { modelId: string; seqId: number | undefined; content: unknown },
  submit: (request: TrainingRequest) => Operation,
) {
  const sequence = checkSequence(seqId ?? 0);
  const request = { modelId, sequence, fingerprint: JSON.stringify(content), bytes: call.bytes.length };
  return refusable(app, modelId, sequence, async () => submit(request));
}

/** A refusal uses the sequence number up: the client will not send it again, and later requests must not wait for it. */
async function refusable(
  app: App,
  modelId: string,
  sequence: number | undefined,
  run: () => Promise<Operation>,
): Promise<{ requestId: string }> {
  const sessionId = app.registry.findModel(modelId)?.sessionId;
  if (sessionId !== undefined) app.sessions.touch(sessionId);
  try {
    return { requestId: (await run()).id };
  } catch (error) {
    if (error instanceof ServerError && sequence !== undefined) error.refused = { modelId, sequence };
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
