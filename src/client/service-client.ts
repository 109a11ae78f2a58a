// The entry: makes training, sampling and REST clients, which share its connections, session and heartbeat.
import type { z } from "zod";
import { untilAborted } from "../core/wait.ts";
import {
  encodeText,
  type LoraConfig,
  operationType,
  type Routes,
  routes,
  type ServerCapabilities,
  submitResponse,
} from "../protocol/index.ts";
import { Connection, encoded } from "./connection.ts";
import { InvalidInputError, RequestLostError } from "./errors.ts";
import { type ClientOptions, resolveOptions } from "./options.ts";
import { poll } from "./poll.ts";
import { RestClient } from "./rest-client.ts";
import { openSampler, type SamplingClient } from "./sampling-client.ts";
import { TrainingClient } from "./training-client.ts";

/** Which adapter to train. */
export interface LoraOptions {
  /** The model, by the name that the server offers. */
  baseModel: string;
  /** Default 32. */
  rank?: number | undefined;
  /** Of the adapter's first weights. */
  seed?: number | undefined;
  /** Which layers get an adapter; all by default. */
  trainMlp?: boolean | undefined;
  /** Whether the attention layers have an adapter. */
  trainAttn?: boolean | undefined;
  /** Whether the output layer has an adapter. */
  trainUnembed?: boolean | undefined;
  /** Kept with the run. */
  userMetadata?: Readonly<Record<string, unknown>> | undefined;
  /** Gives up. */
  signal?: AbortSignal | undefined;
}

/** Options of a training client that starts from a checkpoint. */
export interface FromStateOptions {
  /** Default: the checkpoint's own. */
  baseModel?: string | undefined;
  /** Kept with the run at the server. */
  userMetadata?: Readonly<Record<string, unknown>> | undefined;
  /** For a checkpoint that another account has shared. */
  weightsAccessToken?: string | undefined;
  /** Gives up. */
  signal?: AbortSignal | undefined;
}

/** A connection to a Tinker server: makes the clients that train, sample and look around. */
export class ServiceClient {
  readonly #options: ClientOptions;
  readonly #connection: Connection;

  /** Sends nothing yet. Throws when there is no usable API key or URL. */
  constructor(options: ClientOptions = {}) {
    this.#options = options;
    this.#connection = new Connection(resolveOptions(options));
  }

  /** The server's address. */
  get baseUrl(): string {
    return this.#connection.options.baseUrl.href;
  }

  /** The models the server offers. */
  getServerCapabilities(options: { signal?: AbortSignal } = {}): Promise<ServerCapabilities> {
    return this.#connection.ask(routes.serverCapabilities, { signal: options.signal });
  }

  /** Makes a fresh LoRA adapter on a base model and waits until it is there. */
  createLoraTrainingClient(options: LoraOptions): Promise<TrainingClient> {
    const { baseModel, rank = 32, seed, trainMlp = true, trainAttn = true, trainUnembed = true } = options;
    if (!trainMlp && !trainAttn && !trainUnembed)
      throw new InvalidInputError(
        "Nothing would be trained. Leave at least one of trainMlp, trainAttn, trainUnembed on.",
      );
    return this.#createModel({ rank, seed, trainMlp, trainAttn, trainUnembed }, baseModel, options);
  }

  /** Resumes from a training checkpoint's weights; the optimizer starts anew. */
  createTrainingClientFromState(path: string, options: FromStateOptions = {}): Promise<TrainingClient> {
    return this.#fromState(path, false, options);
  }

  /** Resumes from a training checkpoint with its optimizer state. */
  createTrainingClientFromStateWithOptimizer(path: string, options: FromStateOptions = {}): Promise<TrainingClient> {
    return this.#fromState(path, true, options);
  }

