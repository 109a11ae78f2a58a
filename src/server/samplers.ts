// Samplers: frozen weights to sample from. Those with a source on disk (a base model, a saved checkpoint) are opened in the engine
// when they are used and may be closed when others need the room; an unnamed snapshot exists in the engine only.
import { Recent } from "../core/recent.ts";
import type { SampleOutput, SampleRequest, SamplerSource } from "../engine/engine.ts";
import { parseTinkerPath } from "../protocol/index.ts";
import type { App } from "./app.ts";
import { badRequest, numberReused, ServerError } from "./errors.ts";
import type { Operation } from "./operations.ts";
import type { ModelRecord, SamplerRecord } from "./registry.ts";

interface OpenSampler {
  /** Its name in the engine, new for every opening: one that is being closed and one that is being opened never meet. */
  engineId: string;
  ready: Promise<void>;
  /** Samples under way. */
  active: number;
}

/** What a request says to sample from: one of the two. */
interface WeightsName {
  baseModel?: string | undefined;
  modelPath?: string | undefined;
}

/** Repeats of samples further back than this count as new: sampling again changes nothing. */
const rememberedSamples = 16_384;

export class Samplers {
  readonly #app: App;
  /** Least recently used first. */
  readonly #open = new Map<string, OpenSampler>();
  #openings = 0;
  readonly #requests = new Recent<string, { fingerprint: string; operation: Operation }>(rememberedSamples);
  /** Samples under way, ended when the App closes, or by their client. */
  readonly #underWay = new Set<AbortController>();
  /** How many copies of its client a sampler has. */
  readonly #copies = new Map<string, number>();

