// Sampling sessions, samples, and the polling of every operation's result.
import type { EngineModelInfo, SampleRequest as EngineSampleRequest } from "../engine/engine.ts";
import {
  createSamplingSessionRequest,
  encode,
  encodeForwardBackwardOutput,
  encodeSampleResponse,
  forwardBackwardOutput,
  protobufType,
  retrieveFutureRequest,
  type SampleRequest,
  type SamplingParams,
  sampleRequest,
  sampleResponse,
  textTokens,
} from "../protocol/index.ts";
import type { App } from "./app.ts";
import { checkTokens } from "./batch.ts";
import { ServerError } from "./errors.ts";
import { type Answer, jsonAnswer } from "./http.ts";
import { translated } from "./json.ts";
import type { Operation, Result } from "./operations.ts";
import type { Call, Route } from "./route.ts";
import { stopAtStrings } from "./stop.ts";
import { checkCount, submitted } from "./training-routes.ts";

const maxSamples = 1024;
const maxStops = 64;
const maxTopk = 256;

export const samplingRoutes: readonly Route[] = [
  { name: "create_sampling_session", method: "POST", path: /^\/create_sampling_session$/, handle: createSession },
  { name: "asample", method: "POST", path: /^\/asample$/, handle: sample },
  { name: "retrieve_future", method: "POST", path: /^\/retrieve_future$/, handle: retrieveFuture },
  { name: "samplers", method: "GET", path: /^\/samplers\/(?<sampler>[^/]+)$/, handle: samplerInfo },
];

function createSession(app: App, call: Call): Answer {
  const { sessionId, samplingSessionSeqId, baseModel, modelPath } = call.read(createSamplingSessionRequest);
  const sequence = checkCount(samplingSessionSeqId, "sampling_session_seq_id");
  const record = translated(() => app.samplers.create(sessionId, sequence, { baseModel, modelPath }));
  return jsonAnswer({ sampling_session_id: record.id, type: "create_sampling_session" });
}

function samplerInfo(app: App, call: Call): Answer {
  const { id, baseModel, modelPath } = app.samplers.get(call.parameter("sampler"));
  return jsonAnswer({ sampler_id: id, base_model: baseModel, model_path: modelPath ?? null });
}

function sample(app: App, call: Call): Answer {
  const request = call.read(sampleRequest);
  const { samplingSessionId, baseModel, modelPath, seqId } = request;
  const record =
    samplingSessionId === undefined
      ? translated(() => app.samplers.adHoc({ baseModel, modelPath }))
      : app.samplers.get(samplingSessionId);
  const sequence = samplingSessionId === undefined || seqId === undefined ? undefined : checkSampleSequence(seqId);
  app.sessions.touch(record.sessionId);
  const engineRequest = toEngineRequest(request, app.samplers.modelOf(record), app);
  return submitted(
    app.samplers.sample(record, sequence, engineRequest, {
      fingerprint: fingerprintOf(request, engineRequest.prompt),
      bytes: call.bytes.length,
    }),
  );
}

/** Copies of a client in other processes count from random multiples of a billion. */
function checkSampleSequence(seqId: number): number {
  if (seqId >= 0 && Number.isSafeInteger(seqId)) return seqId;
  throw new ServerError(400, "server/sequence-number", `seq_id=${seqId} is out of range. Count from 0 upwards.`);
}

function toEngineRequest(request: SampleRequest, model: EngineModelInfo, app: App): EngineSampleRequest {
  const prompt = textTokens(request.prompt);
  if (!prompt)
    throw new ServerError(
      400,
      "server/unsupported-input",
      `The prompt holds an image or audio chunk, and ${model.name} reads text only. Send encoded_text chunks.`,
    );
  checkTokens(prompt, model, "The prompt");
  const { maxTokens, seed, temperature, topK, topP, stop } = request.samplingParams;
  const longest = prompt.length + (maxTokens ?? 1);
  if (longest > model.maxContextLength)
    throw new ServerError(
      400,
      "server/context-length",
      `The prompt's ${prompt.length} tokens and max_tokens=${maxTokens ?? 1} pass ${model.name}'s context of ${model.maxContextLength}. Shorten one.`,
    );
  within("num_samples", request.numSamples, 1, maxSamples);
  within("topk_prompt_logprobs", request.topkPromptLogprobs, 0, Math.min(maxTopk, model.vocabSize));
  if (maxTokens !== undefined) within("max_tokens", maxTokens, 1, model.maxContextLength);
  within("temperature", temperature, 0, 100);
  if (topK !== -1) within("top_k", topK, 0, 0x7fffffff);
  if (topP === 0) within("top_p", topP, Number.MIN_VALUE, 1);
  within("top_p", topP, 0, 1);
  return {
    prompt,
    numSamples: request.numSamples,
    settings: {
      maxTokens,
      seed: seed === undefined ? undefined : foldSeed(seed),
      temperature,
      topK: topK === 0 ? -1 : topK,
      topP,
      ...toStops(stop, model, app),
    },
    promptLogprobs: request.promptLogprobs ?? false,
    topkPromptLogprobs: request.topkPromptLogprobs,
  };
}

