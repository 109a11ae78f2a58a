// A run's checkpoints: which of those that were saved count, and checkpoints.jsonl, which has one record for each of them.

import { join } from "node:path";
import { z } from "zod";
import { readJsonLines } from "../core/jsonl.ts";
import { whet } from "../core/program.ts";
import { RunError, runFiles } from "./directory.ts";
import type { RunEvent } from "./events.ts";
import { isVersionUndone } from "./rewinds.ts";

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

/**
 * The checkpoints that count, oldest first, folded from the journal: the one place that decides which ones a run can be resumed from,
 * exported, sampled or measured. Going back takes those of later steps away; so does a start from an older one, for the server has lost
 * those after it.
 */
export class LiveCheckpoints {
  #records: CheckpointRecord[] = [];

  get records(): readonly CheckpointRecord[] {
    return this.#records;
  }

  take(event: RunEvent): void {
    if (event.type === "saved") this.#records.push(event.record);
    else if (event.type === "rewound")
      this.#records = this.#records.filter(({ step }) => !isVersionUndone(step, event.to));
    else if (event.type === "resumed") {
      const { version, checkpoint } = event;
      const from = this.#records.findLastIndex(({ name, step }) => name === checkpoint && step === version);
      if (from >= 0) this.#records.length = from + 1;
    }
  }
}

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
