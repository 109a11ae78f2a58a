// checkpoints.jsonl: one record per saved checkpoint, written from the journal once the server has confirmed it.

import { join } from "node:path";
import { z } from "zod";
import { readJsonLines } from "../core/jsonl.ts";
import { whet } from "../core/program.ts";
import { RunError, runFiles } from "./directory.ts";

export const CheckpointRecord = z.object({
  name: z.string(),
  /** Steps completed when it was saved: the step to go on with. `batch` repeats it under the name other tools read. */
  step: z.int().min(0),
  batch: z.int().min(0).optional(),
  epoch: z.int().min(0).optional(),
  /** Prompts consumed so far, not reduced by the size of the data set. */
  dataset_offset: z.int().min(0),
  kind: z.enum(["state", "sampler", "both"]).optional(),
  state_path: z.string().optional(),
  sampler_path: z.string().optional(),
  final: z.boolean().optional(),
  ttl_seconds: z.number().optional(),
  config_hash: z.string().optional(),
  seed: z.number().optional(),
  saved_at: z.string().optional(),
});
export type CheckpointRecord = z.output<typeof CheckpointRecord>;

/** Every record, oldest first. A line that is none is an error that names it. */
export function readCheckpoints(runPath: string): CheckpointRecord[] {
  const path = join(runPath, runFiles.checkpoints);
  const bad = (line: string, number: number): never => {
    throw new RunError(
      "runs/corrupt-checkpoints",
      `${path}, line ${number} is not a checkpoint record: ${line.slice(0, 80)}. Delete the file: ${whet} train with this log_path writes it anew from the journal.`,
    );
  };
  return readJsonLines(path, bad).map((value, index) => {
    const record = CheckpointRecord.safeParse(value);
    return record.success ? record.data : bad(JSON.stringify(value), index + 1);
  });
}
