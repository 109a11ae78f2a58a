// Reads a journal: its segments in order, event by event. Arrays are read only when asked for. A last frame that a crash left
// incomplete is left out; damage anywhere else is an error that names file and offset.
import { type Frame, JournalCursor, type JournalPosition } from "./cursor.ts";
import type { Arrays, RunEvent } from "./events.ts";
import { wholeSegments } from "./segments.ts";

export interface JournalEntry {
  event: RunEvent;
  hasArrays: boolean;
  /** Reads the event's arrays; empty where it has none. */
  arrays(): Arrays;
}

/** Every event of a run, oldest first. */
export function* readJournal(runPath: string, from?: JournalPosition): Generator<JournalEntry, void, undefined> {
  for (const frame of framesOf(runPath, from)) {
    const { hasArrays } = frame;
    yield { event: frame.event(), hasArrays, arrays: frame.arrays };
  }
}

/** Every whole frame from a position on. */
export function* framesOf(runPath: string, from?: JournalPosition): Generator<Frame, void, undefined> {
  const cursor = new JournalCursor(runPath, { from, isChecked: true });
  try {
    for (let frame = cursor.next(); frame; frame = cursor.next()) yield frame;
  } finally {
    cursor.close();
  }
}

/** The last whole event of a run, without decoding those before it; undefined where there is none. */
export function lastEvent(runPath: string): RunEvent | undefined {
  for (let segment = wholeSegments(runPath).length - 1; segment >= 0; segment--) {
    const cursor = new JournalCursor(runPath, { from: { segment, offset: 0 } });
    try {
      let last: Frame | undefined;
      for (let frame = cursor.next(); frame; frame = cursor.next()) last = frame;
      if (last) return last.event();
    } finally {
      cursor.close();
    }
  }
  return undefined;
}
