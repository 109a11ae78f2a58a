// Samples from one frozen set of weights. Any number of calls can be made at once: how many are under way is bounded here, and a
// server that has too many slows all of a session's samples down together.
import { randomInt } from "node:crypto";
import { Limiter } from "../core/limiter.ts";
import { untilAborted } from "../core/wait.ts";
import {
  type ClientConfig,
  decodeSampleResponse,
  defaultSamplingParams,
  encodeSampleRequest,
  estimateInputBytes,
  foldSeed,
  type ModelInput,
  modelInputLength,
  operationType,
  questionsOf,
  routes,
  type SampleQuestions,
  type SampleRequest,
  type SampleResponse,
  type SamplerResponse,
  type SamplingParams,
  type SubmitResponse,
} from "../protocol/index.ts";
import { Connection, encoded } from "./connection.ts";
import { type TokenList, toModelInput } from "./data.ts";
import { APIConnectionError, InvalidInputError, StuckError, statusError, TinkerError } from "./errors.ts";
import { APIFuture } from "./future.ts";
import { type ClientOptions, resolveOptions } from "./options.ts";
import { poll } from "./poll.ts";
import { Attempts, type RetryContext, withRetries } from "./retry.ts";

/** What to sample. */
export interface SampleOptions extends Omit<SampleQuestions, "promptLogprobs"> {
  /** What the completions go on from. */
  prompt: ModelInput | TokenList;
  /** Default 1. */
  numSamples?: number | undefined;
  /** What is not given has the protocol's default: temperature 1, no top-k, no top-p, no stop, no limit but the server's. */
  samplingParams?: Partial<SamplingParams> | undefined;
  /** Also returns the log-probability of every prompt token. */
  includePromptLogprobs?: boolean | undefined;
  /** Stops waiting, and stops asking when the request was not sent yet. */
  signal?: AbortSignal | undefined;
}

/** A sampling client as plain data, for another thread or process. It holds no credential. */
export interface ExportedSamplingClient {
  /** The server's address. */
  baseUrl: string;
  /** The session at the server. */
  samplingSessionId: string;
}

/** The sampler lost a request, which can simply be asked again. */
class LostSampleError extends APIConnectionError {}

/** Numbers of one client's requests; those of its copies start at multiples of this. */
const numbersPerCopy = 1_000_000_000;
/** The largest multiple whose numbers a double holds exactly. */
const largestCopy = 9_000_000;

/** Bytes that one prompt token counts for when it is submitted. */
const bytesPerToken = 10;
/** A server that accepts samples and does not know them afterwards is given up after this many in a row. */
const maxUnknown = 3;

/** Samples from weights that do not change any more. */
export class SamplingClient {
  /** The session at the server. */
  readonly samplingSessionId: string;
  readonly #connection: Connection;
  #nextSeqId = 0;
  /** For a copy: settled when its numbers have a start of their own. */
  #joined: Promise<void> | undefined;
  readonly #isCopy: boolean;
  #limiter: Limiter | undefined;
  #lastProgress = performance.now();
  #active = 0;

  /** Made by ServiceClient and TrainingClient. `isCopy`: over another client's sampler, with a connection of its own. */
  constructor(connection: Connection, samplingSessionId: string, isCopy = false) {
    this.#connection = connection;
    this.samplingSessionId = samplingSessionId;
    this.#isCopy = isCopy;
  }

  /**
   * A client over an exported one's sampler. The session stays its maker's, which must live on. The credential comes from the
   * options or TINKER_API_KEY.
   */
  static fromExport(exported: ExportedSamplingClient, options: Omit<ClientOptions, "baseUrl"> = {}): SamplingClient {
    const connection = new Connection(resolveOptions({ ...options, baseUrl: exported.baseUrl }));
    return new SamplingClient(connection, exported.samplingSessionId, true);
  }

