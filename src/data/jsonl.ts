// Problems from JSON lines: one object per line. Only one line is in memory at a time.
import { createReadStream } from "node:fs";
import { open } from "node:fs/promises";
import { whyNoObject } from "../core/json-text.ts";
import { linesOf } from "../core/jsonl.ts";
import { DataError } from "./errors.ts";
import { topLevelSlices } from "./json-slices.ts";
import {
  type Fields,
  fieldNames,
  halvesOfTests,
  type Place,
  type RowFile,
  type RowHead,
  type ScannedRow,
  solutionsOf,
  testsNames,
} from "./rows.ts";

/** What one JavaScript string can hold, with room to spare. */
const maxLineBytes = 400_000_000;

export class JsonLinesFile implements RowFile {
  readonly #path: string;

  constructor(path: string) {
    this.#path = path;
  }

  async *scan(): AsyncGenerator<ScannedRow> {
    for await (const { line, offset, number } of lines(this.#path)) {
      const place: Place = [offset, line.length];
      try {
        const slices = topLevelSlices(line);
        const text = testsOf(slices);
        const tests = text === undefined ? null : { byteLength: Buffer.byteLength(text), text: () => text };
        yield { place, head: headOf(slices, number), tests };
      } catch (error) {
        yield { place, head: unreadable(error, line, number), tests: null };
      }
    }
  }

  async *heads(): AsyncGenerator<RowHead> {
    for await (const { line, number } of lines(this.#path)) {
      try {
        yield headOf(topLevelSlices(line), number);
      } catch (error) {
        yield unreadable(error, line, number);
      }
    }
  }

  async loadTests(place: Place): Promise<string> {
    return testsOf(topLevelSlices(await this.#line(place))) ?? "null";
  }

  async loadSolutions(place: Place): Promise<string[]> {
    const slices = topLevelSlices(await this.#line(place));
    return solutionsOf((name) => {
      const slice = slices.get(name);
      return slice && (JSON.parse(slice.toString("utf8")) as unknown);
    });
  }

  #line([offset = 0, length = 0]: Place): Promise<Buffer> {
    return bytesAt(this.#path, offset, length);
  }
}

/** A part of a data file, which must still be there. */
export async function bytesAt(path: string, offset: number, length: number): Promise<Buffer> {
  const file = await open(path);
  try {
    const { buffer, bytesRead } = await file.read(Buffer.alloc(length), 0, length, offset);
    if (bytesRead === length) return buffer;
    throw new DataError(
      "data/bad-file",
      `${path} became shorter while it was in use. Do not change data files during a run.`,
    );
  } finally {
    await file.close();
  }
}

function headOf(slices: ReadonlyMap<string, Buffer>, number: number): RowHead {
  const fields: Fields = {};
  for (const name of fieldNames) {
    const slice = slices.get(name);
    if (slice) fields[name] = JSON.parse(slice.toString("utf8"));
  }
  return { fields, where: `line ${number}`, columns: [...slices.keys()] };
}

/** The head of a line that is no JSON object. Only the start of a long line is looked at. */
function unreadable(error: unknown, line: Buffer, number: number): RowHead {
  if (!(error instanceof SyntaxError)) throw error;
  const problem = whyNoObject(line.toString("utf8", 0, 1 << 24));
  return { fields: {}, where: `line ${number}`, columns: [], problem };
}

/** The tests as JSON text: a value as it is spelled, a string unpacked. */
function testsOf(slices: ReadonlyMap<string, Buffer>): string | undefined {
  for (const name of testsNames) {
    const text = slices.get(name)?.toString("utf8");
    if (text === undefined || text === "null") continue;
    return text.startsWith('"') ? (JSON.parse(text) as string) : text;
  }
  const halves = halvesOfTests.filter((name) => slices.has(name));
  if (halves.length === 0) return undefined;
  return `{${halves.map((name) => `"${name}":${slices.get(name)!.toString("utf8")}`).join(",")}}`;
}

/** The lines of a file that are not blank, as bytes without their newline; a byte-order mark is no part of the first one. */
export async function* lines(path: string): AsyncGenerator<{ line: Buffer; offset: number; number: number }> {
  let offset = 0;
  let number = 0;
  const tooLong = () =>
    new DataError(
      "data/bad-file",
      `${path} has a line of more than ${maxLineBytes} bytes at byte ${offset}. Write one problem per line.`,
    );
  for await (const whole of linesOf(createReadStream(path, { highWaterMark: 1 << 20 }), { maxLineBytes, tooLong })) {
    const mark = number++ === 0 ? markLength(whole, path) : 0;
    const line = whole.subarray(mark);
    if (!isBlank(line)) yield { line, offset: offset + mark, number };
    offset += whole.length + 1;
  }
}

/** Bytes of the byte-order mark that some editors put before the first line. */
function markLength(start: Buffer, path: string): number {
  if (start[0] === 0xef && start[1] === 0xbb && start[2] === 0xbf) return 3;
  const wide = (start[0] === 0xff && start[1] === 0xfe) || (start[0] === 0xfe && start[1] === 0xff);
  if (!wide) return 0;
  throw new DataError("data/bad-file", `${path} is UTF-16 text. Save it as UTF-8.`);
}

const isBlank = (line: Buffer): boolean => line.every((byte) => byte <= 0x20);