  constructor(app: App) {
    this.#app = app;
    app.ended.addEventListener("abort", () => {
      for (const controller of this.#underWay) controller.abort(app.ended.reason);
    });
  }

  /** A sampling session over a base model or a saved checkpoint. */
  create(sessionId: string, sequence: number, source: WeightsName) {
    const fields = this.#resolve(source);
    const { record } = this.#app.registry.createSampler(sessionId, sequence, fields);
    if (record.modelPath !== fields.modelPath || record.baseModel !== fields.baseModel)
      throw numberReused(
        `sampling_session_seq_id ${sequence} of this session is sampler ${record.id}, made differently.`,
      );
    return record;
  }

  /** Freezes a model's weights as they are now; called in the model's turn. */
  async snapshot(model: ModelRecord, sequence: number): Promise<string> {
    const { registry, engine } = this.#app;
    const { record, created } = registry.createSampler(model.sessionId, sequence, {
      baseModel: model.baseModel,
      snapshotOf: model.id,
    });
    if (!created)
      throw numberReused(`sampling_session_seq_id ${sequence} of this session is already sampler ${record.id}.`);
    await this.#makeRoom();
    const engineId = this.#nextEngineId(record.id);
    const ready = engine.createSampler(engineId, { kind: "live", modelId: model.id });
    this.#open.set(record.id, { engineId, ready, active: 0 });
    try {
      await ready;
    } catch (error) {
      this.#open.delete(record.id);
      registry.forgetSampler(record.id);
      throw error;
    }
    return record.id;
  }

  get(id: string): SamplerRecord {
    const record = this.#app.registry.findSampler(id);
    if (record) return record;
    if (/:sample:\d+$/.test(id)) throw gone(id);
    throw new ServerError(404, "server/unknown-sampler", `There is no sampler "${id.slice(0, 80)}". Check the id.`);
  }

  /** The sampler behind a request that names its weights instead of a sampling session. */
  adHoc(source: WeightsName): SamplerRecord {
    const fields = this.#resolve(source);
    return { ...fields, id: `ad-hoc:${fields.checkpointUid ?? fields.baseModel}`, sessionId: "", sequence: 0 };
  }

  /** A number for one more copy of a sampler's client, from 1. */
  join(samplerId: string): number {
    const { id } = this.get(samplerId);
    const number = (this.#copies.get(id) ?? 0) + 1;
    this.#copies.set(id, number);
    return number;
  }

  /** Submits a sample; `sequence` makes a repeat the same request. */
  sample(
    record: SamplerRecord,
    sequence: SampleSequence | undefined,
    request: SampleRequest,
    options: { fingerprint: string; bytes: number },
  ): Operation {
    const { operations, completions } = this.#app;
    const key = sequence === undefined ? undefined : `${record.id}/${sequence}`;
    const known = key === undefined ? undefined : this.#requests.get(key);
    if (known) {
      if (known.fingerprint !== options.fingerprint)
        throw numberReused(`seq_id ${sequence} of sampler ${record.id} was another request.`);
      return known.operation;
    }
    operations.admit(options.bytes);
    const controller = new AbortController();
    const operation = operations.begin(options.bytes, () => controller.abort(cancelled()));
    if (key !== undefined) this.#requests.set(key, { fingerprint: options.fingerprint, operation });
    this.#underWay.add(controller);
    void operations
      .settle(operation, async () => {
        const { cachedTokens = 0, ...output } = await this.#run(record, request, controller.signal);
        return { kind: "sample", output: { ...output, promptCacheHitTokens: cachedTokens } };
      })
      .then(() => {
        this.#underWay.delete(controller);
        if (sequence === undefined) return;
        const { id: requestId, bytes, outcome } = operation;
        const state = outcome?.ok ? "finished" : "failed";
        completions.add(clientKey(record.id, cloneOf(sequence)), { requestId, bytes, state });
      });
    return operation;
  }

  /** Frees the samplers of a session that has ended. */
  async dropSession(sessionId: string): Promise<void> {
    for (const record of this.#app.registry.samplers)
      if (record.sessionId === sessionId && this.#open.get(record.id)?.active === 0) await this.#close(record.id);
  }

  async #run(record: SamplerRecord, request: SampleRequest, signal: AbortSignal): Promise<SampleOutput> {
    const open = await this.#use(record);
    try {
      await open.ready;
      return await this.#app.engine.sample(open.engineId, request, { signal });
    } catch (error) {
      throw signal.aborted ? signal.reason : error;
    } finally {
      open.active--;
    }
  }

  /** Opens a sampler in the engine if it is not, and counts one more use. */
  async #use(record: SamplerRecord): Promise<OpenSampler> {
    let open = this.#open.get(record.id);
    if (open) {
      this.#open.delete(record.id);
    } else {
      const source = this.#sourceOf(record);
      const engineId = this.#nextEngineId(record.id);
      const ready = this.#makeRoom().then(() => this.#app.engine.createSampler(engineId, source));
      open = { engineId, ready, active: 0 };
      ready.catch(() => this.#open.delete(record.id));
    }
    this.#open.set(record.id, open);
    open.active++;
    return open;
  }

  #sourceOf(record: SamplerRecord): SamplerSource {
    const { baseModel, modelPath, snapshotOf } = record;
    if (snapshotOf !== undefined) throw gone(record.id);
    if (modelPath === undefined) return { kind: "base", baseModel };
    const checkpoint = this.#app.checkpoints.get(parseTinkerPath(modelPath));
    if (checkpoint.uid !== record.checkpointUid)
      throw new ServerError(
        404,
        "server/checkpoint-replaced",
        `${modelPath} was deleted and saved again since this sampler was made. Make a new sampling client.`,
      );
    return { kind: "saved", baseModel, dir: this.#app.checkpoints.filesDir(checkpoint) };
  }

  #resolve(source: WeightsName) {
    const { baseModel, modelPath } = source;
    if (modelPath === undefined) {
      if (baseModel === undefined)
        throw badRequest(
          "server/sampler-source",
          "Neither base_model nor model_path was given. Name the base model, or the checkpoint to sample from.",
        );
      this.#app.modelInfo(baseModel);
      return { baseModel, modelPath: undefined, checkpointUid: undefined };
    }
    const path = parseTinkerPath(modelPath);
    if (path.kind !== "sampler")
      throw badRequest(
        "server/checkpoint-kind",
        `${modelPath} holds training state. Sample from a tinker://RUN/sampler_weights/NAME path, as save_weights_for_sampler returns it.`,
      );
    const checkpoint = this.#app.checkpoints.get(path);
    return { baseModel: checkpoint.baseModel, modelPath, checkpointUid: checkpoint.uid };
  }

  async #makeRoom(): Promise<void> {
    for (const [id, open] of [...this.#open]) {
      if (this.#open.size < this.#app.settings.maxSamplers) return;
      if (open.active === 0) await this.#close(id);
    }
  }

  async #close(id: string): Promise<void> {
    const open = this.#open.get(id);
    this.#open.delete(id);
    if (this.#app.registry.findSampler(id)?.snapshotOf !== undefined) this.#app.registry.forgetSampler(id);
    this.#app.completions.drop(id);
    if (!open) return;
    await open.ready.catch(() => {});
    await this.#app.engine.releaseSampler(open.engineId);
  }

  #nextEngineId(samplerId: string): string {
    return `${samplerId}/${++this.#openings}`;
  }
}

/** A sample's number within its sampler; those of a client's copies go beyond what a double holds. */
export type SampleSequence = number | bigint;

const perClone = 1_000_000_000n;

/** Which copy of a sampling client a number belongs to; 0: the original. */
export const cloneOf = (sequence: SampleSequence): number => Number(BigInt(sequence) / perClone);

/** Whose completions these are. */
export const clientKey = (samplerId: string, clone: number): string => `${samplerId}/${clone}`;

const cancelled = () =>
  badRequest("server/cancelled", "The client cancelled this sample. Ask again if it is wanted after all.");

const gone = (id: string) =>
  new ServerError(
    404,
    "server/sampler-gone",
    `Sampler ${id.slice(0, 80)} is not here: it was never made, was closed to make room, or was an unnamed snapshot from before ` +
      "a restart. Save the weights again and make a new sampling client.",
  );