  /** What another process needs to sample from the same weights. */
  export(): ExportedSamplingClient {
    return { baseUrl: this.#connection.options.baseUrl.href, samplingSessionId: this.samplingSessionId };
  }

  /** Samples completions of a prompt. */
  sample(options: SampleOptions): APIFuture<SampleResponse> {
    return new APIFuture(untilAborted(this.#sample(options), options.signal));
  }

  /** The log-probability of every prompt token under the model; null where there is none (the first). */
  computeLogprobs(
    prompt: ModelInput | TokenList,
    options: { signal?: AbortSignal } = {},
  ): APIFuture<(number | null)[]> {
    const result = this.#sample({
      prompt,
      samplingParams: { maxTokens: 1 },
      includePromptLogprobs: true,
      signal: options.signal,
    }).then(({ promptLogprobs }) => {
      if (promptLogprobs) return Array.from(promptLogprobs, (value) => (Number.isNaN(value) ? null : value));
      throw new TinkerError(
        "client/no-prompt-logprobs",
        "The server sent no prompt logprobs. Use a server that supports them, or a forward pass of a training client.",
      );
    });
    return new APIFuture(untilAborted(result, options.signal));
  }

  /** What the server knows of this sampler. */
  getInfo(options: { signal?: AbortSignal } = {}): Promise<SamplerResponse> {
    const parameters = { sampler: this.samplingSessionId };
    return this.#connection.ask(routes.sampler, { parameters, signal: options.signal });
  }

  /** The base model's name. */
  async getBaseModel(options: { signal?: AbortSignal } = {}): Promise<string> {
    return (await this.getInfo(options)).baseModel;
  }

  /** Needed for a client made by `fromExport`; others are closed with their ServiceClient. */
  async close(): Promise<void> {
    if (this.#isCopy) await this.#connection.close();
  }

  async #sample(options: SampleOptions): Promise<SampleResponse> {
    const prompt = toModelInput(options.prompt);
    const { numSamples = 1, signal } = options;
    if (!Number.isInteger(numSamples) || numSamples < 1)
      throw new InvalidInputError(`numSamples is ${numSamples}. Ask for 1 or more samples.`);
    const config = await this.#connection.config();
    if (this.#isCopy) {
      this.#joined ??= this.#join(config);
      await this.#joined;
    }
    this.#limiter ??= new Limiter(config.sampleMaxConcurrentRequests);
    const request: Omit<SampleRequest, "seqId"> = {
      samplingSessionId: this.samplingSessionId,
      numSamples,
      prompt,
      samplingParams: samplingParamsOf(options, config.seedLimit),
      ...questionsOf({ ...options, promptLogprobs: options.includePromptLogprobs }),
    };
    const run = async () => {
      const response = await this.#sampleUntilDone(request, config, signal);
      return alignPromptLogprobs(response, modelInputLength(prompt));
    };
    if (this.#active === 0) this.#lastProgress = performance.now();
    this.#active++;
    try {
      return await this.#limiter.run(run, { signal });
    } finally {
      this.#active--;
    }
  }

  /** Gives this copy's requests numbers that neither the maker's nor another copy's have. */
  async #join(config: ClientConfig): Promise<void> {
    const message = { samplingSessionId: this.samplingSessionId };
    const copy = config.sampleJoinSamplingSession
      ? (await this.#connection.ask(routes.joinSamplingSession, { message })).clientCounter
      : randomInt(1, largestCopy);
    this.#nextSeqId = copy * numbersPerCopy;
  }

  /** Submits and waits, again and again when the request or its result gets lost. */
  async #sampleUntilDone(
    request: Omit<SampleRequest, "seqId">,
    config: ClientConfig,
    signal: AbortSignal | undefined,
  ): Promise<SampleResponse> {
    const onRetry: RetryContext["onRetry"] = (_delayMs, { error }) => this.#checkProgress(error, config);
    const context = { ...this.#connection.retryContext("sample", signal), onRetry };
    const attempts = new Attempts(context, this.#connection.policies.sample);
    let unknown = 0;
    const lost = (status: number, detail: string) => {
      const refused = statusError("retrieve_future (Sample)", status, detail);
      return status === 410 || ++unknown < maxUnknown
        ? new LostSampleError(refused.message, {}, refused.code)
        : refused;
    };
    for (;;) {
      try {
        const response = await this.#sampleOnce({ ...request, seqId: this.#nextSeqId++ }, lost, signal);
        this.#lastProgress = performance.now();
        return response;
      } catch (error) {
        if (config.sampleNoRetries) throw error;
        await attempts.again(error);
      }
    }
  }

  async #sampleOnce(
    request: SampleRequest,
    lost: (status: number, detail: string) => Error,
    signal: AbortSignal | undefined,
  ): Promise<SampleResponse> {
    const started = performance.now();
    const { requestId, sampleSequenceIds } = await this.#submit(request, signal);
    const response = await poll(this.#connection, {
      requestId,
      operation: operationType("sample"),
      queueId: this.samplingSessionId,
      roundTripSeconds: (performance.now() - started) / 1000,
      result: routes.sample.result,
      protobuf: decodeSampleResponse,
      lost,
      signal,
    });
    for (const [index, sequence] of response.sequences.entries())
      if (sampleSequenceIds?.[index] !== undefined) sequence.sequenceId = sampleSequenceIds[index];
    return response;
  }

  /** Posts one sample until it has its id; a server with too many slows this whole session down. */
  async #submit(request: SampleRequest, signal: AbortSignal | undefined): Promise<SubmitResponse> {
    const connection = this.#connection;
    const { sampleGate, closing } = connection;
    const bytes = estimateInputBytes(request.prompt, bytesPerToken);
    let body: string | undefined;
    // An unanswered submit may have arrived: the same bytes, with the same seq_id, are the same request.
    const send = () => {
      body ??= encoded(() => encodeSampleRequest(request));
      const headers = { "X-Tinker-Sampling-Backpressure": "1" };
      return connection.sendOnce({ method: "POST", path: routes.sample.path, body, headers, signal });
    };
    const onRetry: RetryContext["onRetry"] = (delayMs, { status }) => {
      if (status === 429) sampleGate.backOff(delayMs);
    };
    const answer = await withRetries(
      () => sampleGate.run(bytes, send, signal, closing),
      connection.policies.submitSample(bytes),
      { ...connection.retryContext("sample", signal), onRetry },
    );
    return connection.read(routes.sample.response, answer, "sample");
  }

