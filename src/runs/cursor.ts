// Walks a journal frame by frame without decoding what nobody asks for, from any frame on, and goes on where it ended when more was
// written. Every reader of a journal walks with it.
import { existsSync } from "node:fs";
import { join } from "node:path";
import { messageOf } from "../core/errors.ts";
import { runFiles } from "./directory.ts";
import { type Arrays, RunEvent } from "./events.ts";
import {
  bulkKinds,
  decodeArrays,
  decodeHeader,
  decodeJson,
  type FrameHeader,
  headerBytes,
  isIntact,
} from "./frames.ts";
import { damaged, SegmentReader, segmentFile, wholeSegments } from "./segments.ts";

/** Where a frame begins. */
export interface JournalPosition {
  segment: number;
  offset: number;
}

export type BulkKind = keyof typeof bulkKinds;

export const isBulk = (type: RunEvent["type"]): type is BulkKind => Object.hasOwn(bulkKinds, type);

const kindNames = new Map<number, BulkKind>(
  Object.entries(bulkKinds).map(([name, number]) => [number, name as BulkKind]),
);

/** The journal is no longer the one whose positions are known: its segments were rewritten, or the run began anew. */
export class JournalReplaced extends Error {
  constructor() {
    super("The journal was rewritten while it was read. Read it again.");
  }
}

export const isBefore = (a: JournalPosition, b: JournalPosition): boolean =>
  a.segment < b.segment || (a.segment === b.segment && a.offset < b.offset);

/** One frame of a journal. Its event can be read until the cursor is closed or in another segment. */
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
    this.bulk = kindNames.get(header.flags >> 4);
  }

  get hasArrays(): boolean {
    return this.#header.arrayBytes > 0;
  }

  /** The event, checked. */
  event(): RunEvent {
    const text = this.#text();
    try {
      return RunEvent.parse(JSON.parse(text));
    } catch (error) {
      const reason = messageOf(error).slice(0, 200);
      throw this.#damaged(`${text.slice(0, 120)} is no event of this version (${reason})`);
    }
  }

  /** Reads the event's arrays, at any time; empty where it has none. */
  readonly arrays = (): Arrays => {
    const { arrayBytes, jsonBytes } = this.#header;
    if (arrayBytes === 0) return {};
    const file = new SegmentReader(this.#reader.path);
    try {
      if (file.inode !== this.#reader.inode) throw new JournalReplaced();
      const bytes = file.read(this.position.offset + headerBytes + jsonBytes, arrayBytes);
      const arrays = decodeArrays(this.#header, bytes);
      if (!arrays) throw this.#damaged("its arrays do not fit their checksum");
      return arrays;
    } finally {
      file.close();
    }
  };

  #text(): string {
    const text = decodeJson(
      this.#header,
      this.#reader.read(this.position.offset + headerBytes, this.#header.jsonBytes),
    );
    if (text === undefined) throw this.#damaged("its text does not fit its checksum");
    return text;
  }

  #damaged(what: string): Error {
    return damaged(this.#reader.path, this.position.offset, what);
  }
}

export interface CursorOptions {
  /** Default: the journal's beginning. */
  from?: JournalPosition | undefined;
  /** Files of another cursor of this journal, by segment; positions count only while the files are the same. */
  inodes?: Map<number, number>;
  /** Every text is held against its checksum. A last frame that does not fit was torn by a crash, and is left out. */
  isChecked?: boolean;
}

export class JournalCursor {
  readonly #runPath: string;
  readonly #isChecked: boolean;
  #reader: SegmentReader | undefined;
  #segment: number;
  #offset: number;
  /** By segment: the file that its positions are of. */
  readonly inodes: Map<number, number>;
  #stuckAt = -1;

  constructor(
    runPath: string,
    { from = { segment: 0, offset: 0 }, inodes = new Map(), isChecked = false }: CursorOptions = {},
  ) {
    this.#runPath = runPath;
    this.#segment = from.segment;
    this.#offset = from.offset;
    this.#isChecked = isChecked;
    this.inodes = inodes;
  }

  /** Where the next frame begins. */
  get position(): JournalPosition {
    return { segment: this.#segment, offset: this.#offset };
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
    if (this.#isChecked && !isIntact(header, reader.read(offset + headerBytes, header.jsonBytes))) return undefined;
    this.#offset = end;
    return new Frame(reader, { segment: this.#segment, offset }, header);
  }

  /** Whether there is more in the segment than when it was last looked at. */
  #grown(reader: SegmentReader): boolean {
    const before = reader.size;
    reader.refresh();
    const known = this.inodes.get(this.#segment);
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
      if (this.inodes.has(this.#segment)) throw new JournalReplaced();
      return undefined;
    }
    const reader = new SegmentReader(path);
    const known = this.inodes.get(this.#segment);
    if ((known !== undefined && known !== reader.inode) || reader.size < this.#offset) {
      reader.close();
      throw new JournalReplaced();
    }
    this.inodes.set(this.#segment, reader.inode);
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
