// The plain request/answer endpoints: runs, checkpoints, sessions, samplers, capabilities, audit and billing.
import { z } from "zod";
import { anything, fallback, message, optional } from "./message.ts";
import { checkpointKinds } from "./paths.ts";
import { route } from "./route.ts";
import { finishReasons } from "./session.ts";
import { optimizerConfig } from "./training.ts";

/** RFC 3339 text ↔ Date. A time without a zone (SkyRL's) is read as UTC. */
export const datetime = z.codec(
  z.string().refine((text) => !Number.isNaN(parseTime(text)), "expected an RFC 3339 time"),
  z.date(),
  {
    decode: (text) => new Date(parseTime(text)),
    encode: (date) => date.toISOString(),
  },
);

function parseTime(text: string): number {
  const zoned = /(?:Z|[+-]\d\d:?\d\d)$/i.test(text) || !/[T ]\d/.test(text);
  return Date.parse(zoned ? text : `${text}Z`);
}

/** Whose things to list: one's own, or all that one may see. */
export type AccessScope = "owned" | "accessible";

export const checkpoint = message({
  /** `weights/NAME`, `sampler_weights/NAME` or `external_weights/NAME` (the bare name on SkyRL). */
  checkpoint_id: z.string(),
  /** Weights with the optimizer's state, weights to sample with, or weights kept elsewhere. */
  checkpoint_type: z.enum(checkpointKinds),
  /** When it was saved. */
  time: datetime,
  /** `tinker://RUN/KIND/NAME`. */
  tinker_path: z.string(),
  /** Its size. */
  size_bytes: optional(z.number()),
  /** Whether everybody may read it. */
  public: fallback(z.boolean(), false),
  /** When it is removed; absent: never. */
  expires_at: optional(datetime),
  /** What was given when it was saved. */
  user_metadata: optional(z.record(z.string(), z.string())),
});
/** A checkpoint that the server keeps. */
export type Checkpoint = z.output<typeof checkpoint>;

const cursor = message({
  /** Items before this part. */
  offset: z.int(),
  /** Items that were asked for. */
  limit: z.int(),
  /** Items in all. */
  total_count: z.int(),
});
/** A place in a list. */
export type Cursor = z.output<typeof cursor>;

const trainingRun = message({
  /** Its id. */
  training_run_id: z.string(),
  /** The base model. */
  base_model: z.string(),
  /** Who made it. */
  model_owner: fallback(z.string(), ""),
  /** Whether an adapter is trained. */
  is_lora: z.boolean(),
  /** Whether the server gave it up. */
  corrupted: fallback(z.boolean(), false),
  /** The adapter's rank. */
  lora_rank: optional(z.int()),
  /** When it was last used. */
  last_request_time: datetime,
  /** The newest checkpoint to train on from. */
  last_checkpoint: optional(checkpoint),
  /** The newest checkpoint to sample from. */
  last_sampler_checkpoint: optional(checkpoint),
  /** What it was made with. */
  user_metadata: optional(anything),
  /** Beyond the protocol: how far the run got, for clients that must reconcile after a server's restart. */
  applied_optim_steps: optional(z.int()),
  /** Beyond the protocol: the last request that took effect. */
  last_applied_seq_id: optional(z.int()),
});
/** A training run as the server knows it. */
export type TrainingRun = z.output<typeof trainingRun>;

const trainingRunsResponse = message({
  /** The runs. */
  training_runs: z.array(trainingRun),
  /** Where this part of the list is. */
  cursor: optional(cursor),
});
/** A list of training runs. */
export type TrainingRunsResponse = z.output<typeof trainingRunsResponse>;
const checkpointsResponse = message({
  /** The checkpoints. */
  checkpoints: z.array(checkpoint),
  /** Where this part of the list is, when there are more. */
  cursor: optional(cursor),
});
/** A list of checkpoints. */
export type CheckpointsResponse = z.output<typeof checkpointsResponse>;

export const archiveResponse = message({
  /** A signed address. */
  url: z.string(),
  /** When it stops working. */
  expires: datetime,
});
/** Where a checkpoint's archive can be fetched. */
export type ArchiveResponse = z.output<typeof archiveResponse>;

const externalWeightsUrls = message({
  /** Addresses by file name. */
  urls: z.record(z.string(), z.string()),
  /** When they stop working. */
  expires: datetime,
});
/** Signed addresses for the files of a checkpoint. */
export type ExternalWeightsUrls = z.output<typeof externalWeightsUrls>;

