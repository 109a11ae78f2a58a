// The files of a journal: which there are, and the bytes of one, read at offsets through one buffer.
import { closeSync, existsSync, fstatSync, openSync, readdirSync, readSync, statSync } from "node:fs";
import { basename, join } from "node:path";
import { RunError, runFiles } from "./directory.ts";
import { decodeHeader, decodeJson, headerBytes } from "./frames.ts";

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

export function damaged(path: string, offset: number, what: string): RunError {
  return new RunError(
    "runs/journal-damaged",
    `${path} is damaged at byte ${offset}: ${what}. Restore the file from a copy; or, to go on from the last checkpoint before that, ` +
      "cut the file there (truncate --size) and move later segments away. Nothing was changed.",
  );
}

const chunkBytes = 1 << 20;

export class SegmentReader {
  readonly path: string;
  /** Which file it is: another one under the same name has another number. */
  readonly inode: number;
  #size: number;
  readonly #descriptor: number;
  #chunk: Buffer = Buffer.alloc(0);
  #chunkStart = 0;

  /** The file's number now; undefined when it is gone. */
  static inodeOf(path: string): number | undefined {
    return statSync(path, { throwIfNoEntry: false })?.ino;
  }

  constructor(path: string) {
    this.path = path;
    this.#descriptor = openSync(path, "r");
    const { size, ino } = fstatSync(this.#descriptor);
    this.#size = size;
    this.inode = ino;
  }

  get size(): number {
    return this.#size;
  }

  /** Looks again how long the file is. */
  refresh(): void {
    // Also where the length is the same: a torn end may have been cut off and written anew.
    this.#chunk = Buffer.alloc(0);
    this.#size = fstatSync(this.#descriptor).size;
  }

  /** At most `length` bytes; fewer at the end of the file. Valid until the next call. */
  read(offset: number, length: number): Buffer {
    const wanted = Math.max(0, Math.min(length, this.#size - offset));
    if (offset < this.#chunkStart || offset + wanted > this.#chunkStart + this.#chunk.length) {
      const buffer = Buffer.allocUnsafe(Math.min(Math.max(chunkBytes, wanted), this.#size - offset));
      let filled = 0;
      while (filled < buffer.length) {
        const count = readSync(this.#descriptor, buffer, filled, buffer.length - filled, offset + filled);
        if (count === 0) break;
        filled += count;
      }
      this.#chunk = buffer.subarray(0, filled);
      this.#chunkStart = offset;
    }
    const start = offset - this.#chunkStart;
    return this.#chunk.subarray(start, start + wanted);
  }

  /** Whether a readable frame stands anywhere behind a broken place: then it is damage, not an unfinished end. */
  hasFrameAfter(offset: number): boolean {
    for (let start = offset + 1; start < this.#size; start += chunkBytes - headerBytes) {
      const bytes = Buffer.from(this.read(start, chunkBytes));
      for (let at = bytes.indexOf("WJ"); at >= 0; at = bytes.indexOf("WJ", at + 1)) {
        const header = decodeHeader(bytes.subarray(at, at + headerBytes));
        if (
          header &&
          decodeJson(header, Buffer.from(this.read(start + at + headerBytes, header.jsonBytes))) !== undefined
        )
          return true;
      }
    }
    return false;
  }

  close(): void {
    closeSync(this.#descriptor);
  }
}
