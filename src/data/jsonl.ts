// Problems from JSON lines: one object per line. Only one line is in memory at a time.
import { createReadStream } from "node:fs";
import { open } from "node:fs/promises";
import { DataError } from "./errors.ts";
import { topLevelSlices } from "./json-slices.ts";
import { type Fields, fieldNames, type Place, type RowFile, type ScannedRow, testsNames } from "./rows.ts";

/** What one JavaScript string can hold, with room to spare. */
const maxLineBytes = 400_000_000;

export class JsonLinesFile implements RowFile {
  readonly #path: string;

  constructor(path: string) {
    this.#path = path;
  }

  async *scan(): AsyncGenerator<ScannedRow> {
    for await (const { line, offset } of lines(this.#path)) {
      const place: Place = [offset, line.length];
      try {
        const slices = topLevelSlices(line);
        const text = testsOf(slices);
        const tests = text === undefined ? null : { byteLength: Buffer.byteLength(text), text: () => text };
        yield { place, fields: fieldsOf(slices), tests, readable: true };
      } catch (error) {
        if (!(error instanceof SyntaxError)) throw error;
        yield { place, fields: {}, tests: null, readable: false };
      }
    }
  }

  async *fields(): AsyncGenerator<Fields> {
    for await (const { line } of lines(this.#path)) {
      try {
        yield fieldsOf(topLevelSlices(line));
      } catch (error) {
        if (!(error instanceof SyntaxError)) throw error;
        yield {};
      }
    }
  }

  async loadTests(place: Place): Promise<string> {
    return testsOf(topLevelSlices(await this.#line(place))) ?? "null";
  }

  async loadSolutions(place: Place): Promise<string[]> {
    const slice = topLevelSlices(await this.#line(place)).get("solutions");
    const value: unknown = slice ? JSON.parse(slice.toString("utf8")) : [];
    return Array.isArray(value) ? value.filter((item) => typeof item === "string") : [];
  }

  async #line([offset = 0, length = 0]: Place): Promise<Buffer> {
    const file = await open(this.#path);
    try {
      const { buffer, bytesRead } = await file.read(Buffer.alloc(length), 0, length, offset);
      if (bytesRead === length) return buffer;
      throw new DataError(
        "data/bad-file",
        `${this.#path} became shorter while it was in use. Do not change data files during a run.`,
      );
    } finally {
      await file.close();
    }
  }
}

function fieldsOf(slices: ReadonlyMap<string, Buffer>): Fields {
  const fields: Fields = {};
  for (const name of fieldNames) {
    const slice = slices.get(name);
    if (slice) fields[name] = JSON.parse(slice.toString("utf8"));
  }
  return fields;
}

/** The tests as JSON text: a value as it is spelled, a string unpacked. */
function testsOf(slices: ReadonlyMap<string, Buffer>): string | undefined {
  for (const name of testsNames) {
    const text = slices.get(name)?.toString("utf8");
    if (text === undefined || text === "null") continue;
    return text.startsWith('"') ? (JSON.parse(text) as string) : text;
  }
  return undefined;
}

/** The lines of a file that are not blank, as bytes without their newline. */
async function* lines(path: string): AsyncGenerator<{ line: Buffer; offset: number }> {
  let pending: Buffer[] = [];
  let pendingBytes = 0;
  let offset = 0;
  const finish = (last: Buffer) => {
    const line = pending.length === 0 ? last : Buffer.concat([...pending, last]);
    pending = [];
    pendingBytes = 0;
    return line;
  };
  for await (const chunk of createReadStream(path, { highWaterMark: 1 << 20 }) as AsyncIterable<Buffer>) {
    let start = 0;
    for (let end = chunk.indexOf(0x0a); end >= 0; end = chunk.indexOf(0x0a, start)) {
      const line = finish(chunk.subarray(start, end));
      if (!isBlank(line)) yield { line, offset };
      offset += line.length + 1;
      start = end + 1;
    }
    if (start < chunk.length) {
      pending.push(chunk.subarray(start));
      pendingBytes += chunk.length - start;
      if (pendingBytes > maxLineBytes) {
        throw new DataError(
          "data/bad-file",
          `${path} has a line of more than ${maxLineBytes} bytes at byte ${offset}. Write one problem per line.`,
        );
      }
    }
  }
  const line = finish(Buffer.alloc(0));
  if (!isBlank(line)) yield { line, offset };
}

function isBlank(line: Buffer): boolean {
  for (const byte of line) if (byte > 0x20) return false;
  return true;
}
