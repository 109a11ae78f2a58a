// The model behind the simulated engine: a softmax over token classes given the class of the token before. A table of 32 × 16
// weights is all there is to learn, so every loss, gradient and sample is exact and cheap, and training visibly moves logprobs.
//
//   logp(token | previous) = logSoftmax(base[c] + adapter[c])[token mod 16] − log(tokens in that class),   c = class of previous
import { Random } from "../../core/random.ts";
import type { DrawSettings } from "../../protocol/sampling.ts";
import { argmax, draw, tempered } from "../pick.ts";

export const contextClasses = 32;
export const tokenClasses = 16;
export const weightCount = contextClasses * tokenClasses;

/** The context class of the token before a position. */
export const contextOf = (previousToken: number) => Math.imul(previousToken + 1, 0x9e3779b1) >>> 27;
export const classOf = (token: number) => token % tokenClasses;

/** Base weights drawn from a seed: what a fresh adapter (all zeros) leaves unchanged. */
export function baseWeights(seed: number): Float64Array {
  const random = new Random("class-bigram", seed);
  return Float64Array.from({ length: weightCount }, () => random.normal());
}

/** The distribution that a set of weights stands for. Immutable: training makes a new one. */
export class ClassBigram {
  readonly vocabSize: number;
  /** [context class][token class]: log-probability of the class. */
  readonly classLogprobs = new Float64Array(weightCount);
  /** The same of each single token of the class. */
  readonly #tokenLogprobs = new Float64Array(weightCount);

  constructor(base: Float64Array, adapter: Float64Array, vocabSize: number) {
    this.vocabSize = vocabSize;
    for (let start = 0; start < weightCount; start += tokenClasses) {
      let max = Number.NEGATIVE_INFINITY;
      for (let k = start; k < start + tokenClasses; k++) max = Math.max(max, base[k]! + adapter[k]!);
      let sum = 0;
      for (let k = start; k < start + tokenClasses; k++) sum += Math.exp(base[k]! + adapter[k]! - max);
      const logSum = max + Math.log(sum);
      for (let k = start; k < start + tokenClasses; k++) {
        this.classLogprobs[k] = base[k]! + adapter[k]! - logSum;
        this.#tokenLogprobs[k] = this.classLogprobs[k]! - Math.log(this.classSize(k - start));
      }
    }
  }

  /** How many tokens share the class: token t of class k means t mod 16 = k. */
  classSize(tokenClass: number): number {
    return Math.floor((this.vocabSize - 1 - tokenClass) / tokenClasses) + 1;
  }

  logprob(previousToken: number, token: number): number {
    return this.#tokenLogprobs[contextOf(previousToken) * tokenClasses + classOf(token)]!;
  }

  /** The log-probability of every token after this one, or of the first of them. */
  logprobs(previousToken: number, count = this.vocabSize): Float32Array {
    return Float32Array.from({ length: count }, (_, token) => this.logprob(previousToken, token));
  }

  /** Draws the next token; the logprob reported is the model's own. */
  draw(previousToken: number, random: Random, settings: DrawSettings): { token: number; logprob: number } {
    const token = this.#choose(previousToken, random, settings);
    return { token, logprob: this.logprob(previousToken, token) };
  }

  #choose(previousToken: number, random: Random, settings: DrawSettings): number {
    const { temperature, topK, topP } = settings;
    // The first tokens are one of each class.
    if (temperature === 0) return argmax(this.logprobs(previousToken, Math.min(tokenClasses, this.vocabSize)));
    if (topK > 0 || topP < 1) return draw(tempered(this.logprobs(previousToken), temperature), settings, random);
    const start = contextOf(previousToken) * tokenClasses;
    const mass: number[] = [];
    let total = 0;
    for (let k = 0; k < tokenClasses; k++) {
      // Within a class all tokens are alike, so the class weighs its size times one token's tempered probability.
      const size = this.classSize(k);
      mass.push(
        size > 0 ? size * Math.exp((this.classLogprobs[start + k]! - Math.log(Math.max(size, 1))) / temperature) : 0,
      );
      total += mass[k]!;
    }
    let rest = random.float() * total;
    let tokenClass = 0;
    while (tokenClass < tokenClasses - 1 && rest >= mass[tokenClass]!) rest -= mass[tokenClass++]!;
    while (mass[tokenClass] === 0) tokenClass--;
    return tokenClass + tokenClasses * random.integer(this.classSize(tokenClass));
  }
}
