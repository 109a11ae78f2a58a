// Trains one model. Every training method queues its requests at the call and returns an APIFuture at once, so that
// forwardBackward and optimStep can be submitted back to back.
import type { z } from "zod";
import { untilAborted } from "../core/wait.ts";
import {
  type AdamParams,
  decodeForwardBackwardOutput,
  defaultAdamParams,
  encodeText,
  type ForwardBackwardOutput,
  type GetInfoResponse,
  type LoadWeightsResponse,
  type LossFnConfig,
  type LossName,
  type OperationRoute,
  type OptimStepResponse,
  operationType,
  type Routes,
  routes,
  type SaveWeightsExternalResponse,
  type SaveWeightsResponse,
  submitResponse,
} from "../protocol/index.ts";
import { badResponse, type CallOptions as CallSettings, type Connection, encoded } from "./connection.ts";
import { type CustomLoss, customBackwardData, customForwardData } from "./custom-loss.ts";
import { type DatumInput, type EncodedBatch, encodeBatches } from "./data.ts";
import { APIStatusError, InvalidInputError, ModelLostError, RequestLostError } from "./errors.ts";
import { APIFuture } from "./future.ts";
import { combineOutputs } from "./metrics.ts";
import { poll } from "./poll.ts";
import { openSampler, SamplingClient } from "./sampling-client.ts";
import { Sequencer } from "./sequencer.ts";
import type { Refused } from "./training-encoding.ts";
import type { HttpRequest } from "./transport.ts";

/** Options of a call that starts work. */
export interface CallOptions {
  /** Before the call is sent: it is not. After: only the wait ends, the server's work goes on. */
  signal?: AbortSignal | undefined;
}

/** Options of a pass over data. */
export interface LossOptions extends CallOptions {
  /** E.g. `{ clip_low_threshold: 0.8, clip_high_threshold: 1.2 }`. */
  lossFnConfig?: LossFnConfig | undefined;
}

/** Options of saving weights. */
export interface SaveOptions extends CallOptions {
  /** The checkpoint is deleted after this long. */
  ttlSeconds?: number | undefined;
  /** Kept with the checkpoint and shown in listings. */
  userMetadata?: Readonly<Record<string, string>> | undefined;
}

/** Options for weights that are kept elsewhere. */
export interface ExternalOptions extends Omit<SaveOptions, "userMetadata"> {
  /** Public keys (age1…) that the files are encrypted for; each then has the name NAME.age. At most 10. */
  ageRecipients?: readonly string[] | undefined;
}

/** Options of saving weights with the optimizer's state. */
export interface SaveStateOptions extends SaveOptions {
  /** Replaces a checkpoint of the same name. */
  overwrite?: boolean | undefined;
}

/** Options of loading weights. */
export interface LoadOptions extends CallOptions {
  /** For a checkpoint that another account has shared. */
  weightsAccessToken?: string | undefined;
}

/** A loss name of the protocol, or one that only some servers know. */
export type LossFunction = LossName | (string & {});

/** Operations of one request, in a model's order. */
type SingleOperation = "optimStep" | "saveWeights" | "saveWeightsForSampler" | "saveWeightsExternal" | "loadWeights";

/** An accepted request. */
interface Accepted {
  requestId: string;
  roundTripSeconds: number;
  retried: boolean;
}

/** Trains one model: passes over data, optimizer steps, checkpoints, in the order of the calls. */
export class TrainingClient {
  /** The model at the server. */
  readonly modelId: string;
  readonly #connection: Connection;
  readonly #sequencer = new Sequencer();

  /** Made by ServiceClient. */
  constructor(connection: Connection, modelId: string) {
    this.#connection = connection;
    this.modelId = modelId;
  }

  /** Computes the loss and its outputs; no gradient. */
  forward(
    data: readonly DatumInput[],
    lossFn: LossFunction,
    options: LossOptions = {},
  ): APIFuture<ForwardBackwardOutput> {
    return this.#runBatch("forward", data, lossFn, options, true);
  }

  /** Computes the loss and adds its gradient to what the next optimStep applies. Losses are sums over tokens and data. */
  forwardBackward(
    data: readonly DatumInput[],
    lossFn: LossFunction,
    options: LossOptions = {},
  ): APIFuture<ForwardBackwardOutput> {
    return this.#runBatch("forwardBackward", data, lossFn, options, false);
  }

