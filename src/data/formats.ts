// The formats of problem files, by the ending of the file's name. A new one is its reader and a line here.
import { extname } from "node:path";
import { JsonLinesFile } from "./jsonl.ts";
import { ParquetFile } from "./parquet.ts";
import type { RowFile } from "./rows.ts";
import type { Spill } from "./spill.ts";

/** The spill is for tests that cannot be read again one by one. */
type Open = (path: string, spill: Spill) => RowFile;

const formats: Readonly<Record<string, Open>> = {
  ".parquet": (path, spill) => new ParquetFile(path, spill),
  ".jsonl": (path) => new JsonLinesFile(path),
  ".ndjson": (path) => new JsonLinesFile(path),
};

/** The endings of files that can be read. */
export const extensions: readonly string[] = Object.keys(formats);

export const isProblemFile = (path: string): boolean => extensions.includes(extname(path).toLowerCase());

/** The reader of a file that `isProblemFile` accepts. */
export const openRows: Open = (path, spill) => formats[extname(path).toLowerCase()]!(path, spill);
