// An engine that writes down what it did: one JSON line per completed operation, in the file before the answer leaves. The file
// outlives the process and is appended to by the next one, so that what was sampled and which updates were applied can be counted
// over crashes and restarts by the engine's own word.
//
// A policy is named by its history: `policy` is a hash over the model's spec and every update applied since, in order, and
// `steps` is how many. Two policies of one name were trained on the same data in the same order.
import { createHash, type Hash } from "node:crypto";
import { appendFileSync } from "node:fs";
import { basename } from "node:path";
import { messageOf } from "../core/errors.ts";
import { JsonLinesWriter, readJsonLines, toJsonLine } from "../core/jsonl.ts";
import type {
  AdamSettings,
  Engine,
  EngineModelInfo,
  ModelSpec,
  SampleOutput,
  SampleRequest,
  SamplerSource,
  TrainingBatch,
  TrainingOutput,
} from "./engine.ts";
import { EngineError } from "./errors.ts";

/** Which weights: how many updates they have had, and the hash of their history. */
export interface AuditedPolicy {
  steps: number;
  policy: string;
}

/** One completed operation, with the Unix time in milliseconds at which it was. */
export type AuditLine = AuditRecord & { at: number };

/** What was done. Hashes are the first 16 hexadecimal digits of a SHA-256. */
export type AuditRecord =
  | ({
      op: "create_model" | "save_state" | "save_for_sampler" | "load_state";
      model: string;
      path?: string;
    } & AuditedPolicy)
  | { op: "unload_model"; model: string }
  /** `data` is the hash of all that the loss reads; `tokens` those of all sequences. */
  | { op: "forward" | "forward_backward"; model: string; count: number; tokens: number; data: string; steps: number }
  /** `data` lists what was accumulated since the last update; `steps` and `policy` are those after it. */
  | ({ op: "optim_step"; model: string; data: readonly string[] } & AuditedPolicy)
  | ({ op: "create_sampler"; sampler: string; source: string } & AuditedPolicy)
  | ({
      op: "sample";
      sampler: string;
      source: string;
      seed: number | null;
      samples: number;
      prompt: string;
      promptTokens: number;
      /** Of all samples. */
      tokens: number;
      /** What came out: tokens and log-probabilities. */
      output: string;
    } & AuditedPolicy);

/** The lines of an audit, oldest first. A line that a crash cut short is left out. */
export function readAudit(path: string): AuditLine[] {
  return readJsonLines(path) as AuditLine[];
}

interface AuditedModel extends AuditedPolicy {
  pending: string[];
}

export class AuditedEngine implements Engine {
  readonly #engine: Engine;
  readonly #path: string;
  readonly #models = new Map<string, AuditedModel>();
  readonly #samplers = new Map<string, AuditedPolicy & { source: string }>();
  /** By the name of a checkpoint's folder, which stays when the folder is moved into its place. */
  readonly #saved = new Map<string, AuditedPolicy>();

  /** Appends to the file at `path`, which need not exist. */
  constructor(engine: Engine, path: string) {
    this.#engine = engine;
    this.#path = path;
    try {
      new JsonLinesWriter(path).close();
      for (const record of readAudit(path))
        if (record.op === "save_state" || record.op === "save_for_sampler")
          this.#saved.set(basename(record.path ?? ""), { steps: record.steps, policy: record.policy });
    } catch (cause) {
      throw auditError(path, cause);
    }
  }

  get models(): readonly EngineModelInfo[] {
    return this.#engine.models;
  }

  async createModel(modelId: string, spec: ModelSpec): Promise<void> {
    await this.#engine.createModel(modelId, spec);
    const policy = { steps: 0, policy: hashOf((hash) => hash.update(JSON.stringify(spec))) };
    this.#models.set(modelId, { ...policy, pending: [] });
    this.#append({ op: "create_model", model: modelId, ...policy });
  }

  async unloadModel(modelId: string): Promise<void> {
    await this.#engine.unloadModel(modelId);
    this.#models.delete(modelId);
    this.#append({ op: "unload_model", model: modelId });
  }

  async forwardBackward(modelId: string, batch: TrainingBatch): Promise<TrainingOutput> {
    const output = await this.#engine.forwardBackward(modelId, batch);
    const model = this.#model(modelId);
    const data = hashOf((hash) => hashBatch(hash, batch));
    if (!batch.forwardOnly) model.pending.push(data);
    const op = batch.forwardOnly ? "forward" : "forward_backward";
    const tokens = batch.data.reduce((sum, { tokens }) => sum + tokens.length, 0);
    this.#append({ op, model: modelId, count: batch.data.length, tokens, data, steps: model.steps });
    return output;
  }

