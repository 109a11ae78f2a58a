// The files people read, made from the journal: metrics.jsonl, timing.jsonl, checkpoints.jsonl, findings.jsonl, logs.log, rollouts/,
// evaluations/.
// Each is a fold over the events, so whatever a crash left out is written when the journal is next read from its beginning.
import { appendFileSync, existsSync, mkdirSync, readdirSync, rmSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { replaceFile } from "../core/files.ts";
import { toJsonLine } from "../core/jsonl.ts";
import { LiveCheckpoints } from "./checkpoints.ts";
import { runFiles } from "./directory.ts";
import type { EventOf, RunEvent } from "./events.ts";
import { FoldedFile } from "./folded-file.ts";
import { decodeHeader, decodeJson, type encodeFrame, type FrameHeader, jsonDeflated } from "./frames.ts";
import { logLines } from "./log.ts";
import { MetricsRecords } from "./records.ts";
import { isStepUndone, isVersionUndone } from "./rewinds.ts";
import { rolloutRecords, stepFile } from "./rollouts.ts";
import type { RecordedGroup } from "./turns.ts";

export class RunFiles {
  readonly #path: string;
  readonly #files: Readonly<Record<"metrics" | "timing" | "checkpoints" | "findings" | "log", FoldedFile>>;
  readonly #records = new MetricsRecords();
  readonly #live = new LiveCheckpoints();
  /** Files of steps and evaluations that the journal tells of. */
  readonly #written = new Set<string>();
  /** Groups whose step or evaluation is not written yet. */
  readonly #groups = new Map<string, HeldGroup[]>();
  #groupsToLog = 0;

  constructor(runPath: string) {
    this.#path = runPath;
    const file = (name: string) => new FoldedFile(join(runPath, name));
    this.#files = {
      metrics: file(runFiles.metrics),
      timing: file(runFiles.timing),
      checkpoints: file(runFiles.checkpoints),
      findings: file(runFiles.findings),
      log: file(runFiles.log),
    };
  }

  /** Every event of the past was taken. Corrects the files, and returns those that were wrong. */
  caughtUp(): string[] {
    // Of steps that a journal had before its end was cut off; written anew they would say something else.
    for (const folder of [runFiles.rollouts, runFiles.evaluations])
      this.#remove(folder, (_, name) => !this.#written.has(join(folder, name)));
    return Object.values(this.#files)
      .filter((file) => file.caughtUp())
      .map(({ path }) => path);
  }

  /** `frame`: the event as it was written to the journal. */
  take(event: RunEvent, frame?: ReturnType<typeof encodeFrame>): void {
    const { metrics, timing, findings, log } = this.#files;
    for (const record of this.#records.take(event)) metrics.append(toJsonLine(record), record.step);
    this.#takeCheckpoint(event);
    switch (event.type) {
      case "started":
        this.#groupsToLog = Number(event.config["num_groups_to_log"] ?? 0);
        break;
      case "evaluation-started":
        this.#groups.delete(`eval ${event.step}`);
        break;
      case "group-sampled":
        this.#groupsOf(event)[event.group] = new HeldGroup(event, frame);
        break;
      case "turn-sampled":
        this.#groupsOf(event)[event.group]?.turns.push({ sampled: event });
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
        timing.append(toJsonLine({ step: event.step, spans: event.spans.map(timingRow) }), event.step);
        break;
      case "finding":
        findings.append(toJsonLine({ step: event.step, action: event.action, ...event.finding }), event.step);
        break;
      case "rewound":
        for (const file of [metrics, timing, findings]) file.rewind(event.to);
        // Of training all goes: what is held of batches before was carried over into what is done anew.
        this.#drop((phase, batch) => phase === "train" || isVersionUndone(batch, event.to));
        this.#remove(runFiles.rollouts, (step) => isStepUndone(step, event.to));
        this.#remove(runFiles.evaluations, (step) => isVersionUndone(step, event.to));
        break;
    }
    const trained = event.type === "update-submitted" ? this.#trained(event) : [];
    for (const line of logLines(event, this.#groupsToLog, trained)) log.append(line);
    if (event.type === "update-submitted") this.#forget(event);
  }

  close(): void {
    for (const file of Object.values(this.#files)) file.close();
  }

  /** The file has a line for each checkpoint that counts. Those that no longer do are the last ones. */
  #takeCheckpoint(event: RunEvent): void {
    const before = this.#live.records.length;
    this.#live.take(event);
    const { length } = this.#live.records;
    const { checkpoints } = this.#files;
    if (length > before) checkpoints.append(toJsonLine(this.#live.records.at(-1)!), before);
    else if (length < before) checkpoints.rewind(length);
  }

  #groupsOf({ phase, batch }: { phase: string; batch: number }): HeldGroup[] {
    const key = `${phase} ${batch}`;
    const groups = this.#groups.get(key) ?? [];
    this.#groups.set(key, groups);
    return groups;
  }

  /** The groups of an update in its order. One may be missing where the journal was damaged. */
  #trained(event: EventOf<"update-submitted">): (HeldGroup | undefined)[] {
    return event.groups.map(({ batch, group }) => this.#groups.get(`train ${batch}`)?.[group]);
  }

  /** What an update is on is written; what it left to the next one is not. */
  #forget(event: EventOf<"update-submitted">): void {
    const held = event.carried.map(
      (place) => [place, this.#groups.get(`train ${place.batch}`)?.[place.group]] as const,
    );
    this.#drop((phase, batch) => phase === "train" && batch <= event.step);
    for (const [{ batch, group: place }, group] of held)
      if (group) this.#groupsOf({ phase: "train", batch })[place] = group;
  }

  #drop(isOver: (phase: string, batch: number) => boolean): void {
    for (const key of [...this.#groups.keys()]) {
      const [phase, batch] = key.split(" ");
      if (isOver(phase!, Number(batch))) this.#groups.delete(key);
    }
  }

  #writeRollouts(event: EventOf<"update-submitted">): void {
    const { step } = event;
    const recorded = this.#trained(event).map((group, index) => ({ group, entry: event.groups[index]! }));
    this.#writeRecords(runFiles.rollouts, stepFile(step), recorded, ({ group, entry }) =>
      group ? rolloutRecords(step, group, entry.advantages) : [],
    );
  }

  #writeEvaluation({ step, outcomes }: EventOf<"evaluated">): void {
    const recorded = this.#groups.get(`eval ${step}`) ?? [];
    this.#groups.delete(`eval ${step}`);
    this.#writeRecords(runFiles.evaluations, answersFile(step), recorded, (group) =>
      group ? rolloutRecords(step, group, []) : [],
    );
    this.#writeRecords(runFiles.evaluations, stepFile(step), outcomes, (outcome) => [outcome]);
  }

  /** Removes the files of steps that are run anew; the journal has what stood in them. */
  #remove(folder: string, isStale: (step: number, name: string) => boolean): void {
    const path = join(this.#path, folder);
    // A file in its place shows when the next one is to be written.
    for (const name of statSync(path, { throwIfNoEntry: false })?.isDirectory() ? readdirSync(path) : []) {
      const step = /^step_(\d+)\./.exec(name)?.[1];
      if (step === undefined || !isStale(Number(step), name)) continue;
      rmSync(join(path, name));
      this.#written.delete(join(folder, name));
    }
  }

  /** In one piece, once: a file that is there was written from the same events. Items are opened one after another. */
  #writeRecords<Item>(
    folder: string,
    name: string,
    items: readonly Item[],
    recordsOf: (item: Item) => readonly object[],
  ): void {
    mkdirSync(join(this.#path, folder), { recursive: true });
    const path = join(this.#path, folder, name);
    this.#written.add(join(folder, name));
    if (existsSync(path)) return;
    replaceFile(path, (temporary) => {
      writeFileSync(temporary, "");
      for (const item of items) appendFileSync(temporary, recordsOf(item).map(toJsonLine).join(""));
    });
  }
}

/** A sampled group until its step is written. A large one is held as it is in the journal: a batch of long answers is large. */
class HeldGroup implements RecordedGroup {
  readonly graded: RecordedGroup["graded"] = [];
  readonly turns: RecordedGroup["turns"][number][] = [];
  readonly #held: { event: RecordedGroup["sampled"] } | { header: FrameHeader; json: Buffer };

  constructor(event: RecordedGroup["sampled"], frame: ReturnType<typeof encodeFrame> | undefined) {
    const header = frame && decodeHeader(frame[0]);
    this.#held = header && (header.flags & jsonDeflated) !== 0 ? { header, json: frame[1] } : { event };
  }

  /** Read anew at each call. */
  get sampled(): RecordedGroup["sampled"] {
    const held = this.#held;
    return "event" in held ? held.event : (JSON.parse(decodeJson(held.header, held.json)!) as RecordedGroup["sampled"]);
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
