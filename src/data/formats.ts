// The formats of problem files, by the ending of the file's name. A new one is its reader and a line here.
import { extname } from "node:path";
import { JsonLinesFile } from "./jsonl.ts";
import { ParquetFile } from "./parquet.ts";
import type { RowFile } from "./rows.ts";
import type { Spill } from "./spill.ts";

type Open = (path: string, spill: Spill, maxTestsBytes: number) => RowFile;

const formats: Readonly<Record<string, Open>> = {
  ".parquet": (path, spill, maxTestsBytes) => new ParquetFile(path, spill, maxTestsBytes),
  ".jsonl": (path) => new JsonLinesFile(path),
  ".ndjson": (path) => new JsonLinesFile(path),
};

/** The endings of files that can be read. */
export const extensions: readonly string[] = Object.keys(formats);

export const isProblemFile = (path: string): boolean => extensions.includes(extname(path).toLowerCase());

/** The reader of a file that `isProblemFile` accepts. */
export const openRows: Open = (path, spill, maxTestsBytes) =>
  formats[extname(path).toLowerCase()]!(path, spill, maxTestsBytes);
