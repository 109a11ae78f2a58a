// A sampler: a frozen snapshot of a model and the requests that run on it. Requests join and leave the running batch between
// steps. A request's result depends on its prompt, its settings and its seed alone.
import { randomInt } from "node:crypto";
import { Random } from "../core/random.ts";
import type { SequenceAnswers } from "../protocol/questions.ts";
import type { DecoderConfig } from "./architecture.ts";
import type { Snapshot } from "./base-model.ts";
import type { DecodeKind } from "./decoder.ts";
import type { SampledTokens, SampleOutput, SampleRequest, SampleSettings } from "./engine.ts";
import { EngineError } from "./errors.ts";
import { argmax, draw, tempered } from "./pick.ts";
import { Prefiller, type PromptJob } from "./prefill.ts";
import { type PromptBlock, PromptCache } from "./prompt-cache.ts";
import { type BatchSample, RunningBatch } from "./running-batch.ts";
import { cutTo, promptScores, type Scores, sequenceScores } from "./scores.ts";

export interface SamplerLimits {
  /** Samples that are decoded together; more wait. */
  maxBatchRows: number;
  /** Bytes of computed prompts kept for later requests. */
  promptCacheBytes: number;
}

export const defaultSamplerLimits: SamplerLimits = { maxBatchRows: 256, promptCacheBytes: 256 * 2 ** 20 };

/**
 * The batch that samples run in: by whether they share their prompt with siblings, which decides the kernels and therefore must
 * not depend on other requests; and by length, so that short ones do not pay for the padding of long ones.
 */
function batchOf(promptLength: number, numSamples: number): { kind: DecodeKind; key: string } {
  const kind = numSamples > 1 ? "shared" : "lone";
  return { kind, key: `${kind} ${promptLength <= 1024 ? 0 : Math.ceil(Math.log2(promptLength))}` };
}

export type RunnableRequest = Omit<SampleRequest, "settings"> & { settings: Omit<SampleSettings, "shouldStop"> };

/** Sees a token of a sample as it is chosen. */
export type OnToken = (sample: number, token: number) => void;

/** A request under way. */
export interface RunningRequest {
  readonly result: Promise<SampleOutput>;
  /** Drops what is left to do; the result is never settled. */
  cancel(): void;
  /** Ends one sample after `length` of its tokens, because its text reached a stop string there. */
  stop(sample: number, length: number): void;
}

export class Sampler {
  readonly #config: DecoderConfig;
  readonly #snapshot: Snapshot;
  readonly #limits: SamplerLimits;
  readonly #prefiller: Prefiller;
  readonly #batches = new Map<string, RunningBatch>();
  /** Samples with a computed prompt that wait for room in their batch, in order. */
  #admissible: Admissible[] = [];
  /** Fails a request that is under way. */
  readonly #failures = new Set<(error: unknown) => void>();

  constructor(config: DecoderConfig, snapshot: Snapshot, limits: SamplerLimits) {
    this.#config = config;
    this.#snapshot = snapshot;
    this.#limits = limits;
    this.#prefiller = new Prefiller(config, snapshot, new PromptCache(limits.promptCacheBytes));
  }

  get busy(): boolean {
    return this.#prefiller.busy || this.#admissible.length > 0 || this.#running > 0;
  }

  get #running(): number {
    return [...this.#batches.values()].reduce((total, batch) => total + batch.size, 0);
  }

  /** Queues a request. `onToken`, where given, sees every token as it is chosen. */
  submit(request: RunnableRequest, onToken?: OnToken): RunningRequest {
    const { prompt, settings } = request;
    const room = this.#config.maxPositions - prompt.length;
    const limit = Math.min(settings.maxTokens ?? room, room);
    const seed = settings.seed ?? randomInt(2 ** 47);
    const scores = promptScores({ ...request, temperature: settings.temperature, seed });
    let settle!: (output: SampleOutput) => void;
    let fail!: (error: unknown) => void;
    const result = new Promise<SampleOutput>((resolve, reject) => {
      [settle, fail] = [resolve, reject];
    });
    this.#failures.add(fail);
    let unfinished = request.numSamples;
    let cachedTokens = 0;
    const onEnd = (): void => {
      if (--unfinished > 0) return;
      this.#failures.delete(fail);
      settle({ sequences: samples.map((one) => one.output()), cachedTokens, ...scores.answers });
    };
    const samples = Array.from(
      { length: request.numSamples },
      (_, index) =>
        new Sample({
          settings,
          limit,
          random: new Random("sample", seed, index),
          scores: sequenceScores(request),
          onToken: (token) => onToken?.(index, token),
          onEnd,
        }),
    );
    const job: PromptJob = {
      prompt,
      everyLogprob: scores.wanted,
      cancelled: false,
      onLogprobs: (position, logprobs) => scores.add(position + 1, logprobs),
      onDone: (blocks, known) => {
        cachedTokens = known;
        this.#start(blocks, prompt.length, samples);
      },
    };
    this.#prefiller.add(job);
    return {
      result,
      cancel: () => {
        this.#failures.delete(fail);
        job.cancelled = true;
        for (const sample of samples) sample.cancel();
      },
      stop: (sample, length) => samples[sample]?.stopAt(length),
    };
  }