  /** Gives up when nothing of this client has come back for a long time. */
  #checkProgress(error: unknown, { sampleEnableStuckDetection }: ClientConfig): void {
    const silentMs = performance.now() - this.#lastProgress;
    if (!sampleEnableStuckDetection || silentMs <= this.#connection.options.timings.stuckMs) return;
    throw new StuckError(
      `No sample of ${this.samplingSessionId} has finished for ${Math.round(silentMs / 1000)} s; the last problem: ${(error as Error).message}`,
      { cause: error },
    );
  }
}

/** Opens a sampler over a base model or saved weights. */
export async function openSampler(
  connection: Connection,
  source: { modelPath?: string | undefined; baseModel?: string | undefined },
  signal: AbortSignal | undefined,
): Promise<SamplingClient> {
  const { modelPath, baseModel } = source;
  if (modelPath === undefined && baseModel === undefined)
    throw new InvalidInputError("A sampling client needs modelPath or baseModel. Pass one of them.");
  if (modelPath !== undefined && !modelPath.startsWith("tinker://"))
    throw new InvalidInputError(
      `modelPath "${modelPath}" is not a checkpoint address. Pass tinker://RUN_ID/sampler_weights/NAME, as saveWeightsForSampler returned it.`,
    );
  const sessionId = await untilAborted(connection.session(), signal);
  const message = {
    sessionId,
    samplingSessionSeqId: connection.nextSamplingSeqId(),
    modelPath,
    baseModel,
  };
  const { samplingSessionId } = await connection.ask(routes.createSamplingSession, { message, signal });
  return new SamplingClient(connection, samplingSessionId);
}

/** With the protocol's defaults. One stop string is sent as a list of one, which every server takes. */
function samplingParamsOf({ samplingParams = {} }: SampleOptions, seedLimit: number): SamplingParams {
  const params = { ...defaultSamplingParams, ...samplingParams };
  return {
    ...params,
    ...(typeof params.stop === "string" && { stop: [params.stop] }),
    ...(params.seed !== undefined && { seed: toSeed(params.seed, seedLimit) }),
  };
}

/** A seed that the server can take: as it is, or brought below the server's limit. */
function toSeed(seed: number | bigint, limit: number): number {
  if (typeof seed === "bigint" || Number.isInteger(seed)) return foldSeed(seed, limit);
  throw new InvalidInputError(`The seed is ${seed}. Pass a whole number. Nothing was sent.`);
}

/** SkyRL leaves out the first prompt token, which has no log-probability; here every prompt token has an entry. */
function alignPromptLogprobs(response: SampleResponse, promptLength: number | undefined): SampleResponse {
  const { promptLogprobs } = response;
  if (!promptLogprobs || promptLogprobs.length + 1 !== promptLength) return response;
  const aligned = new Float32Array(promptLength);
  aligned[0] = Number.NaN;
  aligned.set(promptLogprobs, 1);
  return { ...response, promptLogprobs: aligned };
}
