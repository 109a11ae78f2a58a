// What a sampling request must be before any work is done for it.
import { EngineError } from "./errors.ts";
import type { Qwen3Config } from "./model-types.ts";
import type { RunnableRequest } from "./sampler.ts";
import { checkTokens } from "./training-batch.ts";

/** Throws the first thing that is wrong with a request. */
export function checkSampleRequest(request: RunnableRequest, config: Qwen3Config): void {
  const { prompt, settings } = request;
  checkTokens(config, prompt, "The prompt");
  integer("num_samples", request.numSamples, 1);
  integer("topk_prompt_logprobs", request.topkPromptLogprobs, 0);
  if (settings.maxTokens !== undefined) integer("max_tokens", settings.maxTokens, 1);
  if (!(settings.temperature >= 0 && settings.temperature < Number.POSITIVE_INFINITY)) {
    throw bad(`temperature is ${settings.temperature}`, "It is 0 (greedy) or a positive number");
  }
  if (settings.topK !== -1) integer("top_k", settings.topK, 1);
  if (!(settings.topP > 0 && settings.topP <= 1)) throw bad(`top_p is ${settings.topP}`, "It lies above 0 and up to 1");
  if (settings.seed !== undefined && !Number.isFinite(settings.seed)) {
    throw bad(`seed is ${settings.seed}`, "Give a finite number");
  }
  const stray = settings.stopTokens.find((token) => !(token >= 0 && token < config.vocabSize));
  if (stray !== undefined) {
    throw bad(`stop holds the token id ${stray}`, `The model's ids run from 0 to ${config.vocabSize - 1}`);
  }
}

function integer(name: string, value: number, least: number): void {
  if (!Number.isSafeInteger(value) || value < least)
    throw bad(`${name} is ${value}`, `It is an integer of at least ${least}`);
}

function bad(what: string, advice: string): EngineError {
  return new EngineError("engine/bad-sampling-request", `${what}. ${advice}.`);
}
