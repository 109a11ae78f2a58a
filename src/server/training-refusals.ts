// Why a model cannot take a request, or a checkpoint.
import type { CheckpointRecord } from "./checkpoints.ts";
import { badRequest, ServerError } from "./errors.ts";
import type { ModelRecord } from "./registry.ts";

/** Refuses a path of weights for sampling where training state is needed. */
export function requireTrainingPath<P extends { kind: string }>(path: P, written: string): P {
  if (path.kind === "training") return path;
  throw badRequest(
    "server/checkpoint-kind",
    `${written} holds weights for sampling, without optimizer state. Load a tinker://RUN/weights/NAME path, as save_state returns it.`,
  );
}

/** Refuses a checkpoint of another base model, rank or set of trained parts. */
export function requireFit(record: ModelRecord, checkpoint: CheckpointRecord, path: string): void {
  const differs = (["rank", "trainAttn", "trainMlp", "trainUnembed"] as const).filter(
    (key) => record.lora[key] !== checkpoint.lora[key],
  );
  if (record.baseModel === checkpoint.baseModel && differs.length === 0) return;
  const reason =
    record.baseModel === checkpoint.baseModel
      ? differs.map((key) => `${key} ${checkpoint.lora[key]} instead of ${record.lora[key]}`).join(", ")
      : `base model ${checkpoint.baseModel} instead of ${record.baseModel}`;
  throw badRequest(
    "server/checkpoint-mismatch",
    `${path} does not fit model ${record.id}: it has ${reason}. Create the model from the checkpoint instead.`,
  );
}

export const lost = (record: ModelRecord) =>
  new ServerError(
    404,
    "server/model-lost",
    `The server restarted and the weights of model ${record.id} were only in its memory. Applied: ${record.appliedSteps} optimizer ` +
      `steps, the last with seq_id ${record.lastAppliedSequence}. Resume from its last checkpoint with create_training_client_from_state_with_optimizer.`,
  );

export const unloaded = (record: ModelRecord) =>
  new ServerError(
    404,
    "server/model-unloaded",
    `Model ${record.id} was unloaded, or its session ended. Create it again, or resume from its last checkpoint.`,
  );