const weightsInfoResponse = message({
  /** The base model. */
  base_model: z.string(),
  /** Whether it is an adapter. */
  is_lora: z.boolean(),
  /** The adapter's rank. */
  lora_rank: optional(z.int()),
  /** Whether the output layer has an adapter. */
  train_unembed: optional(z.boolean()),
  /** Whether the feed-forward layers have an adapter. */
  train_mlp: optional(z.boolean()),
  /** Whether the attention layers have an adapter. */
  train_attn: optional(z.boolean()),
  /** The optimizer whose state it holds. */
  optimizer_config: optional(optimizerConfig),
});
/** What a checkpoint holds. */
export type WeightsInfoResponse = z.output<typeof weightsInfoResponse>;

const sessionResponse = message({
  /** Its training runs. */
  training_run_ids: z.array(z.string()),
  /** Its samplers. */
  sampler_ids: z.array(z.string()),
  /** What it was made with. */
  user_metadata: optional(anything),
  /** Its name for people. */
  display_name: optional(z.string()),
});
/** What belongs to a session. */
export type SessionResponse = z.output<typeof sessionResponse>;
const samplerResponse = message({
  /** The sampler's id. */
  sampler_id: z.string(),
  /** The base model. */
  base_model: z.string(),
  /** The weights; absent for the base model itself. */
  model_path: optional(z.string()),
});
/** What a sampler samples from. */
export type SamplerResponse = z.output<typeof samplerResponse>;

const serverCapabilities = message({
  /** The base models, with their context windows. */
  supported_models: z.array(
    message({
      model_name: optional(z.string()),
      max_context_length: optional(z.int()),
      trainable: optional(z.boolean()),
      sampleable: optional(z.boolean()),
    }),
  ),
  /** Beyond the protocol: whether a sampler stays what it is, and leaves training alone, while its model is trained on. */
  frozen_samplers: optional(z.boolean()),
});
/** What a server offers. */
export type ServerCapabilities = z.output<typeof serverCapabilities>;
const auditResponse = message({
  /** What happened. */
  entries: z.array(
    message({
      timestamp: datetime,
      event: z.string(),
      model_id: optional(z.string()),
      tinker_path: optional(z.string()),
      purpose: optional(z.string()),
      event_details: optional(anything),
    }),
  ),
});
/** A part of the audit log. */
export type AuditResponse = z.output<typeof auditResponse>;

const billingUsageResponse = message({
  /** Rows of use: when, what, how much. */
  data: z.array(
    message({
      bucket_start: datetime,
      bucket_end: datetime,
      base_model: optional(z.string()),
      user_id: optional(z.string()),
      user_name: optional(z.string()),
      session_id: optional(z.string()),
      project_id: optional(z.string()),
      event_info: message({
        /** Seen: training, sampling_prefill, sampling_sample, checkpoint, storage. */
        type: z.string(),
        token_count: optional(z.number()),
        cached: optional(z.boolean()),
        count: optional(z.number()),
        gigabyte_hours: optional(z.number()),
      }),
      estimated_cost_usd: optional(z.number()),
    }),
  ),
  /** Up to when costs are complete. */
  cost_data_through: optional(z.string()),
  /** The sessions that rows name, by id. */
  sessions: fallback(z.record(z.string(), message({ user_metadata: optional(anything) })), {}),
});
/** What was used and what it cost. */
export type BillingUsageResponse = z.output<typeof billingUsageResponse>;

const checkpointUsageResponse = message({
  /** Sizes and counts. */
  data: z.array(message({ checkpoint_count: z.int(), size_bytes: z.int(), size_gigabytes: z.number() })),
});
/** How much the checkpoints take. */
export type CheckpointUsageResponse = z.output<typeof checkpointUsageResponse>;

/** The last session of a part of the list, to go on after. */
const place = message({ last_created_at: datetime, last_session_id: z.string() });
const sessionStatuses = ["active", "cancelled", "failed", "client_finished"] as const;
const searchSessionsRequest = message({
  /** This one. */
  session_id: optional(z.string()),
  /** In one of these projects. */
  project_ids: optional(z.array(z.string())),
  /** Values that the session was made with. */
  user_metadata: fallback(anything, {}),
  /** A part of the name. */
  display_name: optional(z.string()),
  /** Whose. */
  owner: optional(z.looseObject({ type: z.enum(["own", "accessible", "user"]) })),
  /** How they stand or ended. */
  statuses: optional(
    z.array(
      message({
        type: z.enum(sessionStatuses),
        reasons: optional(z.array(z.union([z.enum(finishReasons), message({ type: z.enum(finishReasons) })]))),
      }),
    ),
  ),
  /** At most this many. */
  limit: fallback(z.int(), 50),
  /** After this one, from an earlier answer. */
  cursor: optional(place),
});
/** Which sessions to find; what is left out does not matter. */
export type SearchSessionsRequest = z.output<typeof searchSessionsRequest>;

