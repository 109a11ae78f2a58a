// Models in training: creates them, takes their requests in sequence order, recognises repeats, and keeps count of what was
// applied. Knows nothing of HTTP.
import { rm } from "node:fs/promises";
import { join } from "node:path";
import type { z } from "zod";
import { Recent } from "../core/recent.ts";
import type { AdamSettings, LoraSpec, TrainingBatch } from "../engine/engine.ts";
import {
  type CheckpointKind,
  encode,
  type ForwardBackwardOutput,
  formatTinkerPath,
  metricReduction,
  type OperationRoute,
  parseTinkerPath,
  type Routes,
  routes,
  snake,
} from "../protocol/index.ts";
import { encryptFile, type Recipient } from "./age.ts";
import type { App } from "./app.ts";
import { filesBelow } from "./archive.ts";
import type { CheckpointRecord } from "./checkpoints.ts";
import { badRequest, type NumberedRequest, numberReused, ServerError, shuttingDown } from "./errors.ts";
import type { Operation, Result } from "./operations.ts";
import type { ModelRecord } from "./registry.ts";
import { SequenceQueue } from "./sequence.ts";
import { lost, requireFit, requireTrainingPath, unloaded } from "./training-refusals.ts";

/** A model that the engine holds. */
interface LiveModel {
  record: ModelRecord;
  queue: SequenceQueue;
  /** What became of each sequence number; repeats of those further back are refused instead of recognised. */
  requests: Recent<number, { fingerprint: string; operation: Operation }>;
  pending: Set<Operation>;
  creation: Operation;
}

/** One training request, ready to run when its turn comes. */
export interface TrainingRequest {
  modelId: string;
  /** undefined: in the order of arrival. */
  sequence: number | undefined;
  /** Equal for a repeat of the same request, different for another one. */
  fingerprint: string;
  /** What it holds in memory while it waits. */
  bytes: number;
}

export interface SaveRequest {
  kind: CheckpointKind;
  name: string;
  ttlSeconds: number | undefined;
  overwrite?: boolean;
  userMetadata?: Readonly<Record<string, string>> | undefined;
  /** Whom the files are encrypted for; nobody: they are not. */
  recipients?: readonly Recipient[];
}

/** A checkpoint that a new model is made from. */
interface StartingPoint {
  checkpoint: CheckpointRecord;
  optimizer: boolean;
}

const rememberedRequests = 4096;

export class Training {
  readonly #app: App;
  readonly #live = new Map<string, LiveModel>();

  constructor(app: App) {
    this.#app = app;
  }

  /** Creates a model, or finds the one made with the same numbers. `load`: a checkpoint to start from. */
  createModel(
    request: Pick<ModelRecord, "sessionId" | "sequence" | "baseModel" | "lora" | "userMetadata">,
    load?: StartingPoint,
  ): { operation: Operation; modelId: string } {
    const { registry, operations } = this.#app;
    const { sessionId, sequence, ...fields } = request;
    this.#app.modelInfo(fields.baseModel);
    operations.admit(0);
    if (this.#live.size >= this.#app.settings.maxModels && !this.#live.has(`${sessionId}:train:${sequence}`))
      throw badRequest(
        "server/model-limit",
        `${this.#live.size} models are loaded, as many as max_models allows. Unload one, or let an unused session end.`,
      );
    const { record, created } = registry.createModel(sessionId, sequence, fields);
    if (!created && (record.baseModel !== fields.baseModel || !sameLora(record.lora, fields.lora)))
      throw numberReused(`model_seq_id ${sequence} of this session is model ${record.id}, made differently.`);
    return { operation: this.#open(record, load).creation, modelId: record.id };
  }

  forwardBackward(request: TrainingRequest, batch: TrainingBatch): Operation {
    return this.#submit(request, async (record) => {
      const output = await this.#app.engine.forwardBackward(record.id, batch);
      for (const name of Object.keys(output.metrics)) metricReduction(name);
      const result: ForwardBackwardOutput = {
        lossFnOutputType: "ArrayRecord",
        lossFnOutputs: output.logprobs.map(({ data, shape }) => ({
          logprobs: { dtype: "float32", data: data as Float32Array, shape },
        })),
        metrics: { ...output.metrics },
      };
      return { kind: "training", output: result };
    });
  }