  /**
   * forwardBackward with a loss of the caller's own: `loss` gets the data and the learner's logprobs of their targets, and returns
   * its value and the gradient with respect to those logprobs. Of the data's inputs only `target_tokens` and `weights` are sent.
   * Calls made after this one wait until its backward pass is submitted. `loss:sum` is the caller's value.
   */
  forwardBackwardCustom<Input extends DatumInput>(
    data: readonly Input[],
    loss: CustomLoss<Input>,
    options: CallOptions = {},
  ): APIFuture<ForwardBackwardOutput> {
    const { signal } = options;
    let metrics: Record<string, number> = {};
    const accepted = this.#sequencer.run("forwardBackwardCustom", async () => {
      const forward = this.#encode(customForwardData(data), "cross_entropy", {}, true);
      const forwarded = await this.#submitBatches("forwardBackwardCustom", await forward, signal);
      const outputs = combineOutputs(await this.#results(forwarded, "forward", signal));
      const { backward, metrics: own } = await customBackwardData(data, outputs, loss);
      metrics = own;
      const batches = await this.#encode(backward, "cross_entropy", {}, false);
      return this.#submitBatches("forwardBackwardCustom", batches, signal);
    });
    const result = accepted.then(async (requests) => {
      const output = combineOutputs(await this.#results(requests, "forwardBackward", signal));
      const { "loss:sum": surrogate, ...others } = output.metrics;
      const own = surrogate === undefined ? {} : { "surrogate_loss:sum": surrogate };
      return { ...output, metrics: { ...others, ...own, ...metrics } };
    });
    return new APIFuture(untilAborted(result, signal), accepted);
  }

  /** Applies the accumulated gradient with AdamW and clears it. What is not given has the protocol's default. */
  optimStep(adamParams: Partial<AdamParams> = {}, options: CallOptions = {}): APIFuture<OptimStepResponse> {
    return this.#runOne("optimStep", "optimStep", { adamParams: { ...defaultAdamParams, ...adamParams } }, options);
  }

  /** Saves weights and optimizer state under `name`, to resume from. The result has the checkpoint's path. */
  saveState(name: string, options: SaveStateOptions = {}): APIFuture<SaveWeightsResponse> {
    const { ttlSeconds, overwrite = false, userMetadata } = options;
    return this.#runOne("saveState", "saveWeights", { path: name, ttlSeconds, overwrite, userMetadata }, options);
  }

  /** Saves weights as files to download; their addresses are asked for with RestClient.getExternalWeightsUrls. */
  saveWeightsExternal(name: string, options: ExternalOptions = {}): APIFuture<SaveWeightsExternalResponse> {
    const { ttlSeconds, ageRecipients } = options;
    const fields = { path: name, ttlSeconds, ageEncryptionRecipients: ageRecipients && [...ageRecipients] };
    return this.#runOne("saveWeightsExternal", "saveWeightsExternal", fields, options);
  }

  /** Loads weights; the optimizer starts anew. Most servers allow it only as a model's first request. */
  loadState(path: string, options: LoadOptions = {}): APIFuture<LoadWeightsResponse> {
    const { weightsAccessToken } = options;
    return this.#runOne("loadState", "loadWeights", { path, optimizer: false, weightsAccessToken }, options);
  }

  /** Loads weights and optimizer state: resumes exactly. Most servers allow it only as a model's first request. */
  loadStateWithOptimizer(path: string, options: LoadOptions = {}): APIFuture<LoadWeightsResponse> {
    const fields = { path, optimizer: true, weightsAccessToken: options.weightsAccessToken };
    return this.#runOne("loadStateWithOptimizer", "loadWeights", fields, options);
  }

  /** Saves weights for sampling and download under `name`. The result has the checkpoint's path. */
  saveWeightsForSampler(name: string, options: SaveOptions = {}): APIFuture<{ path: string }> {
    const { ttlSeconds, userMetadata } = options;
    const fields = { path: name, ttlSeconds, userMetadata };
    const saved = this.#runOne("saveWeightsForSampler", "saveWeightsForSampler", fields, options);
    const result = saved.then(({ path }) => {
      if (path !== undefined) return { path };
      throw badResponse("save_weights_for_sampler", new Error("it has no path."));
    });
    return new APIFuture(result, saved.submitted);
  }

