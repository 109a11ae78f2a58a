// Samples from one frozen set of weights. Any number of calls can be made at once: how many are under way is bounded here, and a
// server that has too many slows all of a session's samples down together.
import { randomInt } from "node:crypto";
import { Limiter } from "../core/limiter.ts";
import {
  type ClientConfig,
  createSamplingSessionRequest,
  createSamplingSessionResponse,
  decode,
  decodeSampleResponse,
  defaultSamplingParams,
  encodeSampleRequest,
  encodeText,
  type ModelInput,
  modelInputLength,
  routes,
  type SampleRequest,
  type SampleResponse,
  type SamplerResponse,
  type SamplingParams,
  sampleResponse,
  samplerResponse,
  submitResponse,
} from "../protocol/index.ts";
import { Connection } from "./connection.ts";
import { type TokenList, toModelInput } from "./data.ts";
import {
  APIConnectionError,
  APIStatusError,
  InvalidInputError,
  StuckError,
  statusError,
  TinkerError,
} from "./errors.ts";
import { APIFuture } from "./future.ts";
import { type ClientOptions, resolveOptions } from "./options.ts";
import { poll } from "./poll.ts";
import { backoff, retryAfter } from "./retry.ts";
import { textOf } from "./transport.ts";
import { sleep, untilAborted } from "./wait.ts";

export interface SampleOptions {
  prompt: ModelInput | TokenList;
  /** Default 1. */
  numSamples?: number | undefined;
  /** What is not given has the protocol's default: temperature 1, no top-k, no top-p, no stop, no limit but the server's. */
  samplingParams?: Partial<SamplingParams> | undefined;
  /** Also returns the log-probability of every prompt token. */
  includePromptLogprobs?: boolean | undefined;
  /** Also returns the k likeliest tokens at every prompt position. */
  topkPromptLogprobs?: number | undefined;
  /** Stops waiting, and stops asking when the request was not sent yet. */
  signal?: AbortSignal | undefined;
}

/** A sampling client as plain data, for another thread or process. It holds no credential. */
export interface ExportedSamplingClient {
  baseUrl: string;
  samplingSessionId: string;
}

/** The sampler lost a request, which can simply be asked again. */
class LostSampleError extends TinkerError {}

/** Bytes that one prompt token counts for when it is submitted. */
const bytesPerToken = 10;
const largePromptBytes = 131_072;
/** A server that accepts samples and does not know them afterwards is given up after this many in a row. */
const maxUnknown = 3;

export class SamplingClient {
  readonly samplingSessionId: string;
  readonly #connection: Connection;
  readonly #ownsConnection: boolean;
  #nextSeqId: number;
  #limiter: Limiter | undefined;
  #lastProgress = performance.now();
  #active = 0;

  /** Made by ServiceClient and TrainingClient. */
  constructor(connection: Connection, samplingSessionId: string, seqStart = 0, ownsConnection = false) {
    this.#connection = connection;
    this.samplingSessionId = samplingSessionId;
    this.#nextSeqId = seqStart;
    this.#ownsConnection = ownsConnection;
  }