function within(name: string, value: number, low: number, high: number): void {
  if (value >= low && value <= high) return;
  throw new ServerError(400, "server/sampling", `${name}=${value} is out of range. Send ${low} to ${high}.`);
}

/** Any 64-bit value is a seed; engines get a whole number from 0 to 2^53 − 1. */
function foldSeed(seed: number): number {
  if (!Number.isFinite(seed))
    throw new ServerError(400, "server/sampling", `seed=${seed} is no number. Send a whole one, or none.`);
  const modulus = Number.MAX_SAFE_INTEGER;
  return ((Math.trunc(seed) % modulus) + modulus) % modulus;
}

function toStops(stop: SamplingParams["stop"], model: EngineModelInfo, app: App) {
  const stops: readonly (string | number)[] = stop === undefined ? [] : typeof stop === "string" ? [stop] : stop;
  if (stops.length > maxStops) within("the number of stop entries", stops.length, 0, maxStops);
  const text = app.settings.text?.(model.name);
  const stopTokens = [...(text?.endTokens ?? [])];
  const strings: string[] = [];
  for (const entry of stops) {
    const token = typeof entry === "number" ? entry : text?.controlToken?.(entry);
    if (token === undefined) strings.push(entry as string);
    else stopTokens.push(token);
  }
  if (stopTokens.length > 0) checkTokens(Int32Array.from(stopTokens), model, "stop");
  if (strings.length === 0) return { stopTokens };
  if (strings.some((string) => string === "" || string.length > 1000))
    throw new ServerError(
      400,
      "server/sampling",
      "A stop string is empty or longer than 1000 characters. Leave it out.",
    );
  if (!text)
    throw new ServerError(
      400,
      "server/no-tokenizer",
      `${model.name} has no tokenizer here, so stop strings cannot be found. Send token ids in stop instead.`,
    );
  return { stopTokens, shouldStop: stopAtStrings(strings, text.decode) };
}

function fingerprintOf(request: SampleRequest, prompt: Int32Array): string {
  let hash = 0x811c9dc5;
  for (const token of prompt) hash = Math.imul(hash ^ token, 0x01000193);
  const { numSamples, samplingParams, promptLogprobs, topkPromptLogprobs } = request;
  return JSON.stringify([prompt.length, hash, numSamples, samplingParams, promptLogprobs, topkPromptLogprobs]);
}

async function retrieveFuture(app: App, call: Call): Promise<Answer> {
  const { requestId, allowMetadataOnly } = call.read(retrieveFutureRequest);
  const { futures } = app.operations;
  const operation = futures.get(requestId);
  if (!(await futures.wait(operation, app.settings.pollHoldMs, call.signal, app.ended)))
    return jsonAnswer({ type: "try_again", request_id: requestId, queue_state: "active" }, 408);
  return resultAnswer(app, operation, { protobuf: call.accept.includes(protobufType), allowMetadataOnly });
}

function resultAnswer(
  app: App,
  operation: Operation,
  options: { protobuf: boolean; allowMetadataOnly: boolean },
): Answer {
  const onSent = () => app.operations.futures.delivered(operation);
  const outcome = operation.outcome!;
  if (!outcome.ok) {
    const { message, category, code } = outcome.failure;
    return { ...jsonAnswer({ error: `${message} [${code}]`, category, code }), onSent };
  }
  const { result } = outcome;
  if (options.allowMetadataOnly && result.kind !== "json" && operation.bytes >= app.settings.announceBytes)
    return jsonAnswer({ status: "complete_metadata", response_payload_size: operation.bytes });
  return { ...encodeResult(result, options.protobuf), onSent };
}

function encodeResult(result: Result, protobuf: boolean): Answer {
  if (result.kind === "json") return jsonAnswer(result.body);
  if (result.kind === "training")
    return protobuf
      ? { status: 200, contentType: protobufType, body: encodeForwardBackwardOutput(result.output) }
      : jsonAnswer(encode(forwardBackwardOutput, result.output));
  return protobuf
    ? { status: 200, contentType: protobufType, body: encodeSampleResponse(result.output) }
    : jsonAnswer({ type: "sample", ...(encode(sampleResponse, result.output) as object) });
}
