// Where everything is. Every path follows the base URL, whose own path may be a prefix.

export const apiPrefix = "/api/v1";
export const jsonType = "application/json";
export const protobufType = "application/x-protobuf";

/** Fixed paths, without the prefix. */
export const routes = {
  clientConfig: "/client/config",
  dynamicConfig: "/client/dynamic_config",
  authToken: "/auth/token",
  createSession: "/create_session",
  sessionHeartbeat: "/session_heartbeat",
  telemetry: "/telemetry",
  serverCapabilities: "/get_server_capabilities",
  health: "/healthz",
  createModel: "/create_model",
  unloadModel: "/unload_model",
  getInfo: "/get_info",
  forwardBackward: "/forward_backward",
  forward: "/forward",
  optimStep: "/optim_step",
  saveWeights: "/save_weights",
  loadWeights: "/load_weights",
  saveWeightsForSampler: "/save_weights_for_sampler",
  createSamplingSession: "/create_sampling_session",
  sample: "/asample",
  retrieveFuture: "/retrieve_future",
  samplers: "/samplers",
  weightsInfo: "/weights_info",
  trainingRuns: "/training_runs",
  checkpoints: "/checkpoints",
  sessions: "/sessions",
  audit: "/audit",
  billingUsage: "/billing/usage/events",
} as const;
