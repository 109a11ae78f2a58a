// Reads a file of JSON lines (plain or .gz, "-" for stdin) one row at a time, numbers unharmed, however large the file is.
import { createReadStream, statSync } from "node:fs";
import { createGunzip } from "node:zlib";
import { ConfigError, messageOf } from "../../core/errors.ts";
import { whyNoObject } from "../../core/json-text.ts";
import { linesOf } from "../../core/jsonl.ts";
import { type JsonObject, readJson } from "../../grading/index.ts";

export interface JsonRow {
  /** 1-based line number. */
  line: number;
  /** undefined when the line is not a JSON object. */
  value: JsonObject | undefined;
  /** Why it is none, with the column; "" when it is one. */
  problem: string;
  /** Share of the file read so far; undefined for stdin. */
  fraction: number | undefined;
}

/** The rows of a file, in order; blank lines are skipped. Throws at once when the file cannot be read. */
export function readRows(path: string): AsyncGenerator<JsonRow, void, void> {
  if (path === "-") return rowsOf(process.stdin, () => undefined);
  let size: number;
  try {
    size = statSync(path).size;
  } catch (error) {
    throw new ConfigError(
      "config/no-file",
      `Cannot read ${path} (${messageOf(error)}). Name a file of JSON lines, or - for stdin.`,
    );
  }
  return fileRows(path, size);
}

/** The file is opened by the first read: a stream that nobody reads yet would lose its start. */
async function* fileRows(path: string, size: number): AsyncGenerator<JsonRow, void, void> {
  const stream = createReadStream(path);
  if (!path.endsWith(".gz")) yield* rowsOf(stream, (consumed) => Math.min(1, consumed / size));
  else yield* rowsOf(stream.pipe(createGunzip()), () => stream.bytesRead / size);
}

/** `share` turns the bytes of the lines so far into the share of the file. */
async function* rowsOf(
  stream: AsyncIterable<Uint8Array | string>,
  share: (consumed: number) => number | undefined,
): AsyncGenerator<JsonRow, void, void> {
  let line = 0;
  let consumed = 0;
  for await (const bytes of linesOf(stream)) {
    line++;
    consumed += bytes.length + 1;
    const text = bytes.toString("utf8").replace(line === 1 ? /^\uFEFF/ : /^$/, "");
    if (text.trim() === "") continue;
    const read = readJson(text);
    const value = read instanceof Map ? read : undefined;
    yield { line, value, problem: value ? "" : whyNoObject(text), fraction: share(consumed) };
  }
}

/**
 * Maps rows with at most `window` of them in work, and hands the results over in the order of the rows. Stops reading when the signal
 * aborts; what is in work then is the signal's to end.
 */
export async function mapInOrder<Row, Result>(
  rows: AsyncIterable<Row> | Iterable<Row>,
  window: number,
  work: (row: Row) => Promise<Result>,
  take: (result: Result, row: Row) => Promise<void> | void,
  signal: AbortSignal,
): Promise<void> {
  const running: { row: Row; result: Promise<Result> }[] = [];
  const takeFirst = async () => {
    const { row, result } = running.shift()!;
    await take(await result, row);
  };
  try {
    for await (const row of rows) {
      if (signal.aborted) break;
      const result = work(row);
      // Awaited in its turn; until then a failure must not count as unhandled.
      result.catch(() => {});
      running.push({ row, result });
      if (running.length >= window) await takeFirst();
    }
    while (running.length > 0) await takeFirst();
  } finally {
    await Promise.allSettled(running.map(({ result }) => result));
  }
}
