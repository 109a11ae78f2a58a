// The Tinker wire protocol: what client and server agree on, and the only folder that knows how it is spelled.
//
// Conventions:
// - A JSON message is one schema (`createModelRequest`) with the type inferred from it (`CreateModelRequest`). Its keys are
//   snake_case on the wire and camelCase in the code; `decode(schema, json)` and `encode(schema, value)` translate and validate.
//   Values that are names (loss functions, chunk types, keys of `lossFnInputs`, metric names) keep their wire spelling.
// - Absent and null mean the same on the wire. Decoded, an optional field is absent, or has the protocol's default.
// - Numbers in bulk are typed arrays: tokens are Int32Array, log-probabilities Float32Array (NaN = none), tensors `Tensor`.
// - `ForwardBackwardRequest`, `ForwardBackwardOutput` and `SampleResponse` also have protobuf forms: `encodeX(value): Uint8Array`
//   and `decodeX(bytes): X`.
// - A decoder throws ProtocolError and nothing else. It checks that a message is well formed; whether its content makes sense
//   (known model, matching lengths, finite numbers) is for the server to check. `tensorProblem` helps there.
export type { TopkLogprobs } from "./arrays.ts";
export { ProtocolError, type ProtocolErrorCode, type ProtocolIssue } from "./errors.ts";
export * from "./futures.ts";
export * from "./losses.ts";
export { decode, encode, encodeText, parseJson, snake } from "./message.ts";
export * from "./model-input.ts";
export {
  type CheckpointKind,
  checkpointFolders,
  checkpointIdOf,
  checkpointKinds,
  formatTinkerPath,
  parseTinkerPath,
  type TinkerPath,
} from "./paths.ts";
export { decodeForwardBackwardOutput, encodeForwardBackwardOutput } from "./protobuf/output.ts";
export {
  decodeForwardBackwardRequest,
  encodeForwardBackwardRequest,
  ForwardBackwardEncoder,
} from "./protobuf/request.ts";
export { decodeSampleResponse, encodeSampleResponse } from "./protobuf/sample.ts";
export {
  type PromptAltTokens,
  type PromptAnswers,
  questionProblem,
  questionsOf,
  type SampleQuestions,
  type SequenceAnswers,
} from "./questions.ts";
export * from "./rest.ts";
export { pathOf, patternOf, type Route } from "./route.ts";
export {
  apiPrefix,
  jsonType,
  type OperationRoute,
  operationType,
  protobufType,
  type RouteName,
  type Routes,
  routes,
} from "./routes.ts";
export * from "./sampling.ts";
export * from "./session.ts";
export {
  densify,
  type SparseRows,
  type Tensor,
  type TensorDtype,
  tensor,
  tensorProblem,
  tensorSchema,
} from "./tensors.ts";
export * from "./training.ts";
