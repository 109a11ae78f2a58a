// Start-up: client configuration, credentials, sessions, heartbeats, telemetry.
import { z } from "zod";
import { fallback, message, optional } from "./message.ts";

export const clientConfigRequest = message({ sdk_version: fallback(z.string(), "") });

/** Flags a server sets for its clients. Any subset may be present; the defaults are the protocol's. */
export const clientConfig = message({
  pjwt_auth_enabled: fallback(z.boolean(), false),
  credential_default_source: fallback(z.string(), "api_key"),
  sample_dispatch_bytes_semaphore_size: fallback(z.int(), 10_485_760),
  inflight_response_bytes_semaphore_size: fallback(z.int(), 52_428_800),
  parallel_fwdbwd_chunks: fallback(z.boolean(), true),
  proto_compress_fwdbwd: fallback(z.boolean(), false),
  fwdbwd_max_chunk_len: fallback(z.int(), 1024),
  fwdbwd_max_chunk_bytes_count: fallback(z.int(), 5_000_000),
  fwdbwd_dispatch_bytes_semaphore_size: fallback(z.int(), 50_000_000),
  billing_exception_max_pause_duration_sec: fallback(z.int(), 3600),
  sample_no_retries: fallback(z.boolean(), false),
  sample_enable_stuck_detection: fallback(z.boolean(), true),
  sample_max_concurrent_requests: fallback(z.int(), 2000),
  create_model_via_load_weights: fallback(z.boolean(), false),
  /** Python only: which HTTP transport its SDK uses. */
  use_pyqwest_transport: optional(z.boolean()),
  /** Read by SDK versions up to 0.24.1: protobuf request bodies, and forward passes through /forward_backward. */
  proto_write_fwdbwd: optional(z.boolean()),
  fwd_via_fwdbwd: optional(z.boolean()),
});
export type ClientConfig = z.output<typeof clientConfig>;
export const defaultClientConfig: Readonly<ClientConfig> = z.decode(clientConfig, {});

export const dynamicConfig = message({ refresh_interval_sec: fallback(z.number(), 300) });
export type DynamicConfig = z.output<typeof dynamicConfig>;

export const authTokenResponse = message({ jwt: z.string() });

export const createSessionRequest = message({
  type: fallback(z.literal("create_session"), "create_session"),
  tags: fallback(z.array(z.string()), []),
  user_metadata: optional(z.record(z.string(), z.unknown())),
  sdk_version: fallback(z.string(), ""),
  project_id: optional(z.string()),
});
export type CreateSessionRequest = z.output<typeof createSessionRequest>;
export const createSessionResponse = message({
  session_id: z.string(),
  type: optional(z.string()),
  info_message: optional(z.string()),
  warning_message: optional(z.string()),
  error_message: optional(z.string()),
});
export type CreateSessionResponse = z.output<typeof createSessionResponse>;

export const sessionHeartbeatRequest = message({
  type: fallback(z.literal("session_heartbeat"), "session_heartbeat"),
  session_id: z.string(),
});
export const sessionHeartbeatResponse = message({
  type: fallback(z.literal("session_heartbeat"), "session_heartbeat"),
});

const eventBase = {
  event_id: z.string(),
  event_session_index: z.int(),
  severity: z.enum(["DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL"]),
  timestamp: z.string(),
};
export const telemetryEvent = z.union([
  message({ event: z.literal("SESSION_START"), ...eventBase }),
  message({ event: z.literal("SESSION_END"), ...eventBase, duration: z.string() }),
  message({
    event: z.literal("UNHANDLED_EXCEPTION"),
    ...eventBase,
    error_type: z.string(),
    error_message: z.string(),
    traceback: optional(z.string()),
  }),
  message({
    event: z.literal("GENERIC_EVENT"),
    ...eventBase,
    event_name: z.string(),
    event_data: z.record(z.string(), z.unknown()),
  }),
]);
export type TelemetryEvent = z.output<typeof telemetryEvent>;
export const telemetryRequest = message({
  events: z.array(telemetryEvent),
  platform: z.string(),
  sdk_version: z.string(),
  session_id: z.string(),
  process_uuid: fallback(z.string(), ""),
});
export const telemetryResponse = message({ status: z.literal("accepted") });
