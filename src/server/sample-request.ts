// Turns a sampling request from the wire into what an engine takes. Everything an engine should never see is refused here.
import { createHash } from "node:crypto";
import type { EngineModelInfo, SampleRequest as EngineSampleRequest } from "../engine/engine.ts";
import {
  foldSeed,
  questionProblem,
  questionsOf,
  type SampleRequest,
  type SamplingParams,
  samplingRanges,
  textTokens,
} from "../protocol/index.ts";
import { checkTokens } from "./batch.ts";
import { badRequest } from "./errors.ts";
import { type ModelText, stopAtStrings } from "./stop.ts";

const maxSamples = 1024;
const maxStops = 64;

export function checkSample(
  wire: SampleRequest,
  model: EngineModelInfo,
  text: ModelText | undefined,
): { request: EngineSampleRequest; fingerprint: string } {
  const prompt = textTokens(wire.prompt);
  if (!prompt)
    throw badRequest(
      "server/unsupported-input",
      `The prompt holds an image or audio chunk, and ${model.name} reads text only. Send encoded_text chunks.`,
    );
  checkTokens(prompt, model, "The prompt");
  const { maxTokens, seed, stop, ...drawing } = wire.samplingParams;
  const longest = prompt.length + (maxTokens ?? 1);
  if (longest > model.maxContextLength)
    throw badRequest(
      "server/context-length",
      `The prompt's ${prompt.length} tokens and max_tokens=${maxTokens ?? 1} pass ${model.name}'s context of ${model.maxContextLength}. Shorten one.`,
    );
  within("num_samples", wire.numSamples, 1, maxSamples);
  if (maxTokens !== undefined) within("max_tokens", maxTokens, 1, model.maxContextLength);
  for (const [key, { wire: name, low, high, off }] of Object.entries(samplingRanges)) {
    const value = drawing[key as keyof typeof samplingRanges];
    if (value !== undefined && value !== off) within(name, value, low, high);
  }
  const questions = questionsOf(wire);
  const problem = questionProblem(questions, { promptLength: prompt.length, vocabSize: model.vocabSize });
  if (problem !== undefined) throw badRequest("server/sampling", problem);
  return {
    request: {
      prompt,
      numSamples: wire.numSamples,
      settings: {
        ...drawing,
        // Some clients say "off" with 0.
        topK: drawing.topK === 0 ? -1 : drawing.topK,
        maxTokens,
        seed: seed === undefined ? undefined : toSeed(seed),
        ...toStops(stop, model, text),
      },
      ...questions,
    },
    fingerprint: fingerprintOf(wire),
  };
}

function within(name: string, value: number, low: number, high: number): void {
  if (value >= low && value <= high) return;
  throw badRequest("server/sampling", `${name}=${value} is out of range. Send ${low} to ${high}.`);
}

/**
 * Any 64-bit value is a seed; engines get a whole number from 0 to 2^53 − 2. The sum of numbers rounds, so that some seeds become their
 * neighbour: every recorded run was drawn so, and an exact sum would draw others.
 */
export function toSeed(seed: number | bigint): number {
  const modulus = Number.MAX_SAFE_INTEGER;
  return typeof seed === "number" ? ((seed % modulus) + modulus) % modulus : foldSeed(seed, modulus);
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
    throw badRequest("server/sampling", "A stop string is empty or longer than 1000 characters. Leave it out.");
  if (!text)
    throw badRequest(
      "server/no-tokenizer",
      `${model.name} has no tokenizer here, so stop strings cannot be found. Send token ids in stop instead.`,
    );
  return { stopTokens, stopAtEnd, shouldStop: stopAtStrings(strings, text.decode) };
}

/** What a request says, in short: the same for a repeat of it, and for no other. */
function fingerprintOf({ seqId: _, ...rest }: SampleRequest): string {
  const text = JSON.stringify(rest, (_key, value: unknown) => {
    if (typeof value === "bigint") return String(value);
    if (!ArrayBuffer.isView(value)) return value;
    return Buffer.from(value.buffer, value.byteOffset, value.byteLength).toString("base64");
  });
  return createHash("sha256").update(text).digest("base64");
}
