// The plain request/answer endpoints: runs, checkpoints, sessions, samplers, capabilities, audit and billing.
import { z } from "zod";
import { fallback, message, optional } from "./message.ts";
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

export const accessScopes = ["owned", "accessible"] as const;
export type AccessScope = (typeof accessScopes)[number];

export const checkpoint = message({
  /** `weights/NAME`, `sampler_weights/NAME` or `external_weights/NAME` (the bare name on SkyRL). */
  checkpoint_id: z.string(),
  checkpoint_type: z.enum(checkpointKinds),
  time: datetime,
  tinker_path: z.string(),
  size_bytes: optional(z.number()),
  public: fallback(z.boolean(), false),
  expires_at: optional(datetime),
  user_metadata: optional(z.record(z.string(), z.string())),
});
export type Checkpoint = z.output<typeof checkpoint>;

export const cursor = message({ offset: z.int(), limit: z.int(), total_count: z.int() });
export type Cursor = z.output<typeof cursor>;

export const trainingRun = message({
  training_run_id: z.string(),
  base_model: z.string(),
  model_owner: fallback(z.string(), ""),
  is_lora: z.boolean(),
  corrupted: fallback(z.boolean(), false),
  lora_rank: optional(z.int()),
  last_request_time: datetime,
  last_checkpoint: optional(checkpoint),
  last_sampler_checkpoint: optional(checkpoint),
  user_metadata: optional(z.record(z.string(), z.unknown())),
  /** Beyond the protocol: how far the run got, for clients that must reconcile after a server's restart. */
  applied_optim_steps: optional(z.int()),
  last_applied_seq_id: optional(z.int()),
});
export type TrainingRun = z.output<typeof trainingRun>;

export const trainingRunsResponse = message({ training_runs: z.array(trainingRun), cursor: optional(cursor) });
export type TrainingRunsResponse = z.output<typeof trainingRunsResponse>;
export const checkpointsResponse = message({ checkpoints: z.array(checkpoint), cursor: optional(cursor) });
export type CheckpointsResponse = z.output<typeof checkpointsResponse>;

/** null removes the limit; it is always sent. */
export const ttlRequest = message({ ttl_seconds: fallback(z.int().nullable(), null) });
export const archiveResponse = message({ url: z.string(), expires: datetime });
export type ArchiveResponse = z.output<typeof archiveResponse>;

export const externalWeightsUrls = message({ urls: z.record(z.string(), z.string()), expires: datetime });
export type ExternalWeightsUrls = z.output<typeof externalWeightsUrls>;

/** Up to SDK 0.33.1 the copy goes into a session, under a model's number; since then into a project. */
export const copyWeightsRequest = message({
  source_path: z.string(),
  ttl_seconds: optional(z.int()),
  destination_project_id: optional(z.string()),
  session_id: optional(z.string()),
  model_seq_id: optional(z.int()),
  weights_access_token: optional(z.string()),
});
export const copyWeightsResponse = message({ tinker_path: z.string() });

export const weightsInfoRequest = message({ tinker_path: z.string() });
export const weightsInfoResponse = message({
  base_model: z.string(),
  is_lora: z.boolean(),
  lora_rank: optional(z.int()),
  train_unembed: optional(z.boolean()),
  train_mlp: optional(z.boolean()),
  train_attn: optional(z.boolean()),
  optimizer_config: optional(optimizerConfig),
});
export type WeightsInfoResponse = z.output<typeof weightsInfoResponse>;

export const sessionsResponse = message({ sessions: z.array(z.string()) });
export const sessionResponse = message({
  training_run_ids: z.array(z.string()),
  sampler_ids: z.array(z.string()),
  user_metadata: optional(z.record(z.string(), z.unknown())),
  display_name: optional(z.string()),
});
export type SessionResponse = z.output<typeof sessionResponse>;
export const sessionProjectRequest = message({ project_id: z.string() });
export const traceExportResponse = message({
  status: z.enum(["pending", "ready", "failed"]),
  url: optional(z.string()),
  error: optional(z.string()),
});
export type TraceExportResponse = z.output<typeof traceExportResponse>;

export const samplerResponse = message({
  sampler_id: z.string(),
  base_model: z.string(),
  model_path: optional(z.string()),
});
export type SamplerResponse = z.output<typeof samplerResponse>;

export const serverCapabilities = message({
  supported_models: z.array(
    message({
      model_name: optional(z.string()),
      max_context_length: optional(z.int()),
      trainable: optional(z.boolean()),
      sampleable: optional(z.boolean()),
    }),
  ),
});
export type ServerCapabilities = z.output<typeof serverCapabilities>;
export const auditResponse = message({
  entries: z.array(
    message({
      timestamp: datetime,
      event: z.string(),
      model_id: optional(z.string()),
      tinker_path: optional(z.string()),
      purpose: optional(z.string()),
      event_details: optional(z.record(z.string(), z.unknown())),
    }),
  ),
});
export type AuditResponse = z.output<typeof auditResponse>;

