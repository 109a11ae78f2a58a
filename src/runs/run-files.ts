// The files people read, made from the journal: metrics.jsonl, timing.jsonl, checkpoints.jsonl, logs.log, rollouts/, evaluations/.
// Each is a fold over the events, so whatever a crash left out is written when the journal is next read from its beginning.
import { existsSync, mkdirSync } from "node:fs";
import { join } from "node:path";
import { writeFileAtomic } from "../core/files.ts";
import { toJsonLine } from "../core/jsonl.ts";
import { runFiles } from "./directory.ts";
import type { EventOf, RunEvent } from "./events.ts";
import { FoldedFile } from "./folded-file.ts";
import { logLines } from "./log.ts";
import { MetricsRecords } from "./records.ts";
import { type RecordedGroup, type RolloutRecord, rolloutRecords, stepFile } from "./rollouts.ts";

export class RunFiles {
  readonly #path: string;
  readonly #metrics: FoldedFile;
  readonly #timing: FoldedFile;
  readonly #checkpoints: FoldedFile;
  readonly #log: FoldedFile;
  readonly #records = new MetricsRecords();
  /** Groups whose step or evaluation is not written yet. */
  readonly #groups = new Map<string, RecordedGroup[]>();
  #groupsToLog = 0;

  constructor(runPath: string) {
    this.#path = runPath;
    const file = (name: string) => new FoldedFile(join(runPath, name));
    this.#metrics = file(runFiles.metrics);
    this.#timing = file(runFiles.timing);
    this.#checkpoints = file(runFiles.checkpoints);
    this.#log = file(runFiles.log);
  }

  /** Every event of the past was taken. Returns the files that did not say what the events say, and now do. */
  caughtUp(): string[] {
    return [this.#metrics, this.#timing, this.#checkpoints, this.#log]
      .filter((file) => file.caughtUp())
      .map(({ path }) => path);
  }

  take(event: RunEvent): void {
    for (const record of this.#records.take(event)) this.#metrics.append(toJsonLine(record), record.step);
    switch (event.type) {
      case "started":
        this.#groupsToLog = Number(event.config["num_groups_to_log"] ?? 0);
        break;
      case "group-sampled":
        this.#groupsOf(event)[event.group] = { sampled: event, graded: [] };
        break;
      case "graded": {
        const group = this.#groupsOf(event)[event.group];
        if (group) group.graded[event.sample] = event;
        break;
      }
      case "update-submitted":
        this.#writeRollouts(event);
        break;
      case "evaluated":
        this.#writeEvaluation(event);
        break;
      case "step-done":
        this.#timing.append(toJsonLine({ step: event.step, spans: event.spans.map(timingRow) }), event.step);
        break;
      case "saved":
        this.#checkpoints.append(toJsonLine(event.record), event.record.step);
        break;
      case "rewound":
        for (const file of [this.#metrics, this.#timing]) file.rewind(event.to);
        for (const key of [...this.#groups.keys()]) if (Number(key.split(" ")[1]) >= event.to) this.#groups.delete(key);
        break;
    }
    for (const line of logLines(
      event,
      this.#groupsToLog,
      this.#groups.get(`train ${"step" in event ? event.step : ""}`),
    ))
      this.#log.append(line);
    if (event.type === "update-submitted") this.#groups.delete(`train ${event.step}`);
  }

  close(): void {
    for (const file of [this.#metrics, this.#timing, this.#checkpoints, this.#log]) file.close();
  }

  #groupsOf({ phase, batch }: { phase: string; batch: number }): RecordedGroup[] {
    const key = `${phase} ${batch}`;
    const groups = this.#groups.get(key) ?? [];
    this.#groups.set(key, groups);
    return groups;
  }

  #writeRollouts({ step, groups }: EventOf<"update-submitted">): void {
    const recorded = this.#groups.get(`train ${step}`) ?? [];
    const records = recorded.flatMap((group) =>
      rolloutRecords(step, group, groups[group.sampled.group]?.advantages ?? []),
    );
    this.#writeRecords(runFiles.rollouts, stepFile(step), records);
  }

  #writeEvaluation({ step, outcomes }: EventOf<"evaluated">): void {
    const recorded = this.#groups.get(`eval ${step}`) ?? [];
    this.#groups.delete(`eval ${step}`);
    const answers = recorded.flatMap((group) => rolloutRecords(step, group, []));
    this.#writeRecords(runFiles.evaluations, answersFile(step), answers);
    this.#writeRecords(runFiles.evaluations, stepFile(step), outcomes);
  }

  /** In one piece, once: a file that is there was written from the same events. */
  #writeRecords(folder: string, name: string, records: readonly (RolloutRecord | object)[]): void {
    mkdirSync(join(this.#path, folder), { recursive: true });
    const path = join(this.#path, folder, name);
    if (!existsSync(path)) writeFileAtomic(path, records.map(toJsonLine).join(""));
  }
}

/** `step_000012.answers.jsonl`: every answer of an evaluation with its verdict. */
export const answersFile = (step: number) => stepFile(step).replace(".jsonl", ".answers.jsonl");

const timingRow = ({ name, start, end }: { name: string; start: number; end: number }) => ({
  name,
  duration: (end - start) / 1000,
  wall_start: start,
  wall_end: end,
});
