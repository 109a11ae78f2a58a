// Append-only JSON lines: one object per line, on disk before the call returns, readable after a crash at any moment.
import { closeSync, existsSync, fsyncSync, ftruncateSync, openSync, readFileSync } from "node:fs";
import { writeAll } from "./files.ts";

/**
 * One line of JSON. JSON has no NaN or infinity: those become the strings "NaN", "Infinity" and "-Infinity", so that the line stays
 * valid and the fact stays visible.
 */
export function toJsonLine(value: unknown): string {
  const text = JSON.stringify(value, (_, item: unknown) => {
    if (typeof item === "bigint") return item.toString();
    return typeof item === "number" && !Number.isFinite(item) ? String(item) : item;
  });
  return `${text}\n`;
}

/** A file of JSON lines that only grows. Opening it cuts off a last line that a crash left incomplete. */
export class JsonLinesWriter {
  readonly path: string;
  readonly #descriptor: number;

  constructor(path: string) {
    this.path = path;
    this.#descriptor = openSync(path, "a+");
    const bytes = readFileSync(path);
    const whole = wholeLines(bytes);
    if (whole < bytes.length) ftruncateSync(this.#descriptor, whole);
  }

  /** Appends one record; it is on disk when this returns. */
  append(record: unknown): void {
    writeAll(this.#descriptor, Buffer.from(toJsonLine(record)));
    fsyncSync(this.#descriptor);
  }

  close(): void {
    closeSync(this.#descriptor);
  }
}

/** The records of a JSON lines file; a torn last line is left out. A broken line elsewhere is reported through `onBad`, or throws. */
export function readJsonLines(path: string, onBad?: (line: string, number: number) => void): unknown[] {
  if (!existsSync(path)) return [];
  const bytes = readFileSync(path);
  const text = bytes.toString("utf8", 0, wholeLines(bytes));
  const records: unknown[] = [];
  for (const [index, line] of text.split("\n").entries()) {
    if (line === "") continue;
    try {
      records.push(JSON.parse(line));
    } catch (error) {
      if (!onBad)
        throw new SyntaxError(`${path}, line ${index + 1} is not JSON: ${line.slice(0, 80)}`, { cause: error });
      onBad(line, index + 1);
    }
  }
  return records;
}

/** The bytes up to the last newline: what follows is a line that a crash left incomplete. */
const wholeLines = (bytes: Buffer): number => bytes.lastIndexOf(0x0a) + 1;

/** The lines of a stream, without their newlines. Reads no further than its consumer: a line can be megabytes, so none is kept in reserve. */
export async function* linesOf(
  stream: AsyncIterable<Uint8Array | string>,
  limit?: { maxLineBytes: number; tooLong(): Error },
): AsyncGenerator<Buffer, void, void> {
  let pieces: Buffer[] = [];
  let pending = 0;
  for await (const chunk of stream) {
    let rest =
      typeof chunk === "string" ? Buffer.from(chunk) : Buffer.from(chunk.buffer, chunk.byteOffset, chunk.length);
    for (let end = rest.indexOf(10); end >= 0; end = rest.indexOf(10)) {
      const last = rest.subarray(0, end);
      yield pieces.length === 0 ? last : Buffer.concat([...pieces, last]);
      pieces = [];
      pending = 0;
      rest = rest.subarray(end + 1);
    }
    if (rest.length === 0) continue;
    pieces.push(rest);
    pending += rest.length;
    if (limit && pending > limit.maxLineBytes) throw limit.tooLong();
  }
  if (pieces.length > 0) yield Buffer.concat(pieces);
}