  /** A sampling client over the weights as they are now; later training does not change it. */
  async saveWeightsAndGetSamplingClient(options: CallOptions = {}): Promise<SamplingClient> {
    const samplingSessionSeqId = this.#connection.nextSamplingSeqId();
    const name = "saveWeightsAndGetSamplingClient";
    const saved = await this.#runOne(name, "saveWeightsForSampler", { samplingSessionSeqId }, options);
    if (saved.samplingSessionId !== undefined) return new SamplingClient(this.#connection, saved.samplingSessionId);
    // A server that knows named saves only still gives a path to open.
    if (saved.path !== undefined) return openSampler(this.#connection, { modelPath: saved.path }, options.signal);
    throw badResponse("save_weights_for_sampler", new Error("it has neither a sampling session nor a path."));
  }

  /** A sampling client over weights saved before. */
  createSamplingClient(modelPath: string, options: CallOptions = {}): Promise<SamplingClient> {
    return openSampler(this.#connection, { modelPath }, options.signal);
  }

  /** What the server knows of the model: base model, tokenizer, LoRA rank. */
  async getInfo(options: CallOptions = {}): Promise<GetInfoResponse> {
    const message = { modelId: this.modelId };
    try {
      return await this.#connection.ask(routes.getInfo, { message, signal: options.signal });
    } catch (error) {
      throw this.#explain(error, "getInfo");
    }
  }

  /** Frees the model's place at the server. What was not saved is gone, and every further call fails. */
  async unload({ signal }: CallOptions = {}): Promise<void> {
    const connection = this.#connection;
    const message = { modelId: this.modelId };
    const { requestId } = await connection.ask(routes.unloadModel, { message, signal });
    connection.models.delete(this.modelId);
    await this.#result({ requestId, roundTripSeconds: 0, retried: false }, "unloadModel", signal);
  }

  /** Queues an operation of one request; `name` is what the caller called. */
  #runOne<Name extends SingleOperation>(
    name: string,
    operation: Name,
    fields: Omit<z.output<Routes[Name]["request"]>, "modelId" | "seqId">,
    { signal }: CallOptions,
  ): APIFuture<z.output<Routes[Name]["result"]>> {
    const { path, request }: { path: string; request: z.ZodType } = routes[operation];
    const accepted = this.#sequencer.run(name, async () => {
      signal?.throwIfAborted();
      const seqId = this.#sequencer.take(1);
      const giveBack = () => this.#sequencer.giveBack(seqId);
      const body = encoded(() => encodeText(request, { ...fields, modelId: this.modelId, seqId }), giveBack);
      return this.#submit(name, { method: "POST", path, body }, giveBack);
    });
    const output = accepted.then((request) => this.#result(request, operation, signal));
    return new APIFuture(untilAborted(output, signal), accepted);
  }

  #runBatch(
    name: string,
    data: readonly DatumInput[],
    lossFn: string,
    { lossFnConfig = {}, signal }: LossOptions,
    forwardOnly: boolean,
  ): APIFuture<ForwardBackwardOutput> {
    const batches = this.#encode(data, lossFn, lossFnConfig, forwardOnly);
    const accepted = this.#sequencer.run(name, async () => this.#submitBatches(name, await batches, signal));
    // A batch that cannot be sent is reported by `accepted`, in its turn.
    batches.catch(() => undefined);
    const result = accepted.then(async (requests) =>
      combineOutputs(await this.#results(requests, forwardOnly ? "forward" : "forwardBackward", signal)),
    );
    return new APIFuture(untilAborted(result, signal), accepted);
  }

  async #encode(
    data: readonly DatumInput[],
    lossFn: string,
    lossFnConfig: LossFnConfig,
    forwardOnly: boolean,
  ): Promise<EncodedBatch[]> {
    for (const [key, value] of Object.entries(lossFnConfig))
      if (typeof value === "number" && !Number.isFinite(value))
        throw new InvalidInputError(`lossFnConfig.${key} is ${value}. Pass a finite number. Nothing was sent.`);
    const config = await this.#connection.config();
    const limits = { maxData: config.fwdbwdMaxChunkLen, maxBytes: config.fwdbwdMaxChunkBytesCount };
    const settings = { modelId: this.modelId, lossFn, lossFnConfig, forwardOnly };
    return encodeBatches(data, limits, settings, this.#connection.bodies);
  }

  /** Posts a batch's requests in one turn: the first one last, so that the server has the whole batch when it can start. */
  async #submitBatches(
    name: string,
    batches: readonly EncodedBatch[],
    signal: AbortSignal | undefined,
  ): Promise<Accepted[]> {
    const { parallelFwdbwdChunks } = await this.#connection.config();
    signal?.throwIfAborted();
    const first = this.#sequencer.take(batches.length);
    // Numbers of a batch that was sent in part cannot be used again.
    const refused = batches.length === 1 ? () => this.#sequencer.giveBack(first) : undefined;
    const post = async (batch: EncodedBatch, index: number): Promise<Accepted> => {
      await this.#connection.trainingBytes.take(batch.bytes, this.#connection.closing);
      try {
        const { trainingEncoding } = this.#connection;
        const body = await batch.finish(first + index);
        const accepted = await trainingEncoding.submit(body, refused, (...posted) => this.#submit(name, ...posted));
        // After a retry, an attempt that was given up may still be sending the bytes.
        if (!accepted.retried) batch.release();
        return accepted;
      } finally {
        this.#connection.trainingBytes.give(batch.bytes);
      }
    };
    if (!parallelFwdbwdChunks) {
      const accepted: Accepted[] = [];
      for (const [index, batch] of batches.entries()) accepted.push(await post(batch, index));
      return accepted;
    }
    const later = await settleAll(batches.slice(1).map((batch, index) => () => post(batch, index + 1)));
    return [await post(batches[0]!, 0), ...later];
  }

  /** Posts one training request until it has its id. `refused` is called when the server certainly did not take it. */
  async #submit(
    name: string,
    request: HttpRequest,
    refused: Refused,
    isFinal?: CallSettings["isFinal"],
  ): Promise<Accepted> {
    const started = performance.now();
    let retried = false;
    const onRetry = () => {
      retried = true;
    };
    try {
      const answer = await this.#connection.call(request, { what: name, onRetry, ...(isFinal && { isFinal }) });
      const { requestId } = this.#connection.read(submitResponse, answer, name);
      return { requestId, roundTripSeconds: (performance.now() - started) / 1000, retried };
    } catch (error) {
      const certain = error instanceof APIStatusError && error.status < 500 && error.status !== 408;
      if (certain && !retried) refused?.(error);
      throw this.#explain(error, name);
    }
  }

