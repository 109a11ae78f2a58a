// Checkpoints of a run: weights and optimizer to resume from, and the weights to sample from. A periodic save runs beside the
// sampling of the next batches; it is over before the next one begins.
import type { TrainingClient } from "../client/index.ts";
import type { CheckpointRecord } from "../runs/checkpoints.ts";
import type { NewEvent } from "../runs/events.ts";
import type { TrainConfig } from "./config.ts";
import type { Position } from "./recovery.ts";

export interface CheckpointsOptions {
  training: TrainingClient;
  config: Pick<TrainConfig, "save_every" | "ttl_seconds" | "seed">;
  configHash: string;
  datasetSize: number;
  /** The last step, which is saved by name. */
  end: number;
  record(event: NewEvent): Promise<void>;
  /** Resolves when the policies of all versions so far are published: who resumes from a checkpoint samples from earlier versions. */
  published(): Promise<unknown>;
  /** Aborted: waits for the server end. */
  signal: AbortSignal;
  /** Called when a checkpoint is safe. */
  onSaved(record: CheckpointRecord): void;
}

/** `000010` for the checkpoint after ten steps. */
export const checkpointName = (step: number) => String(step).padStart(6, "0");

export class Checkpoints {
  readonly #options: CheckpointsOptions;
  #last: Promise<void> = Promise.resolve();
  #failure: { error: unknown } | undefined;
  /** Versions whose save this process began. */
  readonly #begun = new Set<number>();

  constructor(options: CheckpointsOptions) {
    this.#options = options;
  }

  /** Begins a periodic save where one is due. Its place among the training requests is decided now, so nothing has to wait for it. */
  saveIfDue(position: Position): void {
    const { config, end } = this.#options;
    const { save_every: every } = config;
    if (every <= 0 || position.step % every !== 0 || position.step === end) return;
    this.saveNow(position);
  }

  /** Begins a save, unless this version is saved already. */
  saveNow(position: Position): void {
    if (this.#begun.has(position.step)) return;
    this.#begin(checkpointName(position.step), position, false).catch(() => {});
  }

  /** Saves now and waits until it is safe. */
  async save(name: string, position: Position, final = false): Promise<void> {
    await this.#begin(name, position, final);
  }

  throwIfFailed(): void {
    if (this.#failure) throw this.#failure.error;
  }

  /** Waits for a save under way, however it ends. */
  settled(): Promise<void> {
    return this.#last.catch(() => {});
  }

  #begin(name: string, position: Position, final: boolean): Promise<void> {
    const { training, config, configHash, datasetSize, signal } = this.#options;
    const { ttl_seconds: ttlSeconds, seed } = config;
    const start = Date.now();
    this.#begun.add(position.step);
    const ttl = ttlSeconds > 0 && !final ? { ttlSeconds } : {};
    // Both are queued before either is awaited.
    const saves = Promise.all([
      training.saveState(name, { ...ttl, signal }).result(),
      training.saveWeightsForSampler(name, { ...ttl, signal }).result(),
      this.#options.published(),
    ]);
    const before = this.#last;
    const saving = saves.then(async ([state, sampler]) => {
      await before.catch(() => {});
      const record: CheckpointRecord = {
        name,
        step: position.step,
        batch: position.step,
        epoch: Math.floor(position.datasetOffset / datasetSize),
        dataset_offset: position.datasetOffset,
        kind: "both",
        state_path: state.path,
        sampler_path: sampler.path,
        ...(final ? { final: true } : {}),
        ...(ttl.ttlSeconds === undefined ? {} : { ttl_seconds: ttl.ttlSeconds }),
        config_hash: configHash,
        seed,
        saved_at: new Date().toISOString(),
      };
      await this.#options.record({ type: "saved", record, start, end: Date.now() });
      this.#options.onSaved(record);
    });
    saving.catch((error: unknown) => {
      this.#failure ??= { error };
    });
    this.#last = saving;
    return saving;
  }
}
