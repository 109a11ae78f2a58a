// keep_journal=checkpoint: once a checkpoint is safe, the arrays of steps before it (tokens and log-probabilities, nearly all of a
// journal's bytes) are dropped. Events stay, so every file and figure can still be made; only a replay of those steps cannot.
import { closeSync, openSync, statSync } from "node:fs";
import { replaceFile, writeAll } from "../core/files.ts";
import { toJsonLine } from "../core/jsonl.ts";
import type { RunEvent } from "./events.ts";
import { encodeFrame } from "./frames.ts";
import { framesOf } from "./read-journal.ts";
import { journalSegments } from "./segments.ts";

/** Segments below this size are not worth rewriting, and thinned ones stay below it. */
const worthBytes = 1024 * 1024;

/** Drops the arrays of steps before `step` from every segment before the one that is being written. */
export function thinSegments(runPath: string, current: number, step: number): void {
  for (const [segment, path] of journalSegments(runPath).slice(0, current).entries()) {
    if (statSync(path).size < worthBytes) continue;
    replaceFile(path, (temporary) => {
      const descriptor = openSync(temporary, "w");
      try {
        for (const frame of framesOf(runPath, { from: { segment, offset: 0 } })) {
          if (frame.position.segment !== segment) break;
          const event = frame.event();
          const arrays = belongsBefore(event, step) ? {} : frame.arrays();
          for (const bytes of encodeFrame(toJsonLine(event).trimEnd(), arrays)) writeAll(descriptor, bytes);
        }
      } finally {
        closeSync(descriptor);
      }
    });
  }
}

function belongsBefore(event: RunEvent, step: number): boolean {
  if (event.type === "group-sampled" || event.type === "turn-sampled") return event.batch < step;
  return event.type === "update-submitted" || event.type === "update-done" ? event.step < step : true;
}
