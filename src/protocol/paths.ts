// Checkpoint addresses: tinker://RUN/weights/NAME (training state) and tinker://RUN/sampler_weights/NAME (for sampling).
import { ProtocolError } from "./errors.ts";

export type CheckpointKind = "training" | "sampler";

export interface TinkerPath {
  trainingRunId: string;
  kind: CheckpointKind;
  name: string;
  /** As REST routes and listings spell it: weights/NAME or sampler_weights/NAME. */
  checkpointId: string;
}

const folders: Readonly<Record<CheckpointKind, string>> = { training: "weights", sampler: "sampler_weights" };

/**
 * Parses a checkpoint address. A two-part `tinker://RUN/NAME`, which SkyRL gives its sampler checkpoints, is read as a sampler
 * checkpoint. Throws ProtocolError `protocol/bad-path`.
 */
export function parseTinkerPath(path: string): TinkerPath {
  const match = /^tinker:\/\/([^/]+)\/(?:(weights|sampler_weights)\/)?([^/]+)$/.exec(path);
  if (!match)
    throw new ProtocolError(
      "protocol/bad-path",
      `"${path}" is not a checkpoint address. Write tinker://RUN_ID/weights/NAME or tinker://RUN_ID/sampler_weights/NAME, as a save returned it.`,
    );
  const [, trainingRunId, folder, name] = match;
  const kind = folder === "weights" ? "training" : "sampler";
  return { trainingRunId: trainingRunId!, kind, name: name!, checkpointId: `${folders[kind]}/${name}` };
}

/** The address of a checkpoint. */
export function formatTinkerPath(trainingRunId: string, kind: CheckpointKind, name: string): string {
  return `tinker://${trainingRunId}/${folders[kind]}/${name}`;
}
