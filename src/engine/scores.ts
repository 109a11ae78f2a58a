// What a request can ask about the tokens of its prompt. Every answer is made from the distribution of the token after a position,
// so that engines only have to provide those distributions, one position after the other.
import { Random } from "../core/random.ts";
import { argmax, draw, tempered } from "./pick.ts";

/** The likeliest tokens of one position, likeliest first. */
export type TopkRow = readonly [token: number, logprob: number][];

export interface PromptScoreRequest {
  /** The log-probability of every prompt token. */
  promptLogprobs?: boolean;
  /** The likeliest tokens at every prompt position; 0: none. */
  topkPromptLogprobs?: number;
  /** Tokens whose log-probability is wanted at each position from the second on: N - 1 lists. */
  targetPromptLogprobs?: readonly Int32Array[];
  /** Tokens to draw at every position from the second on, at the request's temperature; 0: none. */
  promptAltTokens?: number;
}

export interface PromptScores {
  /** One per prompt token; NaN where undefined (the first). */
  promptLogprobs?: Float32Array;
  /** One row per prompt token, null where undefined. */
  topkPromptLogprobs?: readonly (TopkRow | null)[];
  /** As the request lists them. */
  targetPromptLogprobs?: readonly Float32Array[];
  /** Row-major [N - 1, k]. */
  promptAltTokens?: { tokens: Int32Array; logprobs: Float32Array };
}

/** Collects a prompt's scores, position by position, in any order. */
export class ScoreKeeper {
  readonly #prompt: Int32Array;
  readonly #request: PromptScoreRequest;
  readonly #temperature: number;
  readonly #seed: number | string;
  readonly #logprobs: Float32Array;
  readonly #topk: (TopkRow | null)[];
  readonly #targets: Float32Array[];
  readonly #alternatives: { tokens: Int32Array; logprobs: Float32Array };

  constructor(
    request: PromptScoreRequest & { prompt: Int32Array },
    settings: { temperature: number; seed: number | string },
  ) {
    const { prompt } = request;
    this.#prompt = prompt;
    this.#request = request;
    this.#temperature = settings.temperature;
    this.#seed = settings.seed;
    const drawn = (prompt.length - 1) * (request.promptAltTokens ?? 0);
    this.#logprobs = new Float32Array(request.promptLogprobs ? prompt.length : 0).fill(Number.NaN);
    this.#topk = new Array<TopkRow | null>(request.topkPromptLogprobs ? prompt.length : 0).fill(null);
    this.#targets = (request.targetPromptLogprobs ?? []).map((tokens) => new Float32Array(tokens.length));
    this.#alternatives = { tokens: new Int32Array(drawn), logprobs: new Float32Array(drawn) };
  }

  get wanted(): boolean {
    const { promptLogprobs, topkPromptLogprobs, targetPromptLogprobs, promptAltTokens } = this.#request;
    return Boolean(promptLogprobs || topkPromptLogprobs || targetPromptLogprobs || promptAltTokens);
  }

  /** `logprobs` are those of the token after `position`. */
  add(position: number, logprobs: Float32Array): void {
    const next = position + 1;
    if (next >= this.#prompt.length) return;
    const { promptLogprobs, topkPromptLogprobs, targetPromptLogprobs, promptAltTokens } = this.#request;
    if (promptLogprobs) this.#logprobs[next] = logprobs[this.#prompt[next]!]!;
    if (topkPromptLogprobs) this.#topk[next] = largest(logprobs, topkPromptLogprobs);
    for (const [index, token] of targetPromptLogprobs?.[position]?.entries() ?? [])
      this.#targets[position]![index] = logprobs[token]!;
    if (promptAltTokens) this.#draw(position, logprobs, promptAltTokens);
  }

  #draw(position: number, logprobs: Float32Array, count: number): void {
    const random = new Random("alternatives", this.#seed, position);
    const probs = this.#temperature === 0 ? logprobs : tempered(logprobs, this.#temperature);
    const settings = { temperature: this.#temperature, topK: -1, topP: 1 };
    for (let index = position * count; index < (position + 1) * count; index++) {
      const token = this.#temperature === 0 ? argmax(probs) : draw(probs, settings, random);
      this.#alternatives.tokens[index] = token;
      this.#alternatives.logprobs[index] = logprobs[token]!;
    }
  }

  output(): PromptScores {
    const { promptLogprobs, topkPromptLogprobs, targetPromptLogprobs, promptAltTokens } = this.#request;
    return {
      ...(promptLogprobs && { promptLogprobs: this.#logprobs }),
      ...(topkPromptLogprobs && { topkPromptLogprobs: this.#topk }),
      ...(targetPromptLogprobs && { targetPromptLogprobs: this.#targets }),
      ...(promptAltTokens && { promptAltTokens: this.#alternatives }),
    };
  }
}

/** The `count` largest values with their indices, largest first, the lower index first among equals. */
export function largest(values: Float32Array, count: number): [number, number][] {
  const threshold = values.slice().sort()[Math.max(0, values.length - count)]!;
  const found: [number, number][] = [];
  for (let index = 0; index < values.length; index++) {
    if (values[index]! >= threshold) found.push([index, values[index]!]);
  }
  return found.sort((a, b) => b[1] - a[1] || a[0] - b[0]).slice(0, count);
}
