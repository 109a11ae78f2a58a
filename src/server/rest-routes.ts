// Listings and housekeeping: runs, checkpoints, sessions, and the accounts that a local server keeps only in outline.
import { randomUUID } from "node:crypto";
import { cp } from "node:fs/promises";
import {
  type Checkpoint,
  checkpointIdOf,
  checkpointKinds,
  formatTinkerPath,
  parseTinkerPath,
  restRoutes,
  type TrainingRun,
} from "../protocol/index.ts";
import type { App } from "./app.ts";
import type { CheckpointRecord } from "./checkpoints.ts";
import { archiveAnswer, fileUrls } from "./downloads.ts";
import { badRequest } from "./errors.ts";
import type { ModelRecord } from "./registry.ts";
import { type Call, type Message, serve } from "./route.ts";
import { searchSessions } from "./session-search.ts";
import { checkCount, checkTtl } from "./training-routes.ts";

const maxPage = 10_000;

export const servedRestRoutes = serve(restRoutes, {
  serverCapabilities: (app) => ({
    supportedModels: app.engine.models.map(({ name, maxContextLength }) => ({
      modelName: name,
      maxContextLength,
      trainable: true,
      sampleable: true,
    })),
    frozenSamplers: true,
  }),
  sampler(app, _message, call) {
    const { id, baseModel, modelPath } = app.samplers.get(call.parameter("sampler"));
    return { samplerId: id, baseModel, modelPath };
  },
  weightsInfo(app, { tinkerPath }) {
    const { baseModel, lora } = app.checkpoints.get(parseTinkerPath(tinkerPath));
    const { rank, trainUnembed, trainMlp, trainAttn } = lora;
    return { baseModel, isLora: true, loraRank: rank, trainUnembed, trainMlp, trainAttn };
  },
  trainingRuns(app, _message, call) {
    const project = call.query.get("project_id");
    const runs = app.registry.models.filter(
      (model) => project === null || app.registry.session(model.sessionId).projectId === project,
    );
    const { items, cursor } = page(call, runs, 20);
    return { trainingRuns: items.map((model) => describeRun(app, model)), cursor };
  },
  trainingRun: (app, _message, call) => describeRun(app, app.registry.model(call.parameter("run"))),
  runCheckpoints(app, _message, call) {
    const runId = call.parameter("run");
    const records = app.checkpoints.list(runId);
    // Checkpoints outlive their run's registration only when the state folder was edited by hand.
    if (records.length === 0) app.registry.model(runId);
    return { checkpoints: records.filter((record) => isReadable(record, call)).map(describeCheckpoint) };
  },
  checkpoints(app, _message, call) {
    const records = app.checkpoints.list().filter((record) => isReadable(record, call));
    const { items, cursor } = page(call, records, 100);
    return { checkpoints: items.map(describeCheckpoint), cursor };
  },
  publishCheckpoint: (app, _message, call) => publish(app, call, true),
  unpublishCheckpoint: (app, _message, call) => publish(app, call, false),
  checkpointTtl(app, { ttlSeconds }, call) {
    app.checkpoints.setTtl(checkpointOf(app, call), checkTtl(ttlSeconds ?? undefined) ?? null);
  },
  archive: (app, _message, call) => archiveAnswer(checkpointOf(app, call), call),
  externalWeightsUrls: (app, _message, call) => fileUrls(app, checkpointOf(app, call), call),
  async deleteCheckpoint(app, _message, call) {
    await app.checkpoints.delete(checkpointOf(app, call));
  },
  async copyWeights(app, message, call) {
    const source = app.checkpoints.get(parseTinkerPath(message.sourcePath));
    const { kind, name, baseModel, lora, userMetadata } = source;
    const ttlSeconds = checkTtl(message.ttlSeconds);
    // A retry carries the key of its first try.
    const key = call.header("x-idempotency-key") || randomUUID();
    const copy = async () => {
      const runId = destinationOf(app, message, source);
      await app.checkpoints.save(
        { runId, kind, name, baseModel, lora, userMetadata },
        { overwrite: false, ttlSeconds },
        (dir) => cp(app.checkpoints.filesDir(source), dir, { recursive: true }),
      );
      return runId;
    };
    const copying = app.copies.get(key) ?? copy();
    app.copies.set(key, copying);
    copying.catch(() => app.copies.delete(key));
    return { tinkerPath: formatTinkerPath(await copying, kind, name) };
  },
  searchSessions,
  sessions: (app, _message, call) => ({ sessions: page(call, app.registry.sessions, 20).items.map(({ id }) => id) }),
  session(app, _message, call) {
    const { id, userMetadata, displayName } = app.registry.session(call.parameter("session"));
    return {
      trainingRunIds: app.registry.models.filter((model) => model.sessionId === id).map((model) => model.id),
      samplerIds: app.registry.samplers.filter((sampler) => sampler.sessionId === id).map((sampler) => sampler.id),
      userMetadata: { ...userMetadata },
      displayName,
    };
  },
  sessionProject(app, { projectId }, call) {
    app.registry.setProject(call.parameter("session"), projectId);
  },
  traceExport(app, _message, call) {
    app.registry.session(call.parameter("session"));
    return { status: "failed" as const, error: "This server keeps no traces. Look at its log instead." };
  },
  audit(app, _message, call) {
    const type = oneOf(call, "event_type", ["all", "checkpoints", "projects", "teams", "organizations"]);
    const day = call.query.get("day");
    if (day !== null && !/^\d{4}-\d\d-\d\d$/.test(day))
      throw badRequest("server/query", `day=${day.slice(0, 40)} is no date. Write it as 2026-01-31.`);
    // What is there now, as the events that made it; a local server has no projects, teams or organizations of its own.
    const saved = app.checkpoints.list().map(({ createdAt, runId, kind, name }) => ({
      timestamp: new Date(createdAt),
      event: "checkpoint_saved",
      modelId: runId,
      tinkerPath: formatTinkerPath(runId, kind, name),
    }));
    const made = app.registry.models.map(({ createdAt, id }) => ({
      timestamp: new Date(createdAt),
      event: "model_created",
      modelId: id,
    }));
    const entries = type === "all" ? [...saved, ...made] : type === "checkpoints" ? saved : [];
    return { entries: entries.filter((entry) => day === null || entry.timestamp.toISOString().startsWith(day)) };
  },
  // Nothing here costs anything.
  billingUsage: () => ({ data: [], sessions: {} }),
  checkpointUsage(app) {
    const records = app.checkpoints.list();
    const sizeBytes = records.reduce((sum, record) => sum + record.sizeBytes, 0);
    return { data: [{ checkpointCount: records.length, sizeBytes, sizeGigabytes: sizeBytes / 1e9 }] };
  },
  apiKey: () => ({
    keyId: 1,
    name: "local",
    note: "the key this server was started with",
    details: { orgDetails: { name: "local" }, userDetails: { email: "local@localhost" } },
  }),
  revokeApiKey() {
    throw badRequest(
      "server/api-key-fixed",
      "The key of this server is the one it was started with. Stop the server, and start it with another api_key.",
    );
  },
});

