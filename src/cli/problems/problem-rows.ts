// The rows of problems as `./whet certify` reads them: a file of JSON lines, stdin, or everything that training would read of a folder, a
// Parquet file or a named set.
import { rmSync, statSync } from "node:fs";
import { extname, join } from "node:path";
import { ConfigError } from "../../core/errors.ts";
import { scratchFolder } from "../../core/files.ts";
import { DataError } from "../../data/errors.ts";
import { openRows } from "../../data/formats.ts";
import { findFiles, type ProblemFile, sourceOf } from "../../data/sources.ts";
import { Spill } from "../../data/spill.ts";
import { type JsonObject, toJson } from "../../grading/json.ts";
import { type JsonRow, readRows } from "./json-rows.ts";

export interface ProblemRow extends JsonRow {
  /** The file that it is in; undefined for stdin. */
  file: string | undefined;
  /** Where it comes from where the row itself does not say; the shape of tests may depend on it. */
  source: string | undefined;
  /** Languages of its answers where the row itself does not say. */
  languages: ProblemFile["languages"];
  /** Rows of one part of the data must have ids of their own. */
  part: string;
}

/** Every row that a word names, in order. */
export async function* problemRows(word: string, maxTestsBytes: number): AsyncGenerator<ProblemRow> {
  if (word === "-" || isLines(word)) {
    const file = word === "-" ? {} : { path: word, source: sourceOf(word.replace(/\.gz$/i, "")) };
    const nothing = { path: undefined, source: undefined, split: "", languages: undefined };
    yield* inFile(readRows(word), { ...nothing, ...file }, 0, 1);
    return;
  }
  const files = await filesOf(word);
  for (const [index, file] of files.entries()) {
    const isParquet = extname(file.path).toLowerCase() === ".parquet";
    yield* inFile(isParquet ? parquetRows(file.path, maxTestsBytes) : readRows(file.path), file, index, files.length);
  }
}

/** A file of JSON lines, whatever it is called. */
const isLines = (word: string) =>
  statSync(word, { throwIfNoEntry: false })?.isFile() === true && extname(word).toLowerCase() !== ".parquet";

/** The files that training or evaluation would read of it. */
async function filesOf(word: string): Promise<ProblemFile[]> {
  const found = new Map<string, ProblemFile>();
  const failures: DataError[] = [];
  for (const split of ["train", "test"] as const)
    try {
      for (const file of await findFiles(word, split)) found.set(file.path, file);
    } catch (error) {
      if (!(error instanceof DataError)) throw error;
      failures.push(error);
    }
  if (found.size === 0) throw new ConfigError("config/no-file", failures[0]!.message, { cause: failures[0] });
  return [...found.values()];
}

async function* inFile(
  rows: AsyncIterable<JsonRow>,
  {
    path,
    source,
    split,
    languages,
  }: Pick<ProblemFile, "split" | "languages"> & { path: string | undefined; source: string | undefined },
  index: number,
  files: number,
): AsyncGenerator<ProblemRow> {
  for await (const row of rows) {
    const fraction = row.fraction === undefined ? undefined : (index + row.fraction) / files;
    yield { ...row, fraction, file: path, source, languages, part: split };
  }
}

async function* parquetRows(path: string, maxTestsBytes: number): AsyncGenerator<JsonRow> {
  const scratch = scratchFolder("certify");
  const file = openRows(path, new Spill(join(scratch, "tests"), maxTestsBytes));
  let line = 0;
  try {
    for await (const { place, head, tests } of file.scan()) {
      const value = toJson(head.fields) as JsonObject;
      const text = tests && tests.byteLength <= maxTestsBytes ? await tests.text() : undefined;
      // What is too large to read is still known to be too large.
      if (tests) value.set("tests", text ?? " ".repeat(maxTestsBytes + 1));
      value.set("solutions", await file.loadSolutions(place, line));
      for (const column of head.columns) if (!value.has(column)) value.set(column, null);
      yield { line: ++line, value, problem: "", fraction: undefined };
    }
  } finally {
    rmSync(scratch, { recursive: true, force: true });
  }
}
