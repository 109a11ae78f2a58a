// The thread that owns a run's journal on disk. Events that come together are written together and made durable by one fsync; then
// the files that people read are brought up to date (run-files.ts).
import { closeSync, fsyncSync, ftruncateSync, mkdirSync, openSync, statSync } from "node:fs";
import { join } from "node:path";
import { parentPort, workerData } from "node:worker_threads";
import { messageOf, WhetstoneError } from "../core/errors.ts";
import { syncFolder, writeAll } from "../core/files.ts";
import { JournalCursor, type JournalPosition } from "./cursor.ts";
import { RunError, readRunConfig, runFiles } from "./directory.ts";
import type { Arrays, EventOf, RunEvent } from "./events.ts";
import { encodeFrame } from "./frames.ts";
import { RunFiles } from "./run-files.ts";
import { journalSegments, segmentFile } from "./segments.ts";
import { thinSegments } from "./thin-journal.ts";

export type ToWorker =
  | { kind: "append"; json: string; arrays: Arrays }
  | { kind: "thin"; step: number }
  | { kind: "close" };

export type FromWorker =
  /** The past is read; `repaired` are files that did not say what it says. */
  | { kind: "ready"; bytes: number; repaired: string[] }
  /** The next `count` appended events are on disk. */
  | { kind: "durable"; count: number; bytes: number }
  | { kind: "failed"; error: { code: string; message: string } };

/** With more events than this waiting, arrays are written without being deflated: the trainer waits for what comes after them. */
const deflatedWaiting = 4;
/** A segment is closed when it has grown to this. */
const segmentBytes = 64 * 1024 * 1024;

class JournalWriter {
  readonly #folder: string;
  #number: number;
  #descriptor: number;
  #size: number;
  #total: number;

  /** Writes on from where the whole frames of the journal end. */
  constructor(runPath: string, { segment, offset }: JournalPosition) {
    this.#folder = join(runPath, runFiles.journal);
    mkdirSync(this.#folder, { recursive: true });
    this.#number = segment;
    this.#size = offset;
    this.#total = journalSegments(runPath)
      .slice(0, segment)
      .reduce((sum, path) => sum + statSync(path).size, offset);
    this.#descriptor = this.#open();
    ftruncateSync(this.#descriptor, this.#size);
    fsyncSync(this.#descriptor);
  }

  get bytes(): number {
    return this.#total;
  }

  write(frames: readonly Uint8Array[]): void {
    for (const bytes of frames) {
      writeAll(this.#descriptor, bytes);
      this.#size += bytes.length;
      this.#total += bytes.length;
    }
  }

  sync(): void {
    fsyncSync(this.#descriptor);
    if (this.#size < segmentBytes) return;
    closeSync(this.#descriptor);
    this.#number++;
    this.#size = 0;
    this.#descriptor = this.#open();
  }

  /** The number of the segment that is still being written. */
  get current(): number {
    return this.#number;
  }

  close(): void {
    closeSync(this.#descriptor);
  }

  #open(): number {
    const descriptor = openSync(join(this.#folder, segmentFile(this.#number)), "a");
    syncFolder(this.#folder);
    return descriptor;
  }
}

const port = parentPort!;
const { runPath } = (workerData as { data: { runPath: string } }).data;
const send = (message: FromWorker) => port.postMessage(message);

function guarded<T>(work: () => T): T | undefined {
  try {
    return work();
  } catch (error) {
    const code = error instanceof WhetstoneError ? error.code : "runs/write-failed";
    send({ kind: "failed", error: { code, message: messageOf(error) } });
    port.close();
    return undefined;
  }
}

/** Brings `files` to what the journal says. Returns where it ends; refuses a run that the journal is not of. */
function readPast(files: RunFiles): JournalPosition {
  const config = readRunConfig(runPath);
  const cursor = new JournalCursor(runPath, { isChecked: true });
  let started: EventOf<"started"> | undefined;
  try {
    for (let frame = cursor.next(); frame; frame = cursor.next()) {
      const event = frame.event();
      if (event.type === "started" && !started) {
        started = event;
        refuseAnother(config, started);
      }
      files.take(event);
    }
  } finally {
    cursor.close();
  }
  const { position } = cursor;
  refuseLost(config, started, position.segment === 0 && position.offset === 0);
  return position;
}

/** Refuses to go on with the journal of another run: the files made from this run's own would be lost. */
function refuseAnother(config: ReturnType<typeof readRunConfig>, started: EventOf<"started">): void {
  const [id, other] = [config?.["wandb_run_id"], started.config["wandb_run_id"]];
  if (id === undefined || other === undefined || id === other) return;
  throw new RunError(
    "runs/other-journal",
    `${runPath} has the ${runFiles.config} of one run (begun ${String(config!["started_at"])}) and the journal of another ` +
      `(begun ${String(started.config["started_at"])}), so it cannot be resumed. Put back the one that belongs here, or start a new run in another log_path. Nothing was changed.`,
  );
}

/**
 * Refuses to begin anew where a run's journal was emptied or taken away. config.json is written when the start that it tells of is in
 * the journal.
 */
function refuseLost(
  config: ReturnType<typeof readRunConfig>,
  started: EventOf<"started"> | undefined,
  isEmpty: boolean,
): void {
  const { metrics, log, checkpoints, timing, rollouts, evaluations, summary } = runFiles;
  const left = [metrics, log, checkpoints, timing, rollouts, evaluations, summary].filter(
    (name) => (statSync(join(runPath, name), { throwIfNoEntry: false })?.size ?? 0) > 0,
  );
  if (!(isEmpty && left.length > 0) && (started !== undefined || config?.["wandb_run_id"] === undefined)) return;
  throw new RunError(
    "runs/no-journal",
    `${runPath} holds what a run has written (${[...left, runFiles.config].slice(0, 3).join(", ")}), but its journal is missing or has no start of a run, so it cannot be resumed. ` +
      `Restore ${join(runPath, runFiles.journal)} from a copy, or start a new run in another log_path; from= takes its weights along (a state_path of ${checkpoints}). Nothing was changed.`,
  );
}

guarded(() => {
  const files = new RunFiles(runPath);
  const writer = new JournalWriter(runPath, readPast(files));
  const repaired = files.caughtUp();

  const waiting: Extract<ToWorker, { kind: "append" }>[] = [];
  let scheduled = false;
  const flush = () => {
    scheduled = false;
    guarded(() => {
      const batch = waiting.splice(0);
      if (batch.length === 0) return;
      const hurry = batch.length > deflatedWaiting;
      const frames = batch.map(({ json, arrays }) => {
        const frame = encodeFrame(json, arrays, hurry);
        writer.write(frame);
        return frame;
      });
      writer.sync();
      send({ kind: "durable", count: batch.length, bytes: writer.bytes });
      for (const [index, { json }] of batch.entries()) files.take(JSON.parse(json) as RunEvent, frames[index]);
    });
  };
  port.on("message", (message: ToWorker) => {
    if (message.kind === "append") {
      waiting.push(message);
      if (!scheduled) setImmediate(flush);
      scheduled = true;
      return;
    }
    flush();
    if (message.kind === "thin") guarded(() => thinSegments(runPath, writer.current, message.step));
    else {
      guarded(() => {
        files.close();
        writer.close();
      });
      port.close();
    }
  });
  send({ kind: "ready", bytes: writer.bytes, repaired });
});