  async optimStep(modelId: string, adam: AdamSettings): Promise<Readonly<Record<string, number>>> {
    const metrics = await this.#engine.optimStep(modelId, adam);
    const model = this.#model(modelId);
    const data = model.pending;
    model.pending = [];
    model.steps++;
    model.policy = hashOf((hash) => hash.update(JSON.stringify([model.policy, data, adam])));
    this.#append({ op: "optim_step", model: modelId, data, steps: model.steps, policy: model.policy });
    return metrics;
  }

  async saveState(modelId: string, dir: string): Promise<void> {
    await this.#engine.saveState(modelId, dir);
    this.#wasSaved("save_state", modelId, dir);
  }

  async saveForSampler(modelId: string, dir: string): Promise<void> {
    await this.#engine.saveForSampler(modelId, dir);
    this.#wasSaved("save_for_sampler", modelId, dir);
  }

  async loadState(modelId: string, dir: string, options: { optimizer: boolean }): Promise<void> {
    await this.#engine.loadState(modelId, dir, options);
    const saved = this.#policyAt(dir);
    // The same weights with other moments go elsewhere from here.
    const policy = options.optimizer ? saved.policy : hashOf((hash) => hash.update(`${saved.policy} fresh optimizer`));
    const model = { steps: saved.steps, policy };
    this.#models.set(modelId, { ...model, pending: [] });
    this.#append({ op: "load_state", model: modelId, path: dir, ...model });
  }

  async createSampler(samplerId: string, source: SamplerSource): Promise<void> {
    await this.#engine.createSampler(samplerId, source);
    const sampler =
      source.kind === "live"
        ? { ...policyOf(this.#model(source.modelId)), source: source.modelId }
        : source.kind === "saved"
          ? { ...this.#policyAt(source.dir), source: source.dir }
          : { steps: 0, policy: "base", source: source.baseModel };
    this.#samplers.set(samplerId, sampler);
    this.#append({ op: "create_sampler", sampler: samplerId, ...sampler });
  }

  async releaseSampler(samplerId: string): Promise<void> {
    await this.#engine.releaseSampler(samplerId);
    this.#samplers.delete(samplerId);
  }

  async sample(samplerId: string, request: SampleRequest, options?: { signal?: AbortSignal }): Promise<SampleOutput> {
    const sampler = this.#samplers.get(samplerId) ?? { steps: 0, policy: "unknown", source: "unknown" };
    const output = await this.#engine.sample(samplerId, request, options);
    this.#append({
      op: "sample",
      sampler: samplerId,
      ...sampler,
      seed: request.settings.seed ?? null,
      samples: request.numSamples,
      prompt: hashOf((hash) => hash.update(bytesOf(request.prompt))),
      promptTokens: request.prompt.length,
      tokens: output.sequences.reduce((sum, { tokens }) => sum + tokens.length, 0),
      output: hashOf((hash) => {
        for (const { tokens, logprobs } of output.sequences) hash.update(bytesOf(tokens)).update(bytesOf(logprobs));
      }),
    });
    return output;
  }

  close(): Promise<void> {
    return this.#engine.close();
  }

  #wasSaved(op: "save_state" | "save_for_sampler", modelId: string, dir: string): void {
    const policy = policyOf(this.#model(modelId));
    this.#saved.set(basename(dir), policy);
    this.#append({ op, model: modelId, path: dir, ...policy });
  }

  #model(modelId: string): AuditedModel {
    return this.#models.get(modelId) ?? { steps: 0, policy: "unknown", pending: [] };
  }

  /** Checkpoints from before the audit began are named by their folder. */
  #policyAt(dir: string): AuditedPolicy {
    return this.#saved.get(basename(dir)) ?? { steps: 0, policy: basename(dir) };
  }

  #append(record: AuditRecord): void {
    try {
      appendFileSync(this.#path, toJsonLine({ at: Date.now(), ...record } satisfies AuditLine));
    } catch (cause) {
      throw auditError(this.#path, cause);
    }
  }
}

const policyOf = ({ steps, policy }: AuditedPolicy): AuditedPolicy => ({ steps, policy });

const auditError = (path: string, cause: unknown) =>
  new EngineError(
    "engine/audit",
    `The audit ${path} cannot be written (${messageOf(cause)}). Make room, or name another file.`,
    {
      cause,
      fault: "server",
    },
  );

function hashOf(fill: (hash: Hash) => unknown): string {
  const hash = createHash("sha256");
  fill(hash);
  return hash.digest("hex").slice(0, 16);
}

function hashBatch(hash: Hash, { data, loss, lossConfig }: TrainingBatch): void {
  hash.update(JSON.stringify([loss, lossConfig, data.length]));
  for (const { tokens, lossInputs } of data) {
    hash.update(bytesOf(tokens));
    for (const name of Object.keys(lossInputs).sort()) {
      const { data: values, shape } = lossInputs[name]!;
      hash.update(JSON.stringify([name, shape])).update(bytesOf(values));
    }
  }
}

const bytesOf = ({ buffer, byteOffset, byteLength }: Int32Array | Float32Array) =>
  new Uint8Array(buffer, byteOffset, byteLength);