  /** Samples from a base model, or from weights saved for sampling. */
  createSamplingClient(source: {
    modelPath?: string | undefined;
    baseModel?: string | undefined;
    signal?: AbortSignal | undefined;
  }): Promise<SamplingClient> {
    return openSampler(this.#connection, source, source.signal);
  }

  /** A client for what lies at the server. */
  createRestClient(): RestClient {
    return new RestClient(this.#connection);
  }

  /**
   * Ends the session: heartbeats stop, the server lets go of the session's models, connections close, and what is still awaited fails
   * with `client/closed`. Await your results first.
   */
  close(): Promise<void> {
    return this.#connection.close();
  }

  #createModel(
    loraConfig: LoraConfig,
    baseModel: string,
    { userMetadata, signal }: Pick<LoraOptions, "userMetadata" | "signal">,
  ): Promise<TrainingClient> {
    const fields = { baseModel, userMetadata, loraConfig, optimizerConfig: { type: "adamw" } };
    return this.#newModel("createModel", fields, signal);
  }

  /** Has the server make a model, and waits until it is there. */
  async #newModel<Name extends "createModel" | "loadWeights">(
    name: Name,
    fields: Omit<z.output<Routes[Name]["request"]>, "sessionId" | "modelSeqId">,
    signal: AbortSignal | undefined,
  ): Promise<TrainingClient> {
    const connection = this.#connection;
    const sessionId = await untilAborted(connection.session(), signal);
    const modelSeqId = connection.nextModelSeqId();
    const { path, request }: { path: string; request: z.ZodType } = routes[name];
    const result: z.ZodType<{ modelId?: string | undefined }> = routes[name].result;
    const body = encoded(() => encodeText(request, { ...fields, sessionId, modelSeqId }));
    const answer = await connection.call({ method: "POST", path, body, signal }, { policy: connection.policies.start });
    const operation = operationType(name);
    const { requestId } = connection.read(submitResponse, answer, operation);
    const { modelId = `${sessionId}:train:${modelSeqId}` } = await poll(connection, {
      requestId,
      operation,
      queueId: sessionId,
      result,
      lost: (status, detail) =>
        new RequestLostError(
          `The server lost a request while the model was being made (status ${status}: ${detail}) Nothing was trained yet; make the training client again.`,
          requestId,
        ),
      signal,
    });
    connection.models.add(modelId);
    return new TrainingClient(connection, modelId);
  }

  async #fromState(path: string, optimizer: boolean, options: FromStateOptions): Promise<TrainingClient> {
    const { signal, weightsAccessToken } = options;
    const config = await untilAborted(this.#connection.config(), signal);
    if (config.createModelViaLoadWeights) {
      // One request instead of three.
      const { baseModel, userMetadata } = options;
      return this.#newModel("loadWeights", { path, optimizer, baseModel, userMetadata, weightsAccessToken }, signal);
    }
    const info = await this.#weightsInfo(path, options);
    if (info.loraRank === undefined && info.isLora)
      throw new InvalidInputError(`The server does not say the LoRA rank of ${path}. It cannot be resumed from there.`);
    const training = await this.#createModel(
      {
        rank: info.loraRank ?? 0,
        trainMlp: info.trainMlp ?? true,
        trainAttn: info.trainAttn ?? true,
        trainUnembed: info.trainUnembed ?? true,
      },
      options.baseModel ?? info.baseModel,
      options,
    );
    const load = { weightsAccessToken, signal };
    await (optimizer ? training.loadStateWithOptimizer(path, load) : training.loadState(path, load));
    return training;
  }

  /** What a checkpoint was trained on; with an access token, asked under that token. */
  async #weightsInfo(path: string, { weightsAccessToken, signal }: FromStateOptions) {
    if (weightsAccessToken === undefined) return this.createRestClient().getWeightsInfoByTinkerPath(path, { signal });
    const borrowed = new Connection(resolveOptions({ ...this.#options, apiKey: weightsAccessToken }));
    try {
      return await new RestClient(borrowed).getWeightsInfoByTinkerPath(path, { signal });
    } finally {
      await borrowed.close();
    }
  }
}