const searchSessionsResponse = message({
  /** The sessions. */
  sessions: z.array(
    message({
      session_id: z.string(),
      created_at: datetime,
      owner: z.string(),
      project_id: optional(z.string()),
      status: optional(
        message({
          type: z.enum(sessionStatuses),
          reason: optional(z.unknown()),
          detail: optional(z.string()),
          category: optional(z.string()),
          message: optional(z.string()),
        }),
      ),
      checkpoints_count: z.int(),
      display_name: optional(z.string()),
      user_metadata: optional(anything),
      checkpoint_storage_bytes: optional(z.int()),
    }),
  ),
  /** To find more; absent at the end. */
  next_cursor: optional(place),
});
/** Sessions that were found. */
export type SearchSessionsResponse = z.output<typeof searchSessionsResponse>;

const run = "/training_runs/{run}";
const checkpointOfRun = `${run}/checkpoints/{checkpoint}`;
export const restRoutes = {
  serverCapabilities: route("GET", "/get_server_capabilities", { response: serverCapabilities }),
  sampler: route("GET", "/samplers/{sampler}", { response: samplerResponse }),
  weightsInfo: route("POST", "/weights_info", {
    request: message({ tinker_path: z.string() }),
    response: weightsInfoResponse,
  }),
  trainingRuns: route("GET", "/training_runs", { response: trainingRunsResponse }),
  trainingRun: route("GET", run, { response: trainingRun }),
  runCheckpoints: route("GET", `${run}/checkpoints`, { response: checkpointsResponse }),
  checkpoints: route("GET", "/checkpoints", { response: checkpointsResponse }),
  publishCheckpoint: route("POST", `${checkpointOfRun}/publish`),
  unpublishCheckpoint: route("DELETE", `${checkpointOfRun}/publish`),
  /** null removes the limit; it is always sent. */
  checkpointTtl: route("PUT", `${checkpointOfRun}/ttl`, {
    request: message({ ttl_seconds: fallback(z.int().nullable(), null) }),
  }),
  /** A redirect, or JSON. */
  archive: route("GET", `${checkpointOfRun}/archive`, { response: archiveResponse }),
  externalWeightsUrls: route("GET", `${checkpointOfRun}/external_weights_urls`, { response: externalWeightsUrls }),
  deleteCheckpoint: route("DELETE", checkpointOfRun),
  /** Up to SDK 0.33.1 the copy goes into a session, under a model's number; since then into a project. */
  copyWeights: route("POST", "/copy_weights", {
    request: message({
      source_path: z.string(),
      ttl_seconds: optional(z.int()),
      destination_project_id: optional(z.string()),
      session_id: optional(z.string()),
      model_seq_id: optional(z.int()),
      weights_access_token: optional(z.string()),
    }),
    response: message({ tinker_path: z.string() }),
  }),
  searchSessions: route("POST", "/sessions/search", {
    request: searchSessionsRequest,
    response: searchSessionsResponse,
  }),
  sessions: route("GET", "/sessions", { response: message({ sessions: z.array(z.string()) }) }),
  session: route("GET", "/sessions/{session}", { response: sessionResponse }),
  sessionProject: route("PUT", "/sessions/{session}/project", {
    request: message({ project_id: z.string() }),
  }),
  traceExport: route("GET", "/sessions/{session}/trace_export", {
    response: message({
      status: z.enum(["pending", "ready", "failed"]),
      url: optional(z.string()),
      error: optional(z.string()),
    }),
  }),
  audit: route("GET", "/audit", { response: auditResponse }),
  billingUsage: route("GET", "/billing/usage/events", { response: billingUsageResponse }),
  checkpointUsage: route("GET", "/billing/usage/checkpoints/current", { response: checkpointUsageResponse }),
  /** Who a key belongs to. */
  apiKey: route("GET", "/auth/apikey/me", {
    response: message({
      key_id: z.int(),
      name: z.string(),
      note: z.string(),
      details: message({
        org_details: message({ name: z.string() }),
        user_details: message({ email: z.string() }),
      }),
    }),
  }),
  revokeApiKey: route("DELETE", "/auth/apikey/me"),
};