  optimStep(request: TrainingRequest, adam: AdamSettings): Operation {
    return this.#submit(request, async (record) => {
      const metrics = await this.#app.engine.optimStep(record.id, adam);
      this.#recordStep(record, request.sequence ?? record.lastAppliedSequence);
      return result("optimStep", { metrics: { ...metrics } });
    });
  }

  /** Saves under a name: training state, weights for sampling, or files to download. */
  save(request: TrainingRequest, options: SaveRequest): Operation {
    const { kind, name, recipients = [], userMetadata, ttlSeconds, overwrite = false } = options;
    return this.#submit(request, async (record) => {
      const { engine, checkpoints } = this.#app;
      const fields = { runId: record.id, baseModel: record.baseModel, lora: record.lora, kind, name, userMetadata };
      const saved = await checkpoints.save(fields, { overwrite, ttlSeconds }, async (dir) => {
        if (kind === "training") return engine.saveState(record.id, dir);
        await engine.saveForSampler(record.id, dir);
        if (recipients.length > 0) await encryptFolder(dir, recipients);
      });
      const path = formatTinkerPath(record.id, kind, name);
      if (kind === "external") return result("saveWeightsExternal", { path, sizeBytes: saved.sizeBytes });
      return result(kind === "training" ? "saveWeights" : "saveWeightsForSampler", { path });
    });
  }

  /** An unnamed snapshot, opened for sampling at once. */
  snapshotForSampler(request: TrainingRequest, samplerSequence: number): Operation {
    return this.#submit(request, async (record) => {
      const samplingSessionId = await this.#app.samplers.snapshot(record, samplerSequence);
      return result("saveWeightsForSampler", { samplingSessionId });
    });
  }

  loadWeights(request: TrainingRequest, options: { path: string; optimizer: boolean }): Operation {
    const path = parseTinkerPath(options.path);
    return this.#submit(request, async (record) => {
      const { engine, checkpoints } = this.#app;
      const checkpoint = checkpoints.get(requireTrainingPath(path, options.path));
      requireFit(record, checkpoint, options.path);
      await engine.loadState(record.id, checkpoints.filesDir(checkpoint), { optimizer: options.optimizer });
      return result("loadWeights", { path: options.path, modelId: record.id });
    });
  }

  unload(modelId: string): Operation {
    const { operations, registry } = this.#app;
    const record = registry.model(modelId);
    operations.admit(0);
    const operation = operations.begin(0);
    void operations.settle(operation, async () => {
      await this.drop(record);
      return result("unloadModel", { modelId });
    });
    return operation;
  }

  /** No further requests will come: what waits for a number that never will is failed, the rest runs. */
  drain(): void {
    for (const live of this.#live.values())
      live.queue.drain(() => {
        for (const operation of live.pending) this.#app.operations.futures.fail(operation, shuttingDown());
      });
  }

  /** Lets go of every queue and its timers. */
  close(): void {
    for (const live of this.#live.values()) void live.queue.close();
  }

  /** Frees a model. What waits for it fails; what runs is waited for. */
  async drop(record: ModelRecord): Promise<void> {
    const live = this.#live.get(record.id);
    this.#live.delete(record.id);
    if (record.state === "live") this.#app.registry.markUnloaded(record);
    if (!live) return;
    const ended = live.queue.close();
    for (const operation of live.pending) this.#app.operations.futures.fail(operation, unloaded(record));
    await ended;
    await this.#app.engine.unloadModel(record.id);
  }

  /** Uses up the sequence number of a request that was refused, so that the ones behind it do not wait for it. */
  refuse({ modelId, sequence }: NumberedRequest, refusal: ServerError): void {
    const record = this.#app.registry.findModel(modelId);
    if (record?.state !== "live" || refusal.status === 429 || refusal.status >= 500) return;
    const live = this.#open(record);
    if (!live.requests.has(sequence)) live.queue.refuse(sequence);
  }

  #recordStep(record: ModelRecord, sequence: number): void {
    try {
      this.#app.registry.recordStep(record, sequence);
    } catch (error) {
      // The step is applied. To call it failed because the journal is full would make the client apply it again.
      if (!(error instanceof ServerError && error.code === "server/disk")) throw error;
      record.appliedSteps++;
      record.lastAppliedSequence = sequence;
      this.#app.settings.log(
        `step ${record.appliedSteps} of ${record.id} is applied but not on record: ${error.message}`,
      );
    }
  }

  #submit(request: TrainingRequest, work: (record: ModelRecord) => Promise<Result>): Operation {
    const { registry, operations } = this.#app;
    const record = registry.model(request.modelId);
    const live = this.#open(record);
    const { sequence, fingerprint, bytes } = request;
    const known = sequence === undefined ? undefined : live.requests.get(sequence);
    if (known) {
      if (known.fingerprint === fingerprint) return known.operation;
      throw numberReused(`seq_id ${sequence} of model ${record.id} was another request.`);
    }
    if (sequence !== undefined) live.queue.check(sequence);
    operations.admit(bytes, sequence === live.queue.next);
    registry.touch(record);
    const operation = operations.begin(bytes);
    if (sequence !== undefined) live.requests.set(sequence, { fingerprint, operation });
    live.pending.add(operation);
    live.queue.add(sequence, async () => {
      await operations.settle(operation, () => work(record));
      live.pending.delete(operation);
    });
    return operation;
  }

  /** The model in the engine, made there if it is not yet: after its creation, or after a restart that lost nothing. */
  #open(record: ModelRecord, load?: StartingPoint): LiveModel {
    const known = this.#live.get(record.id);
    if (known) return known;
    if (record.state === "lost") throw lost(record);
    if (record.state === "unloaded") throw unloaded(record);
    const { engine, operations, checkpoints, registry, settings } = this.#app;
    const { gapLimitMs, log } = settings;
    const queue = new SequenceQueue(gapLimitMs, (from, to) =>
      log(
        `model ${record.id}: passed over seq_id ${from}${to > from ? ` to ${to}` : ""}, missing for ${gapLimitMs} ms`,
      ),
    );
    const creation = operations.begin(0);
    const live: LiveModel = { record, queue, requests: new Recent(rememberedRequests), pending: new Set(), creation };
    this.#live.set(record.id, live);
    queue.add(undefined, () =>
      operations.settle(creation, async () => {
        try {
          await engine.createModel(record.id, { baseModel: record.baseModel, lora: record.lora });
          if (load) {
            registry.touch(record);
            await engine.loadState(record.id, checkpoints.filesDir(load.checkpoint), { optimizer: load.optimizer });
          }
        } catch (error) {
          // A model that never came to be takes no requests.
          this.#live.delete(record.id);
          registry.markUnloaded(record);
          throw error;
        }
        return result("createModel", { modelId: record.id });
      }),
    );
    return live;
  }
}

/** What an operation ends with, named after it. */
const result = <Name extends OperationRoute>(name: Name, value: z.output<Routes[Name]["result"]>): Result => ({
  kind: "json",
  body: encode<z.ZodType>(routes[name].result, { ...value, type: snake(name) }) as Readonly<Record<string, unknown>>,
});

/** Two LoRA settings that make the same adapter. */
const sameLora = (a: LoraSpec, b: LoraSpec) =>
  (["rank", "seed", "trainAttn", "trainMlp", "trainUnembed"] as const).every((key) => a[key] === b[key]);

async function encryptFolder(dir: string, recipients: readonly Recipient[]): Promise<void> {
  for (const name of await filesBelow(dir)) {
    await encryptFile(join(dir, name), join(dir, `${name}.age`), recipients);
    await rm(join(dir, name));
  }
}
