// Listings and housekeeping: runs, checkpoints, sessions, and the accounts that a local server keeps only in outline.
import { createHmac, randomBytes, timingSafeEqual } from "node:crypto";
import {
  apiPrefix,
  formatTinkerPath,
  parseTinkerPath,
  sessionProjectRequest,
  ttlRequest,
  weightsInfoRequest,
} from "../protocol/index.ts";
import type { App } from "./app.ts";
import { tarOf } from "./archive.ts";
import type { CheckpointRecord } from "./checkpoints.ts";
import { ServerError } from "./errors.ts";
import { type Answer, jsonAnswer } from "./http.ts";
import { readMessage, translated } from "./json.ts";
import type { ModelRecord } from "./registry.ts";
import type { Call, Route } from "./route.ts";
import { checkTtl } from "./training-routes.ts";

const empty: Answer = { status: 204 };
const maxPage = 10_000;
/** How long a download link works. */
const linkLifetimeMs = 15 * 60_000;
const linkKey = randomBytes(32);

const checkpointPath = "/training_runs/(?<run>[^/]+)/checkpoints/(?<folder>weights|sampler_weights)/(?<name>[^/]+)";
const onCheckpoint = (suffix = "") => new RegExp(`^${checkpointPath}${suffix}$`);

export const restRoutes: readonly Route[] = [
  { name: "training_runs", method: "GET", path: /^\/training_runs$/, handle: listRuns },
  {
    name: "training_run",
    method: "GET",
    path: /^\/training_runs\/(?<run>[^/]+)$/,
    handle: (app, call) => jsonAnswer(runJson(app, app.registry.model(call.parameter("run")))),
  },
  {
    name: "run_checkpoints",
    method: "GET",
    path: /^\/training_runs\/(?<run>[^/]+)\/checkpoints$/,
    handle(app, call) {
      const runId = call.parameter("run");
      const records = app.checkpoints.list(runId);
      // Checkpoints outlive their run's registration only when the state folder was edited by hand.
      if (records.length === 0) app.registry.model(runId);
      return jsonAnswer({ checkpoints: records.map(checkpointJson), cursor: null });
    },
  },
  { name: "checkpoints", method: "GET", path: /^\/checkpoints$/, handle: listCheckpoints },
  {
    name: "delete_checkpoint",
    method: "DELETE",
    path: onCheckpoint(),
    async handle(app, call) {
      await app.checkpoints.delete(checkpointOf(app, call));
      return empty;
    },
  },
  { name: "publish", method: "POST", path: onCheckpoint("/publish"), handle: (app, call) => publish(app, call, true) },
  {
    name: "publish",
    method: "DELETE",
    path: onCheckpoint("/publish"),
    handle: (app, call) => publish(app, call, false),
  },
  {
    name: "ttl",
    method: "PUT",
    path: onCheckpoint("/ttl"),
    handle(app, call) {
      const body = call.json();
      // Here null says something: no limit.
      const { ttlSeconds } = readMessage(ttlRequest, { ttl_seconds: body["ttl_seconds"] ?? null });
      const record = checkpointOf(app, call);
      app.checkpoints.setTtl(record, checkTtl(ttlSeconds ?? undefined) ?? null);
      return empty;
    },
  },
  { name: "archive", method: "GET", path: onCheckpoint("/archive"), handle: archive },
  { name: "download", method: "GET", path: onCheckpoint("/download"), open: true, handle: download },
  { name: "weights_info", method: "POST", path: /^\/weights_info$/, handle: weightsInfo },
  {
    name: "sessions",
    method: "GET",
    path: /^\/sessions$/,
    handle(app, call) {
      const { items } = page(call, app.registry.sessions, 20);
      return jsonAnswer({ sessions: items.map((session) => session.id) });
    },
  },
  {
    name: "session",
    method: "GET",
    path: /^\/sessions\/(?<session>[^/]+)$/,
    handle(app, call) {
      const { id } = app.registry.session(call.parameter("session"));
      return jsonAnswer({
        training_run_ids: app.registry.models.filter((model) => model.sessionId === id).map((model) => model.id),
        sampler_ids: app.registry.samplers.filter((sampler) => sampler.sessionId === id).map((sampler) => sampler.id),
      });
    },
  },
  {
    name: "session_project",
    method: "PUT",
    path: /^\/sessions\/(?<session>[^/]+)\/project$/,
    handle(app, call) {
      const { projectId } = call.read(sessionProjectRequest);
      app.registry.setProject(call.parameter("session"), projectId);
      return empty;
    },
  },
  {
    name: "trace_export",
    method: "GET",
    path: /^\/sessions\/(?<session>[^/]+)\/trace_export$/,
    handle(app, call) {
      app.registry.session(call.parameter("session"));
      return jsonAnswer({ status: "failed", error: "This server keeps no traces. Look at its log instead." });
    },
  },
  { name: "audit", method: "GET", path: /^\/audit$/, handle: audit },
  {
    name: "billing",
    method: "GET",
    path: /^\/billing\/usage\/events$/,
    // Nothing here costs anything.
    handle: () => jsonAnswer({ data: [], sessions: {} }),
  },
];

