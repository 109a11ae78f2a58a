// `whetstone/tinker`: a client for every server that speaks the Tinker protocol. See docs/tinker.md.
//
// import { ServiceClient } from "whetstone/tinker";
// const service = new ServiceClient();
// const training = await service.createLoraTrainingClient({ baseModel: "Qwen/Qwen3-4B-Instruct-2507", rank: 32 });
// const update = training.forwardBackward(data, "importance_sampling"); // queued at once
// const step = training.optimStep({ learningRate: 4e-5 });              // queued behind it
// await Promise.all([update, step]);

export { tokenizerIdOf } from "../core/model-name.ts";
export type { OutageNews } from "../core/outage.ts";
export type {
  AccessScope,
  AdamParams,
  ArchiveResponse,
  AuditResponse,
  BillingUsageResponse,
  Checkpoint,
  CheckpointsResponse,
  CheckpointUsageResponse,
  Chunk,
  Cursor,
  Datum,
  ExternalWeightsUrls,
  FailureCategory,
  ForwardBackwardOutput,
  GetInfoResponse,
  LoadWeightsResponse,
  LossFnConfig,
  LossName,
  ModelInput,
  OptimStepResponse,
  PromptAltTokens,
  PromptAnswers,
  QueueState,
  SampledSequence,
  SampleQuestions,
  SampleResponse,
  SamplerResponse,
  SamplingParams,
  SaveWeightsExternalResponse,
  SaveWeightsResponse,
  SearchSessionsRequest,
  SearchSessionsResponse,
  SequenceAnswers,
  ServerCapabilities,
  SessionResponse,
  StopReason,
  TopkLogprobs,
  TrainingRun,
  TrainingRunsResponse,
  WeightsInfoResponse,
} from "../protocol/index.ts";
export { ProtocolError, parseTinkerPath, type Tensor, type TinkerPath, tensor, textInput } from "../protocol/index.ts";
export type { CustomLoss, CustomLossResult } from "./custom-loss.ts";
export type { DatumInput, TensorInput, TokenList } from "./data.ts";
export {
  APIConnectionError,
  APIResponseError,
  APIStatusError,
  APITimeoutError,
  ClientClosedError,
  CredentialError,
  EarlierCallFailedError,
  InvalidInputError,
  ModelLostError,
  RequestFailedError,
  RequestLostError,
  StuckError,
  TinkerError,
  WaitTimeoutError,
} from "./errors.ts";
export { APIFuture, type ResultOptions } from "./future.ts";
export { type ClientOptions, defaultTimings, type QueueStateEvent, type Timings } from "./options.ts";
export { type PageOptions, RestClient, type RestOptions, type ScopeOptions } from "./rest-client.ts";
export { type ExportedSamplingClient, type SampleOptions, SamplingClient } from "./sampling-client.ts";
export { type FromStateOptions, type LoraOptions, ServiceClient } from "./service-client.ts";
export {
  type CallOptions,
  type ExternalOptions,
  type LoadOptions,
  type LossFunction,
  type LossOptions,
  type SaveOptions,
  type SaveStateOptions,
  TrainingClient,
} from "./training-client.ts";
