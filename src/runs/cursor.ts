// Walks a journal frame by frame without decoding what nobody asks for, from any frame on, and goes on where it ended when more was
// written: what a reader of a long journal, or of one that another process writes, needs. Frames are decoded when they are asked for.
import { existsSync } from "node:fs";
import { join } from "node:path";
import { runFiles } from "./directory.ts";
import type { Arrays } from "./events.ts";
import { bulkKinds, decodeArrays, decodeHeader, decodeJson, type FrameHeader, headerBytes, kindOf } from "./frames.ts";
import { damaged, segmentFile, wholeSegments } from "./read-journal.ts";
import { SegmentReader } from "./segment-reader.ts";

/** Where a frame begins. */
export interface JournalPosition {
  segment: number;
  offset: number;
}

export type BulkKind = keyof typeof bulkKinds;

const kindNames = new Map<number, BulkKind>(
  Object.entries(bulkKinds).map(([name, number]) => [number, name as BulkKind]),
);

/** The journal is no longer the one whose positions are known: its segments were rewritten, or the run began anew. */
export class JournalReplaced extends Error {}

export const isBefore = (a: JournalPosition, b: JournalPosition): boolean =>
  a.segment < b.segment || (a.segment === b.segment && a.offset < b.offset);

/** One frame of a journal; valid until the cursor moves. */
export class Frame {
  readonly position: JournalPosition;
  /** One of the events that are nearly all of a journal; undefined: another one. */
  readonly bulk: BulkKind | undefined;
  readonly #reader: SegmentReader;
  readonly #header: FrameHeader;

  constructor(reader: SegmentReader, position: JournalPosition, header: FrameHeader) {
    this.#reader = reader;
    this.position = position;
    this.#header = header;
    this.bulk = kindNames.get(header.flags >> 4) ?? this.#sniffed();
  }

  get hasArrays(): boolean {
    return this.#header.arrayBytes > 0;
  }

  /** The event as it was written: JSON, not checked against the schema. */
  json(): unknown {
    const text = decodeJson(this.#header, this.#reader.read(this.#jsonStart, this.#header.jsonBytes));
    if (text === undefined) throw damaged(this.#reader.path, this.position.offset, "it does not fit its checksum");
    return JSON.parse(text);
  }

  arrays(): Arrays {
    if (!this.hasArrays) return {};
    const bytes = this.#reader.read(this.#jsonStart + this.#header.jsonBytes, this.#header.arrayBytes);
    const arrays = decodeArrays(this.#header, bytes);
    if (!arrays) throw damaged(this.#reader.path, this.position.offset, "its arrays do not fit their checksum");
    return arrays;
  }

  get #jsonStart(): number {
    return this.position.offset + headerBytes;
  }

  /** The kind of a frame whose writer did not say: from its first bytes where they are plain. */
  #sniffed(): BulkKind | undefined {
    if ((this.#header.flags & 1) !== 0) return undefined;
    return kindNames.get(kindOf(this.#reader.read(this.#jsonStart, 40).toString("latin1")));
  }
}

export class JournalCursor {
  readonly #runPath: string;
  #reader: SegmentReader | undefined;
  #segment: number;
  #offset: number;
  /** By segment: the file that its positions are of. */
  readonly #inodes: Map<number, number>;
  #stuckAt = -1;

  /** `inodes`: of another cursor of this journal; positions count only while the files are the same. */
  constructor(runPath: string, from: JournalPosition = { segment: 0, offset: 0 }, inodes = new Map<number, number>()) {
    this.#runPath = runPath;
    this.#segment = from.segment;
    this.#offset = from.offset;
    this.#inodes = inodes;
  }

  get position(): JournalPosition {
    return { segment: this.#segment, offset: this.#offset };
  }

  get inodes(): Map<number, number> {
    return this.#inodes;
  }

  /** The next whole frame; undefined where there is none yet. Throws on damage, and when the files are others than they were. */
  next(): Frame | undefined {
    for (;;) {
      const reader = this.#open();
      if (!reader) return undefined;
      const frame = this.#frameAt(reader, this.#offset);
      if (frame) return frame;
      if (existsSync(this.#pathOf(this.#segment + 1))) {
        // Looked at before the next one was begun? Then there may be more by now.
        reader.refresh();
        const late = this.#frameAt(reader, this.#offset);
        if (late) return late;
        if (this.#offset < reader.size) throw damaged(reader.path, this.#offset, "the bytes there are no whole record");
        this.#move(this.#segment + 1);
        continue;
      }
      return this.#grown(reader) ? this.#frameAt(reader, this.#offset) : undefined;
    }
  }

  /** Lets go of the file; `next` opens it again. */
  close(): void {
    this.#reader?.close();
    this.#reader = undefined;
  }

  #frameAt(reader: SegmentReader, offset: number): Frame | undefined {
    if (offset + headerBytes > reader.size) return undefined;
    const header = decodeHeader(reader.read(offset, headerBytes));
    if (!header) return undefined;
    const end = offset + headerBytes + header.jsonBytes + header.arrayBytes;
    if (end > reader.size) return undefined;
    this.#offset = end;
    return new Frame(reader, { segment: this.#segment, offset }, header);
  }

  /** Whether there is more in the segment than when it was last looked at. */
  #grown(reader: SegmentReader): boolean {
    const before = reader.size;
    reader.refresh();
    const known = this.#inodes.get(this.#segment);
    const now = SegmentReader.inodeOf(reader.path);
    if (reader.size < this.#offset || (known !== undefined && now !== known)) throw new JournalReplaced();
    if (reader.size > before) return true;
    // An unfinished end is being written, or was left by a crash; a frame behind it means damage. Looked for once.
    if (reader.size > this.#offset && this.#stuckAt !== reader.size) {
      this.#stuckAt = reader.size;
      if (reader.hasFrameAfter(this.#offset))
        throw damaged(reader.path, this.#offset, "the bytes there are no whole record");
    }
    return false;
  }

  #open(): SegmentReader | undefined {
    if (this.#reader) return this.#reader;
    const path = this.#pathOf(this.#segment);
    wholeSegments(this.#runPath);
    if (!existsSync(path)) {
      if (this.#inodes.has(this.#segment)) throw new JournalReplaced();
      return undefined;
    }
    const reader = new SegmentReader(path);
    const known = this.#inodes.get(this.#segment);
    if ((known !== undefined && known !== reader.inode) || reader.size < this.#offset) {
      reader.close();
      throw new JournalReplaced();
    }
    this.#inodes.set(this.#segment, reader.inode);
    this.#reader = reader;
    return reader;
  }

  #move(segment: number): void {
    this.close();
    this.#segment = segment;
    this.#offset = 0;
  }

  #pathOf(segment: number): string {
    return join(this.#runPath, runFiles.journal, segmentFile(segment));
  }
}