  /**
   * A client over an exported one's sampler. The session stays its maker's, which must live on. The credential comes from the
   * options or TINKER_API_KEY.
   */
  static fromExport(exported: ExportedSamplingClient, options: Omit<ClientOptions, "baseUrl"> = {}): SamplingClient {
    const connection = new Connection(resolveOptions({ ...options, baseUrl: exported.baseUrl }));
    // Far apart from the numbers of the maker and of other copies, which identify requests.
    const seqStart = randomInt(1, 9_000_000) * 1_000_000_000;
    return new SamplingClient(connection, exported.samplingSessionId, seqStart, true);
  }

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
    return this.#connection.json(samplerResponse, {
      method: "GET",
      path: `${routes.samplers}/${this.samplingSessionId}`,
      signal: options.signal,
    });
  }

  /** The base model's name. */
  async getBaseModel(options: { signal?: AbortSignal } = {}): Promise<string> {
    return (await this.getInfo(options)).baseModel;
  }

  /** Needed for a client made by `fromExport`; others are closed with their ServiceClient. */
  async close(): Promise<void> {
    if (this.#ownsConnection) await this.#connection.close();
  }

  async #sample(options: SampleOptions): Promise<SampleResponse> {
    const prompt = toModelInput(options.prompt);
    const { numSamples = 1, signal } = options;
    if (!Number.isInteger(numSamples) || numSamples < 1)
      throw new InvalidInputError(`numSamples is ${numSamples}. Ask for 1 or more samples.`);
    const config = await this.#connection.config();
    this.#limiter ??= new Limiter(config.sampleMaxConcurrentRequests);
    const run = async () => {
      const response = await this.#sampleUntilDone(prompt, numSamples, options, config);
      return alignPromptLogprobs(response, modelInputLength(prompt));
    };
    if (this.#active === 0) this.#lastProgress = performance.now();
    this.#active++;
    try {
      return await this.#limiter.run(run, signal);
    } finally {
      this.#active--;
    }
  }

  /** Submits and waits, again and again when the request or its result gets lost. */
  async #sampleUntilDone(
    prompt: ModelInput,
    numSamples: number,
    options: SampleOptions,
    config: ClientConfig,
  ): Promise<SampleResponse> {
    const { timings } = this.#connection.options;
    let unknown = 0;
    for (let attempt = 0; ; attempt++) {
      const seqId = this.#nextSeqId++;
      try {
        const request: SampleRequest = {
          type: "sample",
          samplingSessionId: this.samplingSessionId,
          seqId,
          numSamples,
          prompt,
          samplingParams: samplingParamsOf(options),
          promptLogprobs: options.includePromptLogprobs ?? false,
          topkPromptLogprobs: options.topkPromptLogprobs ?? 0,
        };
        const started = performance.now();
        const requestId = await this.#submit(request, options.signal);
        const response = await poll(this.#connection, {
          requestId,
          operation: "Sample",
          queueId: this.samplingSessionId,
          roundTripSeconds: (performance.now() - started) / 1000,
          json: (json) => decode(sampleResponse, json),
          protobuf: decodeSampleResponse,
          lost: (status, detail) => {
            const refused = statusError("retrieve_future (Sample)", status, detail);
            return status === 410 || ++unknown < maxUnknown
              ? new LostSampleError(refused.code, refused.message)
              : refused;
          },
          signal: options.signal,
        });
        this.#lastProgress = performance.now();
        return response;
      } catch (error) {
        if (config.sampleNoRetries || !isRetryable(error)) throw error;
        const silentMs = performance.now() - this.#lastProgress;
        if (config.sampleEnableStuckDetection && silentMs > timings.stuckMs)
          throw new StuckError(
            `No sample of ${this.samplingSessionId} has finished for ${Math.round(silentMs / 1000)} s; the last problem: ${(error as Error).message}`,
            { cause: error },
          );
        const jitter = 0.75 + Math.random() / 2;
        const delay = backoff(attempt, timings.retryBaseMs, timings.retryMaxMs) * jitter;
        await sleep(delay, options.signal, this.#connection.closing);
      }
    }
  }

  /** Posts one sample until it has its id; a server with too many slows this whole session down. */
  async #submit(request: SampleRequest, signal: AbortSignal | undefined): Promise<string> {
    const connection = this.#connection;
    const { timings } = connection.options;
    const bytes = estimateBytes(request.prompt);
    let body: string | undefined;
    for (let attempt = 0; ; attempt++) {
      const send = () => {
        body ??= encodeSampleRequest(request);
        return connection.sendOnce({
          method: "POST",
          path: routes.sample,
          body,
          headers: { "X-Tinker-Sampling-Backpressure": "1" },
          signal,
        });
      };
      // An unanswered submit may have arrived: the same bytes, with the same seq_id, are the same request.
      let answer: Awaited<ReturnType<typeof send>>;
      try {
        answer = await connection.sampleGate.run(bytes, send, signal, connection.closing);
      } catch (error) {
        if (!(error instanceof APIConnectionError) || attempt >= 2) throw error;
        await sleep(backoff(attempt, timings.retryBaseMs, timings.retryMaxMs), signal, connection.closing);
        continue;
      }
      if (answer.status < 400) return connection.read(submitResponse, answer, "sample").requestId;
      const error = statusError("sample", answer.status, textOf(answer));
      if (answer.status === 429) {
        const usual = bytes > largePromptBytes ? timings.backpressureLargeMs : timings.backpressureMs;
        const holdMs = retryAfter(answer, timings.retryAfterMaxMs) ?? usual;
        connection.sampleGate.backOff(holdMs);
        await sleep(holdMs, signal, connection.closing);
      } else if (answer.status === 402) await connection.billing.wait(error, [signal, connection.closing]);
      else throw error;
    }
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
  const body = encodeText(createSamplingSessionRequest, {
    type: "create_sampling_session",
    sessionId,
    samplingSessionSeqId: connection.nextSamplingSeqId(),
    modelPath,
    baseModel,
  });
  const { samplingSessionId } = await connection.json(
    createSamplingSessionResponse,
    { method: "POST", path: routes.createSamplingSession, body, signal },
    { policy: connection.shortPolicy },
  );
  return new SamplingClient(connection, samplingSessionId);
}

function isRetryable(error: unknown): boolean {
  if (error instanceof LostSampleError || error instanceof APIConnectionError) return true;
  return error instanceof APIStatusError && (error.status >= 500 || [408, 409, 429].includes(error.status));
}

/** With the protocol's defaults. One stop string is sent as a list of one, which every server takes. */
function samplingParamsOf({ samplingParams = {} }: SampleOptions): SamplingParams {
  const params = { ...defaultSamplingParams, ...samplingParams };
  return typeof params.stop === "string" ? { ...params, stop: [params.stop] } : params;
}

function estimateBytes(prompt: ModelInput): number {
  let bytes = 0;
  for (const chunk of prompt.chunks) {
    if (chunk.type === "encoded_text") bytes += bytesPerToken * chunk.tokens.length;
    else if (chunk.type === "image") bytes += chunk.data.length;
    else if (chunk.type === "dmel") bytes += chunk.dmel.length;
    else bytes += chunk.location.length;
  }
  return bytes;
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