  #results(
    requests: readonly Accepted[],
    operation: "forward" | "forwardBackward",
    signal: AbortSignal | undefined,
  ): Promise<ForwardBackwardOutput[]> {
    return settleAll(
      requests.map((request) => () => this.#result(request, operation, signal, decodeForwardBackwardOutput)),
    );
  }

  /** Waits for what an accepted request ends with. */
  #result<Name extends OperationRoute>(
    { requestId, roundTripSeconds }: Accepted,
    route: Name,
    signal: AbortSignal | undefined,
    protobuf?: (bytes: Uint8Array) => z.output<Routes[Name]["result"]>,
  ): Promise<z.output<Routes[Name]["result"]>> {
    const operation = operationType(route);
    const lost = (status: number, detail: string) =>
      new RequestLostError(
        `The server accepted ${operation} of ${this.modelId} and then lost it (status ${status}: ${detail}) Whether it was applied is not known, so it is not sent again. Go back to the last checkpoint: createTrainingClientFromStateWithOptimizer(path).`,
        requestId,
      );
    const { result }: { result: z.ZodType } = routes[route];
    return poll(this.#connection, {
      requestId,
      operation,
      queueId: this.modelId,
      roundTripSeconds,
      result: result as z.ZodType<z.output<Routes[Name]["result"]>>,
      protobuf,
      lost,
      signal,
    });
  }

  /** A 404 for our own model means that the server lost it. */
  #explain(error: unknown, name: string): unknown {
    if (!(error instanceof APIStatusError) || error.status !== 404) return error;
    if (name.startsWith("load") && error.serverCode !== "server/unknown-model") return error;
    return new ModelLostError(
      `${name}: the server no longer has model ${this.modelId}; it was restarted, or the session expired. Nothing was applied by this call. Go back to the last checkpoint: createTrainingClientFromStateWithOptimizer(path).`,
      this.modelId,
      { cause: error },
    );
  }
}

/** Runs all tasks at once; when one fails, waits for the others before the failure is raised, so that none runs unobserved. */
async function settleAll<T>(tasks: readonly (() => Promise<T>)[]): Promise<T[]> {
  const outcomes = await Promise.allSettled(tasks.map((task) => task()));
  return outcomes.map((outcome) => {
    if (outcome.status === "rejected") throw outcome.reason;
    return outcome.value;
  });
}
