// The rows of a suite's files as they are published: JSON lines (also .gz) or Parquet, every column.
import { readFileSync } from "node:fs";
import { extname } from "node:path";
import { gunzipSync } from "node:zlib";
import { asyncBufferFromFile, parquetReadObjects, toJson } from "hyparquet";
import { compressors } from "hyparquet-compressors";
import { messageOf } from "../core/errors.ts";
import { DataError } from "../data/errors.ts";
import { bytesAt, lines } from "../data/jsonl.ts";

export type Row = Readonly<Record<string, unknown>>;

export interface SuiteRow {
  row: Row;
  /** The row once more: of a file of JSON lines from the disk, so that no row has to be kept for its tests. */
  again(): Promise<Row>;
}

export async function* rowsOf(path: string): AsyncGenerator<SuiteRow> {
  try {
    if (/\.(jsonl|ndjson)$/i.test(path)) {
      for await (const { line, offset } of lines(path))
        yield { row: parse(line), again: async () => parse(await bytesAt(path, offset, line.length)) };
      return;
    }
    for (const row of await whole(path)) yield { row, again: () => Promise.resolve(row) };
  } catch (cause) {
    if (cause instanceof DataError) throw cause;
    throw new DataError(
      "data/bad-suite",
      `${path} cannot be read as a suite's rows (${messageOf(cause)}). Give .jsonl, .jsonl.gz or .parquet as it was published.`,
      { cause },
    );
  }
}

const parse = (line: Buffer | string): Row => JSON.parse(line.toString()) as Row;

async function whole(path: string): Promise<Row[]> {
  if (extname(path).toLowerCase() === ".parquet")
    return toJson(await parquetReadObjects({ file: await asyncBufferFromFile(path), compressors })) as Row[];
  const bytes = readFileSync(path);
  const text = (/\.gz$/i.test(path) ? gunzipSync(bytes) : bytes).toString("utf8");
  return text.trim() === "" ? [] : text.trim().split("\n").map(parse);
}
