// The plain request/answer endpoints: runs, checkpoints, sessions, samplers, capabilities, audit and billing.
import { z } from "zod";
import { fallback, message, optional } from "./message.ts";

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
  /** `weights/NAME` or `sampler_weights/NAME` (the bare name on SkyRL). */
  checkpoint_id: z.string(),
  checkpoint_type: z.enum(["training", "sampler"]),
  time: datetime,
  tinker_path: z.string(),
  size_bytes: optional(z.number()),
  public: fallback(z.boolean(), false),
  expires_at: optional(datetime),
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
});
export type TrainingRun = z.output<typeof trainingRun>;

export const trainingRunsResponse = message({ training_runs: z.array(trainingRun), cursor: optional(cursor) });
export type TrainingRunsResponse = z.output<typeof trainingRunsResponse>;
export const checkpointsResponse = message({ checkpoints: z.array(checkpoint), cursor: optional(cursor) });
export type CheckpointsResponse = z.output<typeof checkpointsResponse>;

/** null removes the limit; it is always sent. */
export const ttlRequest = message({ ttl_seconds: z.int().nullable() });
export const archiveResponse = message({ url: z.string(), expires: datetime });
export type ArchiveResponse = z.output<typeof archiveResponse>;

export const weightsInfoRequest = message({ tinker_path: z.string() });
export const weightsInfoResponse = message({
  base_model: z.string(),
  is_lora: z.boolean(),
  lora_rank: optional(z.int()),
  train_unembed: optional(z.boolean()),
  train_mlp: optional(z.boolean()),
  train_attn: optional(z.boolean()),
});
export type WeightsInfoResponse = z.output<typeof weightsInfoResponse>;

export const sessionsResponse = message({ sessions: z.array(z.string()) });
export const sessionResponse = message({ training_run_ids: z.array(z.string()), sampler_ids: z.array(z.string()) });
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
  supported_models: z.array(message({ model_name: optional(z.string()), max_context_length: optional(z.int()) })),
});
export type ServerCapabilities = z.output<typeof serverCapabilities>;
export const healthResponse = message({ status: z.string() });

export const auditResponse = message({
  entries: z.array(
    message({
      timestamp: datetime,
      event: z.string(),
      model_id: optional(z.string()),
      tinker_path: optional(z.string()),
      purpose: optional(z.string()),
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
    }),
  ),
  sessions: fallback(z.record(z.string(), message({ user_metadata: optional(z.record(z.string(), z.unknown())) })), {}),
});
export type BillingUsageResponse = z.output<typeof billingUsageResponse>;

/** The body of an error answer: text, or a list of issues (422). */
export const errorDetail = z.object({
  detail: z.union([
    z.string(),
    z.array(z.looseObject({ msg: z.string(), loc: z.array(z.union([z.string(), z.number()])).optional() })),
  ]),
});
