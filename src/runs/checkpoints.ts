// checkpoints.jsonl: one record per saved checkpoint, appended after the server confirmed it. The last record with a `state_path` is
// where a run resumes.
import { existsSync } from "node:fs";
import { join } from "node:path";
import { writeFileAtomic } from "../core/files.ts";
import { JsonLinesWriter, readJsonLines, toJsonLine } from "../core/jsonl.ts";
import { RunError, runFiles } from "./directory.ts";

export interface CheckpointRecord {
  name: string;
  /** Steps completed when it was saved: the step to go on with. `batch` repeats it under the name other tools read. */
  step: number;
  batch: number;
  epoch: number;
  /** Prompts consumed so far, not reduced by the size of the data set. */
  dataset_offset: number;
  kind: "state" | "sampler" | "both";
  state_path?: string;
  sampler_path?: string;
  final?: boolean;
  ttl_seconds?: number;
  config_hash: string;
  seed: number;
  saved_at: string;
}

/** Every readable record, oldest first. A broken line is an error that names it, since resuming past it could repeat steps. */
export function readCheckpoints(runPath: string): CheckpointRecord[] {
  const path = join(runPath, runFiles.checkpoints);
  return readJsonLines(path, (line, number) => {
    throw new RunError(
      "runs/corrupt-checkpoints",
      `${path}, line ${number} is not a checkpoint record: ${line.slice(0, 80)}. Delete that line to resume from the record before it.`,
    );
  }) as CheckpointRecord[];
}

/** Records that a run can resume from, newest first. */
export function resumableCheckpoints(runPath: string): CheckpointRecord[] {
  return readCheckpoints(runPath)
    .filter((record) => typeof record.state_path === "string")
    .reverse();
}

export function appendCheckpoint(runPath: string, record: CheckpointRecord): void {
  const writer = new JsonLinesWriter(join(runPath, runFiles.checkpoints));
  try {
    writer.append(record);
  } finally {
    writer.close();
  }
}

/**
 * Moves the records of steps that will be run again out of a JSON lines file into `FILE.bak`, so that every step stands once.
 * Safe to be interrupted: the kept records are complete in a new file before it replaces the old one.
 */
export function dropStepsFrom(path: string, step: number): number {
  if (!existsSync(path)) return 0;
  const records = readJsonLines(path) as { step: number }[];
  const kept = records.filter((record) => record.step < step);
  const dropped = records.filter((record) => record.step >= step);
  if (dropped.length === 0) return 0;
  const backup = new JsonLinesWriter(`${path}.bak`);
  for (const record of dropped) backup.append(record);
  backup.close();
  writeFileAtomic(path, kept.map(toJsonLine).join(""));
  return dropped.length;
}
