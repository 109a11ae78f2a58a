// Reads a journal: its segments in order, event by event. Arrays are read only when asked for. A last frame that a crash left
// incomplete is left out; damage anywhere else is an error that names file and offset.
import { existsSync, readdirSync, statSync } from "node:fs";
import { basename, join } from "node:path";
import { messageOf } from "../core/errors.ts";
import { RunError, runFiles } from "./directory.ts";
import { type Arrays, RunEvent } from "./events.ts";
import { decodeArrays, decodeHeader, decodeJson, type FrameHeader, headerBytes } from "./frames.ts";
import { SegmentReader } from "./segment-reader.ts";

export interface JournalEntry {
  event: RunEvent;
  hasArrays: boolean;
  /** Reads the event's arrays; empty where it has none. */
  arrays(): Arrays;
}

/** `journal/000003.wj`. */
export const segmentFile = (number: number) => `${String(number).padStart(6, "0")}.wj`;

/** The segments of a run's journal, oldest first. */
export function journalSegments(runPath: string): string[] {
  const folder = join(runPath, runFiles.journal);
  if (!existsSync(folder)) return [];
  return readdirSync(folder)
    .filter((name) => /^\d{6}\.wj$/.test(name))
    .sort()
    .map((name) => join(folder, name));
}

/** The same, where none is missing or empty among them: what was written after a gap means nothing without it. */
export function wholeSegments(runPath: string): string[] {
  const segments = journalSegments(runPath);
  const gap = segments.findIndex((path, number) => basename(path) !== segmentFile(number));
  if (gap >= 0)
    throw damaged(
      join(runPath, runFiles.journal, segmentFile(gap)),
      0,
      "the file is missing, and later ones are there",
    );
  const emptied = segments.slice(0, -1).find((path) => statSync(path).size === 0);
  if (emptied !== undefined) throw damaged(emptied, 0, "the file is empty, and later ones are there");
  return segments;
}

/** Every event of a run, oldest first. */
export function* readJournal(runPath: string): Generator<JournalEntry, void, undefined> {
  const segments = wholeSegments(runPath);
  for (const [index, path] of segments.entries())
    for (const frame of readSegment(path, { last: index === segments.length - 1 })) yield frame.entry;
}

/** The last whole event of a run, without reading those before it; undefined where there is none. */
export function lastEvent(runPath: string): RunEvent | undefined {
  for (const path of wholeSegments(runPath).reverse()) {
    const file = new SegmentReader(path);
    try {
      let last: { offset: number; header: FrameHeader } | undefined;
      for (let offset = 0; offset < file.size; ) {
        const header = decodeHeader(file.read(offset, headerBytes));
        const end = header ? offset + headerBytes + header.jsonBytes + header.arrayBytes : file.size + 1;
        if (end > file.size) {
          if (file.hasFrameAfter(offset)) throw damaged(path, offset, "the bytes there are no whole record");
          break;
        }
        last = { offset, header: header! };
        offset = end;
      }
      if (!last) continue;
      const json = decodeJson(last.header, file.read(last.offset + headerBytes, last.header.jsonBytes));
      if (json === undefined) throw damaged(path, last.offset, "its text does not fit its checksum");
      return parseEvent(path, last.offset, json);
    } finally {
      file.close();
    }
  }
  return undefined;
}

/** How many bytes of the last segment are whole frames: what stands after them was torn by a crash. */
export function wholeBytes(path: string): number {
  let end = 0;
  for (const frame of readSegment(path, { last: true })) end = frame.end;
  return end;
}

/** The frames of one segment. In the last segment, an unfinished end is no error. */
export function* readSegment(
  path: string,
  { last, from = 0 }: { last: boolean; from?: number },
): Generator<{ entry: JournalEntry; end: number }, void, undefined> {
  const file = new SegmentReader(path);
  try {
    for (let offset = from; offset < file.size; ) {
      const header = decodeHeader(file.read(offset, headerBytes));
      const json = header && decodeJson(header, file.read(offset + headerBytes, header.jsonBytes));
      const end = header ? offset + headerBytes + header.jsonBytes + header.arrayBytes : file.size + 1;
      if (json === undefined || end > file.size) {
        if (last && !file.hasFrameAfter(offset)) return;
        throw damaged(path, offset, "the bytes there are no whole record");
      }
      const event = parseEvent(path, offset, json);
      yield { entry: { event, hasArrays: header!.arrayBytes > 0, arrays: arraysAt(path, offset, header!) }, end };
      offset = end;
    }
  } finally {
    file.close();
  }
}

function parseEvent(path: string, offset: number, json: string): RunEvent {
  try {
    return RunEvent.parse(JSON.parse(json));
  } catch (error) {
    throw damaged(
      path,
      offset,
      `${json.slice(0, 120)} is no event of this version (${messageOf(error).slice(0, 200)})`,
    );
  }
}

function arraysAt(path: string, offset: number, header: FrameHeader): () => Arrays {
  return () => {
    if (header.arrayBytes === 0) return {};
    const file = new SegmentReader(path);
    try {
      const arrays = decodeArrays(header, file.read(offset + headerBytes + header.jsonBytes, header.arrayBytes));
      if (!arrays) throw damaged(path, offset, "its arrays do not fit their checksum");
      return arrays;
    } finally {
      file.close();
    }
  };
}

export function damaged(path: string, offset: number, what: string): RunError {
  return new RunError(
    "runs/journal-damaged",
    `${path} is damaged at byte ${offset}: ${what}. Restore the file from a copy; or, to go on from the last checkpoint before that, ` +
      "cut the file there (truncate --size) and move later segments away. Nothing was changed.",
  );
}