function page<T>(call: Call, all: readonly T[], defaultLimit: number) {
  const limit = call.integer("limit", defaultLimit, maxPage);
  const offset = call.integer("offset", 0, Number.MAX_SAFE_INTEGER);
  return { items: all.slice(offset, offset + limit), cursor: { offset, limit, totalCount: all.length } };
}

function oneOf(call: Call, name: string, known: readonly string[]): string {
  const value = call.query.get(name) ?? known[0]!;
  if (known.includes(value)) return value;
  throw badRequest(
    "server/query",
    `${name}=${value.slice(0, 40)} is unknown. Use ${known.slice(0, -1).join(", ")} or ${known.at(-1)}.`,
  );
}

/** SDK versions before 0.28 refuse a whole listing over a kind of checkpoint that they do not know. */
function isReadable({ kind }: CheckpointRecord, call: Call): boolean {
  const [major, minor] = call.sdkVersion ?? [1, 0];
  return kind !== "external" || major > 0 || minor >= 28;
}

function describeRun(app: App, model: ModelRecord): TrainingRun {
  const records = app.checkpoints.list(model.id);
  const last = (kind: string) => {
    const record = records.find((candidate) => candidate.kind === kind);
    return record && describeCheckpoint(record);
  };
  return {
    trainingRunId: model.id,
    baseModel: model.baseModel,
    modelOwner: "local",
    isLora: true,
    corrupted: model.state === "lost",
    loraRank: model.lora.rank,
    lastRequestTime: new Date(model.lastRequestAt),
    lastCheckpoint: last("training"),
    lastSamplerCheckpoint: last("sampler"),
    // The protocol's metadata is text to text.
    userMetadata: Object.fromEntries(
      Object.entries(model.userMetadata).map(([key, value]) => [
        key,
        typeof value === "string" ? value : JSON.stringify(value),
      ]),
    ),
    appliedOptimSteps: model.appliedSteps,
    lastAppliedSeqId: model.lastAppliedSequence,
  };
}

function describeCheckpoint(record: CheckpointRecord): Checkpoint {
  return {
    checkpointId: checkpointIdOf(record.kind, record.name),
    checkpointType: record.kind,
    time: new Date(record.createdAt),
    tinkerPath: formatTinkerPath(record.runId, record.kind, record.name),
    sizeBytes: record.sizeBytes,
    public: record.public,
    expiresAt: record.expiresAt === null ? undefined : new Date(record.expiresAt),
    userMetadata: record.userMetadata && { ...record.userMetadata },
  };
}

function checkpointOf(app: App, call: Call): CheckpointRecord {
  const stated = call.query.get("checkpoint_type");
  const kind = checkpointKinds.find((candidate) => candidate === stated);
  return app.checkpoints.named(call.parameter("run"), call.parameter("checkpoint"), kind);
}

/** Publishing what is public is no error here: a 409 would make the official client repeat it for five minutes. */
function publish(app: App, call: Call, value: boolean): void {
  const record = checkpointOf(app, call);
  if (record.public !== value) app.checkpoints.setPublic(record, value);
}

/** The run that a copied checkpoint belongs to: one of the session that was named, or of a new one in the project. */
function destinationOf(app: App, message: Message<typeof restRoutes.copyWeights>, source: CheckpointRecord): string {
  const { baseModel, lora } = source;
  const sessionId =
    message.sessionId ??
    app.registry.createSession({
      tags: ["copy_weights"],
      userMetadata: {},
      sdkVersion: "",
      projectId: message.destinationProjectId,
    }).id;
  const userMetadata = { copied_from: formatTinkerPath(source.runId, source.kind, source.name) };
  const sequence = checkCount(message.modelSeqId ?? 0, "model_seq_id");
  const { record } = app.registry.createModel(sessionId, sequence, { baseModel, lora, userMetadata });
  // It holds checkpoints; there is nothing to train on.
  app.registry.markUnloaded(record);
  return record.id;
}