  /** Does the next piece of work: a block of waiting prompts, then one token of every running sample. If it fails, all requests do. */
  async advance(): Promise<void> {
    try {
      if (this.#prefiller.busy) await this.#prefiller.advance();
      this.#admit();
      for (const [key, batch] of this.#batches) {
        await batch.step();
        if (batch.size === 0) this.#batches.delete(key);
      }
    } catch (error) {
      for (const fail of this.#failures) fail(error);
      throw error;
    }
  }

  #start(blocks: readonly PromptBlock[], length: number, samples: readonly Sample[]): void {
    const { nextLogprobs } = blocks.at(-1)!;
    for (const sample of samples) sample.begin(nextLogprobs!);
    const going = samples.filter((sample) => !sample.ended);
    if (going.length === 0) return;
    this.#admissible.push({ ...batchOf(length, samples.length), blocks, length, samples: going });
  }

  #admit(): void {
    let free = this.#limits.maxBatchRows - this.#running;
    while (free > 0 && this.#admissible.length > 0) {
      const next = this.#admissible[0]!;
      next.samples = next.samples.filter((sample) => !sample.ended);
      const admitted = next.samples.splice(0, free);
      if (next.samples.length === 0) this.#admissible.shift();
      if (admitted.length === 0) continue;
      free -= admitted.length;
      let batch = this.#batches.get(next.key);
      if (!batch) {
        batch = new RunningBatch(this.#config, next.kind, this.#snapshot);
        this.#batches.set(next.key, batch);
      }
      batch.add(next.blocks, next.length, admitted);
    }
  }
}

interface Admissible {
  kind: DecodeKind;
  /** Which batch. */
  key: string;
  blocks: readonly PromptBlock[];
  length: number;
  samples: Sample[];
}

interface SampleTask {
  settings: RunnableRequest["settings"];
  /** The most tokens it may have. */
  limit: number;
  random: Random;
  scores: Scores<SequenceAnswers>;
  onToken: (token: number) => void;
  onEnd: () => void;
}

/** One completion in the making. */
class Sample implements BatchSample {
  readonly #task: SampleTask;
  readonly #tokens: number[] = [];
  readonly #logprobs: number[] = [];
  #reason: "stop" | "length" | undefined;
  #cancelled = false;

  constructor(task: SampleTask) {
    this.#task = task;
  }

  get temperature(): number {
    return this.#task.settings.temperature;
  }

  get lastToken(): number {
    return this.#tokens.at(-1)!;
  }

  get ended(): boolean {
    return this.#cancelled || this.#reason !== undefined;
  }

  /** Chooses the first token, from the prompt's last distribution. */
  begin(logprobs: Float32Array): void {
    if (this.ended) return;
    if (this.#task.limit === 0) this.#end("length");
    else this.accept(tempered(logprobs, this.temperature || 1), logprobs);
  }

  accept(probs: Float32Array, logprobs?: Float32Array): void {
    const { settings, limit, random, scores, onToken } = this.#task;
    const token = settings.temperature === 0 ? argmax(probs) : draw(probs, settings, random);
    const logprob = logprobs ? logprobs[token]! : Math.log(probs[token]!);
    if (!Number.isFinite(logprob)) throw notFinite(logprob);
    this.#tokens.push(token);
    this.#logprobs.push(logprob);
    if (scores.wanted) scores.add(this.#tokens.length - 1, logprobs ?? probs.map(logOf));
    onToken(token);
    if (settings.stopTokens.includes(token)) this.#end("stop");
    else if (this.#tokens.length >= limit) this.#end("length");
  }

  stopAt(length: number): void {
    if (this.ended || length > this.#tokens.length) return;
    this.#tokens.length = length;
    this.#logprobs.length = length;
    this.#end("stop");
  }

  cancel(): void {
    this.#cancelled = true;
  }

  output(): SampledTokens {
    const tokens = Int32Array.from(this.#tokens);
    const logprobs = Float32Array.from(this.#logprobs);
    return cutTo({ stopReason: this.#reason!, tokens, logprobs, ...this.#task.scores.answers }, tokens.length);
  }

  #end(reason: "stop" | "length"): void {
    this.#reason = reason;
    this.#task.onEnd();
  }
}

/** The logarithm of a probability that may have come out as 0. */
const logOf = (probability: number): number => Math.log(Math.max(probability, 1e-45));

function notFinite(logprob: number): EngineError {
  return new EngineError(
    "engine/non-finite-logits",
    `The model gave a token the log-probability ${logprob}: its weights hold infinite or missing numbers. Sample an earlier checkpoint, and train with a smaller learning rate.`,
  );
}
