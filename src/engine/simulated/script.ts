// Completions written to order instead of drawn from the model: so many tokens of filler, then an answer that is right, wrong or
// malformed, then the end. Only the choice of tokens is scripted. Their log-probabilities are the model's own, so a sampler and a
// learner agree on them as they do on drawn tokens, and training moves them.
//
// Tens of thousands of tokens cost little more than copying them: filler is cut from one long reel, whose log-probabilities are
// computed once per model.
import { Random } from "../../core/random.ts";
import type { SampledTokens, SampleRequest } from "../engine.ts";
import type { ClassBigram } from "./class-bigram.ts";
import { type Distribution, parseDistribution } from "./distribution.ts";

export interface ScriptOptions {
  /** A distribution: tokens of a whole completion; one that is shorter than its answer is that answer. */
  length: string;
  /** A distribution: per prompt, the share of completions whose answer is right. Cut to 0 … 1. */
  solveRate: string;
  /** Ids to make filler of. */
  filler: readonly number[];
  /** What ends a completion when the request names no stop token. */
  endToken: number;
  /** The right answers to a prompt; none where they are not known, and then a wrong one stands in. */
  rightAnswers(prompt: Int32Array): readonly (readonly number[])[];
  /** Answers in the right form that solve nothing, and answers without that form; the rest of the completions has half of each. */
  wrongAnswers: readonly (readonly number[])[];
  malformedAnswers: readonly (readonly number[])[];
}

const reelLength = 1 << 16;

export class Script {
  readonly #seed: number;
  readonly #options: ScriptOptions;
  readonly #length: Distribution;
  readonly #solveRate: Distribution;
  readonly #reel: Int32Array;
  readonly #fillerIds: ReadonlySet<number>;
  readonly #reelLogprobs = new WeakMap<ClassBigram, Float32Array>();

  /** `seed`: of what belongs to a prompt, and of the reel. */
  constructor(seed: number, options: ScriptOptions) {
    this.#seed = seed;
    this.#options = options;
    this.#length = parseDistribution(options.length);
    this.#solveRate = parseDistribution(options.solveRate);
    const random = new Random("reel", seed);
    const { filler } = options;
    this.#reel = Int32Array.from({ length: reelLength }, () => filler[random.integer(filler.length)]!);
    this.#fillerIds = new Set(filler);
  }

  /** One completion of at most `limit` tokens. The same seed gives the same tokens, whatever else is asked for before or beside it. */
  write(
    model: ClassBigram,
    request: SampleRequest,
    limit: number,
    seed: number | string,
    index: number,
  ): SampledTokens {
    const { prompt, settings } = request;
    // Greedy completions are all the same.
    const random =
      settings.temperature === 0
        ? new Random("greedy", this.#seed, hashOf(prompt))
        : new Random("script", seed, index, hashOf(prompt));
    const length = Math.round(this.#length(random));
    const offset = random.integer(reelLength);
    const end = settings.stopTokens[0] ?? this.#options.endToken;
    const ending = Int32Array.of(...this.#answer(prompt, random, settings.temperature === 0), end);
    const body = Math.min(Math.max(0, length - ending.length), limit);
    const size = Math.min(body + ending.length, limit);

    const tokens = new Int32Array(size);
    const logprobs = new Float32Array(size);
    const reelLogprobs = this.#logprobsOf(model);
    for (let at = 0; at < body; ) {
      const from = (offset + at) % reelLength;
      const count = Math.min(body - at, reelLength - from);
      tokens.set(this.#reel.subarray(from, from + count), at);
      logprobs.set(reelLogprobs.subarray(from, from + count), at);
      at += count;
    }
    tokens.set(ending.subarray(0, size - body), body);
    // What the reel cannot know: the first token after the prompt, and the answer.
    if (body > 0) logprobs[0] = model.logprob(prompt.at(-1) ?? end, tokens[0]!);
    for (let at = body; at < size; at++)
      logprobs[at] = model.logprob(at > 0 ? tokens[at - 1]! : (prompt.at(-1) ?? end), tokens[at]!);
    return this.#cut(tokens, logprobs, settings, body);
  }

  #answer(prompt: Int32Array, random: Random, greedy: boolean): readonly number[] {
    const { rightAnswers, wrongAnswers, malformedAnswers } = this.#options;
    const rate = this.#solveRate(new Random("solve-rate", this.#seed, hashOf(prompt)));
    const draw = greedy ? 0.5 : random.float();
    const right = draw < rate ? rightAnswers(prompt) : [];
    const answers =
      draw < rate ? (right.length > 0 ? right : wrongAnswers) : draw < (1 + rate) / 2 ? wrongAnswers : malformedAnswers;
    return answers[random.integer(answers.length)] ?? [];
  }

  /** Ends at the first stop token, or where the caller says so, as every engine does. */
  #cut(tokens: Int32Array, logprobs: Float32Array, settings: SampleRequest["settings"], body: number): SampledTokens {
    const stops = new Set(settings.stopTokens.length > 0 ? settings.stopTokens : [this.#options.endToken]);
    const soFar: number[] = [];
    // A stop token within the filler is rare; where it cannot be, the filler is not looked at.
    const careful = settings.shouldStop !== undefined || [...stops].some((token) => this.#fillerIds.has(token));
    for (let at = careful ? 0 : body; at < tokens.length; at++) {
      if (settings.shouldStop) soFar.push(tokens[at]!);
      if (stops.has(tokens[at]!) || settings.shouldStop?.(soFar))
        return { stopReason: "stop", tokens: tokens.slice(0, at + 1), logprobs: logprobs.slice(0, at + 1) };
    }
    return { stopReason: "length", tokens, logprobs };
  }

  #logprobsOf(model: ClassBigram): Float32Array {
    const known = this.#reelLogprobs.get(model);
    if (known) return known;
    const reel = this.#reel;
    const values = Float32Array.from(reel, (token, at) => model.logprob(reel.at(at - 1)!, token));
    this.#reelLogprobs.set(model, values);
    return values;
  }
}

/** FNV-1a over token ids. */
export function hashOf(tokens: Int32Array): number {
  let hash = 0x811c9dc5;
  for (const token of tokens) hash = Math.imul(hash ^ token, 0x01000193);
  return hash >>> 0;
}
