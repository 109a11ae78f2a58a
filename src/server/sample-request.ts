// Turns a sampling request from the wire into what an engine takes, and an engine's output into the answer. Everything an engine
// should never see is refused here.
import { createHash } from "node:crypto";
import type { EngineModelInfo, SampleRequest as EngineSampleRequest, SampleOutput } from "../engine/engine.ts";
import {
  densify,
  type SampleRequest,
  type SampleResponse,
  type SamplingParams,
  samplingRanges,
  type Tensor,
  tensor,
  tensorProblem,
  textTokens,
} from "../protocol/index.ts";
import { checkTokens } from "./batch.ts";
import { ServerError } from "./errors.ts";
import { type ModelText, stopAtStrings } from "./stop.ts";

const maxSamples = 1024;
const maxStops = 64;
const maxTopk = 256;
/** Numbers that one request may ask about its prompt: positions times what is wanted at each. */
const maxScores = 1 << 22;

export interface CheckedSample {
  request: EngineSampleRequest;
  /** The same for a repeat of the request, and for no other. */
  fingerprint: string;
  respond: (output: SampleOutput) => SampleResponse;
}

export function checkSample(wire: SampleRequest, model: EngineModelInfo, text: ModelText | undefined): CheckedSample {
  const prompt = textTokens(wire.prompt);
  if (!prompt)
    throw new ServerError(
      400,
      "server/unsupported-input",
      `The prompt holds an image or audio chunk, and ${model.name} reads text only. Send encoded_text chunks.`,
    );
  checkTokens(prompt, model, "The prompt");
  const { maxTokens, seed, stop, ...drawing } = wire.samplingParams;
  const longest = prompt.length + (maxTokens ?? 1);
  if (longest > model.maxContextLength)
    throw new ServerError(
      400,
      "server/context-length",
      `The prompt's ${prompt.length} tokens and max_tokens=${maxTokens ?? 1} pass ${model.name}'s context of ${model.maxContextLength}. Shorten one.`,
    );
  const mostTopk = Math.min(maxTopk, model.vocabSize);
  within("num_samples", wire.numSamples, 1, maxSamples);
  within("topk_prompt_logprobs", wire.topkPromptLogprobs, 0, mostTopk);
  within("topk_sample_logprobs", wire.topkSampleLogprobs, 0, mostTopk);
  within("prompt_alt_tokens_k", wire.promptAltTokensK, 0, Math.floor(maxScores / prompt.length));
  if (maxTokens !== undefined) within("max_tokens", maxTokens, 1, model.maxContextLength);
  for (const [key, { wire: name, low, high, off }] of Object.entries(samplingRanges)) {
    const value = drawing[key as keyof typeof samplingRanges];
    if (value !== off) within(name, value, low, high);
  }
  const lastN = checkLastN(wire, prompt.length);
  const targets = wire.targetPromptLogprobs && checkTargets(wire.targetPromptLogprobs, prompt.length, model);
  return {
    request: {
      prompt,
      numSamples: wire.numSamples,
      settings: {
        ...drawing,
        // Some clients say "off" with 0.
        topK: drawing.topK === 0 ? -1 : drawing.topK,
        maxTokens,
        seed: seed === undefined ? undefined : foldSeed(seed),
        ...toStops(stop, model, text),
      },
      topkSampleLogprobs: wire.topkSampleLogprobs,
      promptLogprobs: wire.promptLogprobs ?? false,
      topkPromptLogprobs: wire.topkPromptLogprobs,
      promptAltTokens: wire.promptAltTokensK,
      ...(targets && { targetPromptLogprobs: targets.wanted }),
    },
    fingerprint: fingerprintOf(wire, prompt),
    respond: (output) => toResponse(output, { lastN, targets, alternatives: wire.promptAltTokensK }),
  };
}

function within(name: string, value: number, low: number, high: number): void {
  if (value >= low && value <= high) return;
  throw new ServerError(400, "server/sampling", `${name}=${value} is out of range. Send ${low} to ${high}.`);
}

/** Any 64-bit value is a seed; engines get a whole number from 0 to 2^53 − 2. */
function foldSeed(seed: number | bigint): number {
  const modulus = Number.MAX_SAFE_INTEGER;
  if (typeof seed === "number") return ((seed % modulus) + modulus) % modulus;
  const wide = BigInt(modulus);
  return Number(((seed % wide) + wide) % wide);
}

function toStops(stop: SamplingParams["stop"], model: EngineModelInfo, text: ModelText | undefined) {
  const stops: readonly (string | number)[] = stop === undefined ? [] : typeof stop === "string" ? [stop] : stop;
  if (stops.length > maxStops) within("the number of stop entries", stops.length, 0, maxStops);
  // An empty list says that nothing stops, not even the end of the sequence.
  const stopAtEnd = !(Array.isArray(stop) && stop.length === 0);
  const stopTokens = stopAtEnd ? [...(text?.endTokens ?? [])] : [];
  const strings: string[] = [];
  for (const entry of stops) {
    const token = typeof entry === "number" ? entry : text?.controlToken?.(entry);
    if (token === undefined) strings.push(entry as string);
    else stopTokens.push(token);
  }
  if (stopTokens.length > 0) checkTokens(Int32Array.from(stopTokens), model, "stop");
  if (strings.length === 0) return { stopTokens, stopAtEnd };
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
  return { stopTokens, stopAtEnd, shouldStop: stopAtStrings(strings, text.decode) };
}

