// Reads a journal: its segments in order, event by event. Arrays are read only when asked for. A last frame that a crash left
// incomplete is left out; damage anywhere else is an error that names file and offset.
import { type CursorOptions, type Frame, isBefore, JournalCursor, type JournalPosition } from "./cursor.ts";
import type { JournalEntry } from "./events.ts";

/** Every event of a run, oldest first. */
export function* readJournal(runPath: string, from?: JournalPosition): Generator<JournalEntry, void, undefined> {
  for (const frame of framesOf(runPath, { from })) {
    const { hasArrays, arrays } = frame;
    yield { event: frame.event(), hasArrays, arrays };
  }
}

/** Every whole frame from one position to another, each decoded as it is asked for. */
export function* framesOf(
  runPath: string,
  { to, ...options }: Omit<CursorOptions, "isChecked"> & { to?: JournalPosition | undefined } = {},
): Generator<Frame, void, undefined> {
  const cursor = new JournalCursor(runPath, { ...options, isChecked: true });
  try {
    for (let frame = cursor.next(); frame; frame = cursor.next()) {
      if (to && !isBefore(frame.position, to)) return;
      yield frame;
    }
  } finally {
    cursor.close();
  }
}