/** Kinds seen: training, sampling_prefill, sampling_sample, checkpoint, storage. */
export const usageEventInfo = message({
  type: z.string(),
  token_count: optional(z.number()),
  cached: optional(z.boolean()),
  count: optional(z.number()),
  gigabyte_hours: optional(z.number()),
});
export const billingUsageResponse = message({
  data: z.array(
    message({
      bucket_start: datetime,
      bucket_end: datetime,
      base_model: optional(z.string()),
      user_id: optional(z.string()),
      user_name: optional(z.string()),
      session_id: optional(z.string()),
      project_id: optional(z.string()),
      event_info: usageEventInfo,
      estimated_cost_usd: optional(z.number()),
    }),
  ),
  cost_data_through: optional(z.string()),
  sessions: fallback(z.record(z.string(), message({ user_metadata: optional(z.record(z.string(), z.unknown())) })), {}),
});
export type BillingUsageResponse = z.output<typeof billingUsageResponse>;

export const checkpointUsageResponse = message({
  data: z.array(message({ checkpoint_count: z.int(), size_bytes: z.int(), size_gigabytes: z.number() })),
});
export type CheckpointUsageResponse = z.output<typeof checkpointUsageResponse>;

const sessionStatuses = ["active", "cancelled", "failed", "client_finished"] as const;
export const searchSessionsRequest = message({
  session_id: optional(z.string()),
  project_ids: optional(z.array(z.string())),
  user_metadata: fallback(z.record(z.string(), z.unknown()), {}),
  /** A part of the name. */
  display_name: optional(z.string()),
  owner: optional(z.looseObject({ type: z.enum(["own", "accessible", "user"]) })),
  statuses: optional(
    z.array(
      message({
        type: z.enum(sessionStatuses),
        reasons: optional(z.array(z.union([z.enum(finishReasons), message({ type: z.enum(finishReasons) })]))),
      }),
    ),
  ),
  limit: fallback(z.int(), 50),
  cursor: optional(message({ last_created_at: datetime, last_session_id: z.string() })),
});
export type SearchSessionsRequest = z.output<typeof searchSessionsRequest>;

export const searchSessionsResponse = message({
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
      user_metadata: optional(z.record(z.string(), z.unknown())),
      checkpoint_storage_bytes: optional(z.int()),
    }),
  ),
  next_cursor: optional(message({ last_created_at: datetime, last_session_id: z.string() })),
});
export type SearchSessionsResponse = z.output<typeof searchSessionsResponse>;

/** Who a key belongs to. */
export const apiKeyResponse = message({
  key_id: z.int(),
  name: z.string(),
  note: z.string(),
  details: message({
    org_details: message({ name: z.string() }),
    user_details: message({ email: z.string() }),
  }),
});

const run = "/training_runs/{run}";
const checkpointOfRun = `${run}/checkpoints/{checkpoint}`;
export const restRoutes = {
  serverCapabilities: route("GET", "/get_server_capabilities", { response: serverCapabilities }),
  sampler: route("GET", "/samplers/{sampler}", { response: samplerResponse }),
  weightsInfo: route("POST", "/weights_info", { request: weightsInfoRequest, response: weightsInfoResponse }),
  trainingRuns: route("GET", "/training_runs", { response: trainingRunsResponse }),
  trainingRun: route("GET", run, { response: trainingRun }),
  runCheckpoints: route("GET", `${run}/checkpoints`, { response: checkpointsResponse }),
  checkpoints: route("GET", "/checkpoints", { response: checkpointsResponse }),
  publishCheckpoint: route("POST", `${checkpointOfRun}/publish`),
  unpublishCheckpoint: route("DELETE", `${checkpointOfRun}/publish`),
  checkpointTtl: route("PUT", `${checkpointOfRun}/ttl`, { request: ttlRequest }),
  /** A redirect, or JSON. */
  archive: route("GET", `${checkpointOfRun}/archive`, { response: archiveResponse }),
  externalWeightsUrls: route("GET", `${checkpointOfRun}/external_weights_urls`, { response: externalWeightsUrls }),
  deleteCheckpoint: route("DELETE", checkpointOfRun),
  copyWeights: route("POST", "/copy_weights", { request: copyWeightsRequest, response: copyWeightsResponse }),
  searchSessions: route("POST", "/sessions/search", {
    request: searchSessionsRequest,
    response: searchSessionsResponse,
  }),
  sessions: route("GET", "/sessions", { response: sessionsResponse }),
  session: route("GET", "/sessions/{session}", { response: sessionResponse }),
  sessionProject: route("PUT", "/sessions/{session}/project", { request: sessionProjectRequest }),
  traceExport: route("GET", "/sessions/{session}/trace_export", { response: traceExportResponse }),
  audit: route("GET", "/audit", { response: auditResponse }),
  billingUsage: route("GET", "/billing/usage/events", { response: billingUsageResponse }),
  checkpointUsage: route("GET", "/billing/usage/checkpoints/current", { response: checkpointUsageResponse }),
  apiKey: route("GET", "/auth/apikey/me", { response: apiKeyResponse }),
  revokeApiKey: route("DELETE", "/auth/apikey/me"),
};
