// Start-up: client configuration, credentials, sessions, heartbeats, telemetry.
import { z } from "zod";
import { anything, fallback, kind, message, optional } from "./message.ts";
import { route } from "./route.ts";

const clientConfigRequest = message({ sdk_version: fallback(z.string(), "") });

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
  /** Finished samples are announced by one poll for all (/retrieve_futures). */
  sample_use_retrieve_futures: fallback(z.boolean(), false),
  /** Copies of a sampling client ask for a number of their own (/join_sampling_session). */
  sample_join_sampling_session: fallback(z.boolean(), false),
  custom_loss_server_side: fallback(z.boolean(), false),
  /** Beyond the protocol: seeds below this are taken as they are. SkyRL's must fit 31 bits, so that is assumed where nothing is said. */
  seed_limit: fallback(z.number(), 2 ** 31 - 2 ** 16),
  /** Python only: which HTTP transport its SDK uses. */
  use_pyqwest_transport: optional(z.boolean()),
  /** Read by SDK versions up to 0.24.1: protobuf request bodies, and forward passes through /forward_backward. */
  proto_write_fwdbwd: optional(z.boolean()),
  fwd_via_fwdbwd: optional(z.boolean()),
});
export type ClientConfig = z.output<typeof clientConfig>;
export const defaultClientConfig: Readonly<ClientConfig> = z.decode(clientConfig, {});

export const dynamicConfig = message({
  refresh_interval_sec: fallback(z.number(), 300),
  /** Samples that a client gives up are cancelled (/cancel_future). */
  sample_cancel_enabled: fallback(z.boolean(), false),
  sample_cancel_max_batch_size: fallback(z.int(), 64),
});
export const defaultDynamicConfig: Readonly<z.output<typeof dynamicConfig>> = z.decode(dynamicConfig, {});

export const finishReasons = ["success", "errored", "interrupted"] as const;

export const sessionRoutes = {
  clientConfig: route("POST", "/client/config", { request: clientConfigRequest, response: clientConfig }),
  dynamicConfig: route("POST", "/client/dynamic_config", { request: clientConfigRequest, response: dynamicConfig }),
  authToken: route("POST", "/auth/token", { response: message({ jwt: z.string() }) }),
  createSession: route("POST", "/create_session", {
    request: message({
      type: kind("create_session"),
      tags: fallback(z.array(z.string()), []),
      user_metadata: optional(anything),
      sdk_version: fallback(z.string(), ""),
      project_id: optional(z.string()),
      display_name: optional(z.string()),
    }),
    response: message({
      session_id: z.string(),
      type: optional(z.string()),
      info_message: optional(z.string()),
      warning_message: optional(z.string()),
      error_message: optional(z.string()),
    }),
  }),
  sessionHeartbeat: route("POST", "/session_heartbeat", {
    request: message({ type: kind("session_heartbeat"), session_id: z.string() }),
    response: message({ type: kind("session_heartbeat") }),
  }),
  finishSession: route("POST", "/sessions/{session}/finish", {
    request: message({ reason: message({ type: z.enum(finishReasons) }), detail: optional(z.string()) }),
  }),
  /** Telemetry is accepted whatever its events hold, so that no client version is sent into a retry loop. */
  telemetry: route("POST", "/telemetry", {
    request: z.looseObject({ events: z.array(z.looseObject({})), session_id: z.string().optional() }),
    response: message({ status: z.literal("accepted") }),
  }),
  health: route("GET", "/healthz", { response: message({ status: z.string() }) }),
};
