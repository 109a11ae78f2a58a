// Reads a segment of a journal at offsets, through one buffer.
import { closeSync, fstatSync, openSync, readSync, statSync } from "node:fs";
import { decodeHeader, decodeJson, headerBytes } from "./frames.ts";

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

  /** Looks again how long the file is; true when it has become shorter, so that what was read may be gone. */
  refresh(): boolean {
    const { size } = fstatSync(this.#descriptor);
    const shorter = size < this.#size;
    // Also where the length is the same: a torn end may have been cut off and written anew.
    this.#chunk = Buffer.alloc(0);
    this.#size = size;
    return shorter;
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