function page<T>(call: Call, all: readonly T[], defaultLimit: number) {
  const limit = call.integer("limit", defaultLimit, maxPage);
  const offset = call.integer("offset", 0, Number.MAX_SAFE_INTEGER);
  return { items: all.slice(offset, offset + limit), cursor: { offset, limit, total_count: all.length } };
}

function listRuns(app: App, call: Call): Answer {
  const project = call.query.get("project_id");
  const runs = app.registry.models.filter(
    (model) => project === null || app.registry.session(model.sessionId).projectId === project,
  );
  const { items, cursor } = page(call, runs, 20);
  return jsonAnswer({ training_runs: items.map((model) => runJson(app, model)), cursor });
}

function listCheckpoints(app: App, call: Call): Answer {
  const { items, cursor } = page(call, app.checkpoints.list(), 100);
  return jsonAnswer({ checkpoints: items.map(checkpointJson), cursor });
}

function runJson(app: App, model: ModelRecord) {
  const records = app.checkpoints.list(model.id);
  const last = (kind: string) => {
    const record = records.find((candidate) => candidate.kind === kind);
    return record ? checkpointJson(record) : null;
  };
  return {
    training_run_id: model.id,
    base_model: model.baseModel,
    model_owner: "local",
    is_lora: true,
    corrupted: model.state === "lost",
    lora_rank: model.lora.rank,
    last_request_time: new Date(model.lastRequestAt).toISOString(),
    last_checkpoint: last("training"),
    last_sampler_checkpoint: last("sampler"),
    // The protocol's metadata is text to text.
    user_metadata: Object.fromEntries(
      Object.entries(model.userMetadata).map(([key, value]) => [
        key,
        typeof value === "string" ? value : JSON.stringify(value),
      ]),
    ),
    // Beyond the protocol: how far the run got, for clients that must reconcile after a restart.
    applied_optim_steps: model.appliedSteps,
    last_applied_seq_id: model.lastAppliedSequence,
  };
}

function checkpointJson(record: CheckpointRecord) {
  const path = formatTinkerPath(record.runId, record.kind, record.name);
  return {
    checkpoint_id: `${record.kind === "training" ? "weights" : "sampler_weights"}/${record.name}`,
    checkpoint_type: record.kind,
    time: new Date(record.createdAt).toISOString(),
    tinker_path: path,
    size_bytes: record.sizeBytes,
    public: record.public,
    expires_at: record.expiresAt === null ? null : new Date(record.expiresAt).toISOString(),
  };
}