function checkLastN({ promptLogprobs, topkPromptLogprobs, promptLogprobsLastN: lastN }: SampleRequest, length: number) {
  if (lastN === undefined) return undefined;
  if (!promptLogprobs && topkPromptLogprobs === 0)
    throw new ServerError(
      400,
      "server/sampling",
      "prompt_logprobs_last_n cuts prompt logprobs, which were not asked for. Set prompt_logprobs, or leave it out.",
    );
  within("prompt_logprobs_last_n", lastN, 1, Math.max(1, length - 1));
  return lastN;
}

interface Targets {
  /** As it was asked. */
  asked: Tensor;
  /** The tokens of every row, without those that are not asked. */
  wanted: Int32Array[];
  /** Where each of them goes in the answer's values. */
  places: Int32Array[];
}

function checkTargets(asked: Tensor, length: number, model: EngineModelInfo): Targets {
  const { shape, sparse } = asked;
  const refuse = (reason: string) =>
    new ServerError(
      400,
      "server/sampling",
      `target_prompt_logprobs ${reason} Send int64 [${length - 1}, K], one row per position from the second on.`,
    );
  if (asked.dtype !== "int64") throw refuse(`has dtype ${asked.dtype}.`);
  if (shape.length !== 2 || shape[0] !== length - 1 || shape[1]! < 1 || length < 2)
    throw refuse(`has shape [${shape}].`);
  if (shape[0]! * shape[1]! > maxScores && !sparse) throw refuse(`asks for more than ${maxScores} numbers.`);
  const problem = tensorProblem(asked);
  if (problem) throw refuse(`does not fit together: ${problem}.`);
  const columns = shape[1]!;
  const wanted: Int32Array[] = [];
  const places: Int32Array[] = [];
  for (let row = 0; row < length - 1; row++) {
    const start = sparse ? sparse.crowIndices[row]! : row * columns;
    const end = sparse ? sparse.crowIndices[row + 1]! : (row + 1) * columns;
    const [tokens, indices]: [number[], number[]] = [[], []];
    for (let index = start; index < end; index++) {
      const token = Number(asked.data[index]!);
      if (token === -1) continue;
      tokens.push(token);
      indices.push(index);
    }
    wanted.push(Int32Array.from(tokens));
    places.push(Int32Array.from(indices));
    if (tokens.length > 0) checkTokens(wanted[row]!, model, `target_prompt_logprobs, row ${row}`);
  }
  if (wanted.every((row) => row.length === 0)) throw refuse("asks for no token at all.");
  return { asked, wanted, places };
}

function toResponse(
  output: SampleOutput,
  asked: { lastN: number | undefined; targets: Targets | undefined; alternatives: number },
): SampleResponse {
  const { promptLogprobs, topkPromptLogprobs, targetPromptLogprobs, promptAltTokens } = output;
  const response: SampleResponse = {
    sequences: output.sequences.map(({ stopReason, tokens, logprobs, topkLogprobs }) => ({
      stopReason,
      tokens,
      logprobs,
      ...(topkLogprobs && { topkSampledLogprobs: topkLogprobs.map((row) => [...row]) }),
    })),
    promptCacheHitTokens: 0,
  };
  const length = promptLogprobs?.length ?? topkPromptLogprobs?.length ?? 0;
  const first = asked.lastN === undefined ? 0 : length - asked.lastN;
  if (promptLogprobs)
    response.promptLogprobs = promptLogprobs.map((value, index) => (index < first ? Number.NaN : value));
  if (topkPromptLogprobs)
    response.topkPromptLogprobs = topkPromptLogprobs.map((row, index) =>
      row === null || index < first ? null : [...row],
    );
  if (asked.targets && targetPromptLogprobs) {
    const { shape, sparse, data } = asked.targets.asked;
    const values = new Float32Array(data.length);
    for (const [row, places] of asked.targets.places.entries())
      for (const [index, place] of places.entries()) values[place] = targetPromptLogprobs[row]![index]!;
    response.targetPromptLogprobs = { dtype: "float32", data: values, shape, ...(sparse && { sparse }) };
  }
  if (promptAltTokens) {
    const shape = [promptAltTokens.tokens.length / asked.alternatives, asked.alternatives];
    response.promptAltTokens = {
      tokens: tensor(promptAltTokens.tokens, shape),
      logprobs: tensor(promptAltTokens.logprobs, shape),
    };
  }
  return response;
}

function fingerprintOf(
  { prompt: _, seqId: __, targetPromptLogprobs: targets, ...rest }: SampleRequest,
  tokens: Int32Array,
) {
  const hash = createHash("sha256");
  hash.update(JSON.stringify(rest, (_key, value: unknown) => (typeof value === "bigint" ? `${value}` : value)));
  hash.update(new Uint8Array(tokens.buffer, tokens.byteOffset, tokens.byteLength));
  if (targets) hash.update(JSON.stringify([targets.shape, Array.from(densify(targets).data, Number)]));
  return hash.digest("base64");
}
