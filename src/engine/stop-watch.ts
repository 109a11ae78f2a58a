// Watches the tokens of a request's samples for a stop that only the caller can see (a stop string). Tokens arrive while the
// worker computes further ones; what it computed past the stop is cut off, so the result does not depend on how late the stop came.
import type { SampledTokens, SampleOutput } from "./engine.ts";
import { cutTo } from "./scores.ts";

export class StopWatch {
  readonly #shouldStop: (tokens: readonly number[]) => boolean;
  readonly #tokens: number[][] = [];
  /** Per sample: how many tokens it keeps. */
  readonly #lengths = new Map<number, number>();

  constructor(shouldStop: (tokens: readonly number[]) => boolean) {
    this.#shouldStop = shouldStop;
  }

  /** Takes a sample's next token; the length to stop at if this one ends it. */
  add(sample: number, token: number): number | undefined {
    if (this.#lengths.has(sample)) return undefined;
    this.#tokens[sample] ??= [];
    const tokens = this.#tokens[sample];
    tokens.push(token);
    if (!this.#shouldStop(tokens)) return undefined;
    this.#lengths.set(sample, tokens.length);
    return tokens.length;
  }

  applyTo(output: SampleOutput): SampleOutput {
    const sequences = output.sequences.map((sequence, index): SampledTokens => {
      const length = this.#lengths.get(index);
      return length === undefined ? sequence : { ...cutTo(sequence, length), stopReason: "stop" };
    });
    return { ...output, sequences };
  }
}
