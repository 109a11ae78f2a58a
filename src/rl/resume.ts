// Starting a run's training client: from the newest checkpoint the server still has, from given weights, or fresh. Saving checkpoints.
import { createHash } from "node:crypto";
import {
  APIStatusError,
  ModelLostError,
  RequestLostError,
  type ServiceClient,
  type TrainingClient,
} from "../client/index.ts";
import { ConfigError, messageOf, WhetstoneError } from "../core/errors.ts";
import { type CheckpointRecord, resumableCheckpoints } from "../runs/checkpoints.ts";
import type { Run } from "../runs/run.ts";
import type { TrainConfig } from "./config.ts";

/** A run that cannot go on as it is. */
export class TrainError extends WhetstoneError {}

/** Where training stands: the next step and how many prompts were consumed. */
export interface Position {
  step: number;
  datasetOffset: number;
}

export interface Start extends Position {
  training: TrainingClient;
  /** The record it resumes from. */
  from: CheckpointRecord | undefined;
}

/** What must not change between the parts of one run: without these, "the same run" means nothing. */
export const identityKeys = [
  "model_name",
  "lora_rank",
  "renderer_name",
  "thinking",
  "seed",
  "data_fingerprint",
] as const;

/** Refuses to resume a run whose identity changed, naming what differs. */
export function checkIdentity(
  recorded: Readonly<Record<string, unknown>>,
  current: Readonly<Record<string, unknown>>,
  force: boolean,
): string[] {
  const changed = identityKeys
    // A key that the recorded run did not have yet was at its default, which is empty for those that can be missing.
    .filter((key) => JSON.stringify(recorded[key] ?? "") !== JSON.stringify(current[key] ?? ""))
    .map((key) => `${key} was ${JSON.stringify(recorded[key])} and is now ${JSON.stringify(current[key])}`);
  if (changed.length > 0 && !force) {
    throw new ConfigError(
      "config/resume-mismatch",
      `This run directory belongs to another run: ${changed.join("; ")}. Set the same values again, name another log_path, or set ` +
        "force_resume=true if you mean it.",
    );
  }
  return changed;
}

/** A short name for the whole config, written into checkpoint records. */
export function configHash(config: Readonly<Record<string, unknown>>): string {
  return createHash("sha256").update(JSON.stringify(config)).digest("hex").slice(0, 16);
}

/** The server no longer has what it was asked for. */
function isGone(error: unknown): boolean {
  return error instanceof APIStatusError && (error.status === 404 || error.status === 410);
}

/**
 * True where the live model, or the fate of a request to it, is lost (the server was restarted, say): the only safe way on is the last
 * checkpoint.
 */
export function isModelLost(error: unknown): boolean {
  if (error instanceof ModelLostError || error instanceof RequestLostError || isGone(error)) return true;
  return error instanceof Error && error.cause !== undefined && isModelLost(error.cause);
}

/** Creates the training client: newest checkpoint first, an older one where the server has lost it, else fresh. */
export async function startTraining(
  service: ServiceClient,
  config: TrainConfig,
  run: Run,
  userMetadata: Record<string, string>,
): Promise<Start> {
  for (const record of resumableCheckpoints(run.path)) {
    try {
      const training = await service.createTrainingClientFromStateWithOptimizer(record.state_path!, { userMetadata });
      return { training, step: record.step, datasetOffset: record.dataset_offset, from: record };
    } catch (error) {
      if (!isGone(error)) throw error;
      run.logger.warn(
        `checkpoint ${record.name} is gone from the server (${messageOf(error)}); trying the one before it`,
      );
    }
  }
  const fresh = { step: 0, datasetOffset: 0, from: undefined };
  if (config.load_checkpoint_path !== "") {
    const training = await service.createTrainingClientFromState(config.load_checkpoint_path, { userMetadata });
    return { ...fresh, training };
  }
  const training = await service.createLoraTrainingClient({
    baseModel: config.model_name,
    rank: config.lora_rank,
    seed: config.seed,
    userMetadata,
  });
  return { ...fresh, training };
}

/** Saves weights and optimizer for resuming, and the weights for sampling; the record is appended once the server has both. */
export async function saveCheckpoint(
  training: TrainingClient,
  position: Position,
  run: Run,
  options: { name: string; final?: boolean; ttlSeconds: number; configHash: string; seed: number; epoch: number },
): Promise<CheckpointRecord> {
  const ttl = options.ttlSeconds > 0 && !options.final ? { ttlSeconds: options.ttlSeconds } : {};
  // Both are queued before either is awaited.
  const saves = [training.saveState(options.name, ttl), training.saveWeightsForSampler(options.name, ttl)] as const;
  const [state, sampler] = await Promise.all(saves.map((save) => save.result()));
  const record: CheckpointRecord = {
    name: options.name,
    step: position.step,
    batch: position.step,
    epoch: options.epoch,
    dataset_offset: position.datasetOffset,
    kind: "both",
    state_path: state!.path,
    sampler_path: sampler!.path,
    ...(options.final ? { final: true } : {}),
    ...(ttl.ttlSeconds === undefined ? {} : { ttl_seconds: ttl.ttlSeconds }),
    config_hash: options.configHash,
    seed: options.seed,
    saved_at: new Date().toISOString(),
  };
  run.checkpoint(record);
  return record;
}

/** `000010` for the checkpoint after ten steps. */
export const checkpointName = (step: number) => String(step).padStart(6, "0");
