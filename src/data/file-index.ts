// Goes through a file of problems once and notes for every row where its tests are, how large they are, and whether they can be used.
// The notes are kept in the cache, so that the next run does not read gigabytes of tests again.
import { createHash } from "node:crypto";
import { mkdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { cacheFolder } from "../core/cache.ts";
import { messageOf } from "../core/errors.ts";
import { writeFileAtomic } from "../core/files.ts";
import { turnTaker } from "../core/turns.ts";
import { DataError } from "./errors.ts";
import { openRows } from "./formats.ts";
import type { LoadOptions } from "./load.ts";
import { metadataOf } from "./problem.ts";
import type { Place, RowFile } from "./rows.ts";
import type { ProblemFile } from "./sources.ts";
import { Spill } from "./spill.ts";

/** Says whether raw tests can be graded. `reason` null: yes. `facts` is small, is kept as JSON, and comes back on the problem. */
export type TestsCheck = (
  tests: string,
  context: { source: string; metadata: Record<string, unknown> },
) => { reason: string | null; facts?: unknown };

/** Notes are kept between runs only where `checkVersion` is given, and only for the same rules. */
type IndexOptions = Pick<LoadOptions, "checkTests" | "checkVersion" | "indexFolder" | "signal"> & {
  maxTestsBytes: number;
};

export interface RowNote {
  place: Place;
  testsBytes: number;
  /** Why the row cannot be used, or null. */
  reason: string | null;
  facts: unknown;
}

export interface IndexedFile {
  rows: RowFile;
  notes: RowNote[];
}

/** Part of the key of kept notes: raised when their meaning changes. */
const formatVersion = 2;

/** The file with a note for every row. */
export async function indexFile(file: ProblemFile, options: IndexOptions, onRow: () => void): Promise<IndexedFile> {
  const folder = options.indexFolder ?? join(cacheFolder(), "indexes");
  const rules = options.checkTests ? options.checkVersion : "no check";
  const key = createHash("sha256")
    .update(JSON.stringify([formatVersion, file.hash, file.source, options.maxTestsBytes, rules ?? null]))
    .digest("hex");
  const spill = new Spill(join(folder, `${key}.tests`), options.maxTestsBytes);
  const rows = openRows(file.path, spill);
  const kept = join(folder, `${key}.json`);
  if (rules !== undefined) {
    const notes = await readNotes(kept, spill);
    if (notes) return { rows, notes };
  }
  try {
    const notes = await scan(file, rows, options, onRow);
    if (rules !== undefined) await keepNotes(kept, notes, spill);
    return { rows, notes };
  } catch (error) {
    await spill.abandon();
    throw error;
  }
}

async function scan(
  file: ProblemFile,
  rows: RowFile,
  { maxTestsBytes, checkTests, signal }: IndexOptions,
  onRow: () => void,
): Promise<RowNote[]> {
  const notes: RowNote[] = [];
  // Progress is shown and signals are handled while a long file is read.
  const takeTurns = turnTaker();
  for await (const { place, head, tests } of rows.scan()) {
    const note: RowNote = { place, testsBytes: tests?.byteLength ?? 0, reason: null, facts: null };
    if (head.problem !== undefined) note.reason = "bad_row";
    else if (!tests) note.reason = "no_tests";
    else if (tests.byteLength > maxTestsBytes) note.reason = "tests_too_big";
    else if (checkTests) {
      const { reason, facts } = checkTests(await tests.text(), {
        source: sourceOfRow(head.fields.source, file),
        metadata: metadataOf(head.fields),
      });
      note.reason = reason;
      note.facts = facts ?? null;
    }
    notes.push(note);
    onRow();
    signal?.throwIfAborted();
    await takeTurns();
  }
  return notes;
}

/** A row may name its source itself. */
export function sourceOfRow(value: unknown, file: ProblemFile): string {
  return typeof value === "string" && value !== "" ? value : file.source;
}

async function readNotes(path: string, spill: Spill): Promise<RowNote[] | undefined> {
  const text = await readFile(path, "utf8").catch(() => undefined);
  if (text === undefined) return undefined;
  try {
    const { notes, spillBytes } = JSON.parse(text) as { notes: RowNote[]; spillBytes: number };
    return (await spill.size()) === spillBytes ? notes : undefined;
  } catch {
    return undefined;
  }
}

async function keepNotes(path: string, notes: RowNote[], spill: Spill): Promise<void> {
  try {
    await mkdir(join(path, ".."), { recursive: true });
    writeFileAtomic(path, JSON.stringify({ notes, spillBytes: await spill.size() }));
  } catch (cause) {
    throw new DataError(
      "data/cache",
      `${path} cannot be written: ${messageOf(cause)}. Free some space, or set WHETSTONE_CACHE to another folder.`,
      { cause },
    );
  }
}