function checkpointOf(app: App, call: Call): CheckpointRecord {
  return app.checkpoints.get({
    trainingRunId: call.parameter("run"),
    kind: call.parameter("folder") === "weights" ? "training" : "sampler",
    name: call.parameter("name"),
  });
}

/** Publishing what is public is no error here: a 409 would make the official client repeat it for five minutes. */
function publish(app: App, call: Call, value: boolean): Answer {
  const record = checkpointOf(app, call);
  if (record.public !== value) app.checkpoints.setPublic(record, value);
  return empty;
}

function weightsInfo(app: App, call: Call): Answer {
  const { tinkerPath } = call.read(weightsInfoRequest);
  const { baseModel, lora } = app.checkpoints.get(translated(() => parseTinkerPath(tinkerPath)));
  return jsonAnswer({
    base_model: baseModel,
    is_lora: true,
    lora_rank: lora.rank,
    train_unembed: lora.trainUnembed,
    train_mlp: lora.trainMlp,
    train_attn: lora.trainAttn,
  });
}

function archive(app: App, call: Call): Answer {
  const record = checkpointOf(app, call);
  const expires = Date.now() + linkLifetimeMs;
  const folder = call.parameter("folder");
  const path = `${apiPrefix}/training_runs/${encodeURIComponent(record.runId)}/checkpoints/${folder}/${record.name}/download`;
  const url = `${call.origin}${path}?expires=${expires}&signature=${signatureOf(record.uid, expires)}`;
  return {
    ...jsonAnswer({ url, expires: new Date(expires).toISOString() }, 302),
    headers: { location: url, expires: new Date(expires).toUTCString() },
  };
}

/** Needs no key: the link itself is the permission. */
function download(app: App, call: Call): Answer {
  const refusal = new ServerError(
    403,
    "server/download-link",
    "This download link is wrong or has expired. Ask for the archive again.",
  );
  const expires = call.integer("expires", 0, Number.MAX_SAFE_INTEGER);
  const given = Buffer.from(call.query.get("signature") ?? "", "hex");
  const found = app.checkpoints.find(
    call.parameter("run"),
    call.parameter("folder") === "weights" ? "training" : "sampler",
    call.parameter("name"),
  );
  const expected = Buffer.from(signatureOf(found?.uid ?? "", expires), "hex");
  if (!found || expires < Date.now() || given.length !== expected.length || !timingSafeEqual(given, expected))
    throw refusal;
  return {
    status: 200,
    contentType: "application/x-tar",
    headers: { "content-disposition": `attachment; filename="${found.name}.tar"` },
    body: tarOf(app.checkpoints.filesDir(found)),
  };
}

function signatureOf(uid: string, expires: number): string {
  return createHmac("sha256", linkKey).update(`${uid}\0${expires}`).digest("hex");
}

/** Checkpoints that are there now, as the events that made them. */
function audit(app: App, call: Call): Answer {
  const type = call.query.get("event_type") ?? "all";
  if (type !== "all" && type !== "checkpoints")
    throw new ServerError(400, "server/query", `event_type=${type.slice(0, 40)} is unknown. Use all or checkpoints.`);
  const day = call.query.get("day");
  if (day !== null && !/^\d{4}-\d\d-\d\d$/.test(day))
    throw new ServerError(400, "server/query", `day=${day.slice(0, 40)} is no date. Write it as 2026-01-31.`);
  const entries = [
    ...app.checkpoints.list().map((record) => ({
      timestamp: new Date(record.createdAt).toISOString(),
      event: "checkpoint_saved",
      model_id: record.runId,
      tinker_path: formatTinkerPath(record.runId, record.kind, record.name),
    })),
    ...(type === "all"
      ? app.registry.models.map((model) => ({
          timestamp: new Date(model.createdAt).toISOString(),
          event: "model_created",
          model_id: model.id,
        }))
      : []),
  ];
  return jsonAnswer({ entries: entries.filter((entry) => day === null || entry.timestamp.startsWith(day)) });
}
