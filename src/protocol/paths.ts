// Checkpoint addresses: tinker://RUN/weights/NAME (training state), tinker://RUN/sampler_weights/NAME (for sampling) and
// tinker://RUN/external_weights/NAME (files to download).
import { ProtocolError } from "./errors.ts";

export const checkpointKinds = ["training", "sampler", "external"] as const;
export type CheckpointKind = (typeof checkpointKinds)[number];

/** The parts of `tinker://RUN/KIND/NAME`. */
export interface TinkerPath {
  /** The run. */
  trainingRunId: string;
  /** Which kind of checkpoint. */
  kind: CheckpointKind;
  /** The checkpoint's name. */
  name: string;
  /** As REST routes and listings spell it, e.g. weights/NAME. */
  checkpointId: string;
}

/** The middle part of a kind's addresses. */
export const checkpointFolders: Readonly<Record<CheckpointKind, string>> = {
  training: "weights",
  sampler: "sampler_weights",
  external: "external_weights",
};

/**
 * Parses a checkpoint address. A two-part `tinker://RUN/NAME`, which SkyRL gives its sampler checkpoints, is read as a sampler
 * checkpoint. Throws ProtocolError `protocol/bad-path`.
 */
export function parseTinkerPath(path: string): TinkerPath {
  const match = /^tinker:\/\/([^/]+)\/(?:(weights|sampler_weights|external_weights)\/)?([^/]+)$/.exec(path);
  if (!match)
    throw new ProtocolError(
      "protocol/bad-path",
      `"${path}" is not a checkpoint address. Write tinker://RUN_ID/weights/NAME or tinker://RUN_ID/sampler_weights/NAME, as a save returned it.`,
    );
  const [, trainingRunId, folder, name] = match;
  const kind = checkpointKinds.find((candidate) => checkpointFolders[candidate] === folder) ?? "sampler";
  return { trainingRunId: trainingRunId!, kind, name: name!, checkpointId: checkpointIdOf(kind, name!) };
}

/** What routes and listings call a checkpoint of a run. */
export const checkpointIdOf = (kind: CheckpointKind, name: string): string => `${checkpointFolders[kind]}/${name}`;

/** The address of a checkpoint. */
export function formatTinkerPath(trainingRunId: string, kind: CheckpointKind, name: string): string {
  return `tinker://${trainingRunId}/${checkpointIdOf(kind, name)}`;
}
