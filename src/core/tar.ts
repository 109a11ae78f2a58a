// Reads tar archives (ustar, pax and GNU names, plain or gzipped) as a stream. Nothing in an archive is believed: what would leave the
// folder, is no plain file, comes twice or is larger than allowed ends the reading.
import { mkdir, open } from "node:fs/promises";
import { dirname, join } from "node:path";
import { pipeline } from "node:stream/promises";
import { createGunzip } from "node:zlib";
import { messageOf, WhetstoneError } from "./errors.ts";
import { isInside } from "./files.ts";

/** An archive that is damaged, or tries what it must not. */
export class ArchiveError extends WhetstoneError {}

export interface TarLimits {
  /** Bytes of all files together. */
  maxBytes: number;
  /** Default 10,000. */
  maxEntries?: number;
}

export interface TarEntry {
  /** Relative, with forward slashes, and inside the folder. */
  path: string;
  sizeBytes: number;
  /** The content, in pieces. What is not read is passed over. */
  content(): AsyncGenerator<Buffer>;
}

const blockBytes = 512;
/** What may stand behind the end of an archive. */
const maxTrailer = 1 << 20;
/** A long name or a pax header is never this large. */
const maxHeaderText = 1 << 16;

/** The plain files of an archive, in its order. Folders are passed over; links and devices are refused. */
export async function* readTar(bytes: AsyncIterable<Uint8Array>, limits: TarLimits): AsyncGenerator<TarEntry> {
  const source = new Bytes(await unzipped(bytes));
  const seen = new Set<string>();
  let left = limits.maxBytes;
  let longer: { path?: string; size?: number } = {};
  for (let entries = 0; ; ) {
    const header = await source.take(blockBytes);
    if (header.length === 0 || header.every((byte) => byte === 0)) {
      // Of gzip the end is read too: its checksum stands there.
      await source.take(maxTrailer, { all: false });
      return;
    }
    if (header.length < blockBytes || !checksumFits(header)) throw damaged("a header is no tar header");
    const kind = String.fromCharCode(header[156]!);
    const sizeBytes = longer.size ?? numberAt(header, 124, 12);
    const padding = (blockBytes - (sizeBytes % blockBytes)) % blockBytes;
    if (kind === "L" || kind === "x" || kind === "g") {
      if (sizeBytes > maxHeaderText) throw damaged(`a name of ${sizeBytes} bytes`);
      const text = (await source.take(sizeBytes)).toString("utf8");
      await source.skip(padding);
      if (kind === "L") longer = { ...longer, path: text.replace(/\0.*$/s, "") };
      if (kind === "x") longer = { ...longer, ...paxFields(text) };
      continue;
    }
    if (++entries > (limits.maxEntries ?? 10_000)) throw unsafe(`it has more than ${entries - 1} entries`);
    const prefix = textAt(header, 345, 155);
    const name = longer.path ?? (prefix === "" ? "" : `${prefix}/`) + textAt(header, 0, 100);
    longer = {};
    if (kind === "5") {
      await source.skip(sizeBytes + padding);
      continue;
    }
    const path = checkedPath(name);
    if (kind !== "0" && kind !== "\0") throw unsafe(`"${shown(name)}" is no plain file but a link or a device`);
    if (seen.has(path)) throw unsafe(`"${shown(name)}" is in it twice`);
    seen.add(path);
    if (sizeBytes > left)
      throw unsafe(`its files have more than the ${limits.maxBytes} bytes that may be taken from it`);
    left -= sizeBytes;
    let rest = sizeBytes;
    yield {
      path,
      sizeBytes,
      async *content() {
        for await (const part of source.parts(sizeBytes)) {
          rest -= part.length;
          yield part;
        }
      },
    };
    await source.skip(rest + padding);
  }
}

/** Writes the files that `place` gives a name into `folder`; undefined leaves a file out. Returns the names. */
export async function extractTar(
  bytes: AsyncIterable<Uint8Array>,
  folder: string,
  limits: TarLimits,
  place: (path: string) => string | undefined = (path) => path,
): Promise<string[]> {
  const written: string[] = [];
  for await (const entry of readTar(bytes, limits)) {
    const name = place(entry.path);
    if (name === undefined) continue;
    const path = join(folder, name);
    await mkdir(dirname(path), { recursive: true });
    const file = await open(path, "wx");
    try {
      for await (const part of entry.content()) await file.writeFile(part);
      await file.sync();
    } finally {
      await file.close();
    }
    written.push(name);
  }
  return written;
}

/** The name of an entry, if it stays inside the folder that it is put into. */
function checkedPath(name: string): string {
  const path = name.replace(/^(\.\/+)+/, "");
  if (isInside(path) && !/\\|^[A-Za-z]:/.test(path)) return path;
  throw unsafe(`"${shown(name)}" would be written outside its folder`);
}

/** `12 path=name\n` … */
function paxFields(text: string): { path?: string; size?: number } {
  const fields: { path?: string; size?: number } = {};
  for (let rest = Buffer.from(text); rest.length > 0; ) {
    const length = Number.parseInt(rest.toString("latin1", 0, 12), 10);
    const record = rest.toString("utf8", 0, length);
    const [, key, value] = /^\d+ ([^=]+)=([\s\S]*)\n$/.exec(record) ?? [];
    if (!(length > 0) || key === undefined) throw damaged("an extended header cannot be read");
    if (key === "path") fields.path = value!;
    if (key === "size") fields.size = checkedSize(Number(value));
    if (key === "linkpath") throw unsafe("it holds a link");
    rest = rest.subarray(length);
  }
  return fields;
}

/** The same bytes, unpacked where they are gzip. */
async function unzipped(bytes: AsyncIterable<Uint8Array>): Promise<AsyncIterable<Uint8Array>> {
  const chunks = bytes[Symbol.asyncIterator]();
  const begun: Uint8Array[] = [];
  while (begun.reduce((sum, { length }) => sum + length, 0) < 2) {
    const next = await chunks.next();
    if (next.done) break;
    begun.push(next.value);
  }
  const [first = 0, second = 0] = Buffer.concat(begun);
  async function* all() {
    yield* begun;
    for (let next = await chunks.next(); !next.done; next = await chunks.next()) yield next.value;
  }
  if (first !== 0x1f || second !== 0x8b) return all();
  return gunzip(all());
}

async function* gunzip(packed: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array> {
  const unpack = createGunzip();
  // What goes wrong comes out of `unpack` too.
  const feeding = pipeline(packed, unpack).catch(() => {});
  try {
    yield* unpack as AsyncIterable<Uint8Array>;
  } catch (error) {
    const { code = "" } = error as NodeJS.ErrnoException;
    throw code.startsWith("Z_") ? damaged(messageOf(error)) : error;
  } finally {
    unpack.destroy();
    await feeding;
  }
}

const textAt = (block: Buffer, offset: number, length: number) =>
  block
    .toString("utf8", offset, offset + length)
    .replace(/\0.*$/s, "")
    .trim();

/** Octal digits, or GNU's base 256. */
function numberAt(block: Buffer, offset: number, length: number): number {
  if ((block[offset]! & 0x80) === 0) {
    const text = textAt(block, offset, length);
    return checkedSize(text === "" ? 0 : /^[0-7]+$/.test(text) ? Number.parseInt(text, 8) : Number.NaN);
  }
  let value = block[offset]! & 0x7f;
  for (let index = offset + 1; index < offset + length; index++) value = value * 256 + block[index]!;
  return checkedSize(value);
}

function checkedSize(size: number): number {
  if (Number.isSafeInteger(size) && size >= 0) return size;
  throw damaged(`a file has the impossible size ${size}`);
}

function checksumFits(header: Buffer): boolean {
  const stated = Number.parseInt(textAt(header, 148, 8), 8);
  let sum = 0;
  for (const [index, byte] of header.entries()) sum += index >= 148 && index < 156 ? 0x20 : byte;
  return stated === sum;
}

const shown = (name: string) => JSON.stringify(name.slice(0, 80)).slice(1, -1);

const damaged = (what: string) =>
  new ArchiveError("archive/damaged", `The archive is damaged: ${what}. Fetch it again.`);

const unsafe = (what: string) =>
  new ArchiveError("archive/unsafe", `The archive was not unpacked: ${what}. Do not use what its source sends.`);

/** Bytes of a stream in the portions that are asked for. */
class Bytes {
  readonly #chunks: AsyncIterator<Uint8Array>;
  #rest: Buffer = Buffer.alloc(0);

  constructor(stream: AsyncIterable<Uint8Array>) {
    this.#chunks = stream[Symbol.asyncIterator]();
  }

  /** Exactly `length` bytes, or none at the end of the stream; unless `all`, what there is of them. */
  async take(length: number, { all = true } = {}): Promise<Buffer> {
    const pieces: Buffer[] = [];
    for (let left = length; left > 0; ) {
      const part = await this.#next(left);
      if (part === undefined) {
        if (pieces.length === 0 || !all) break;
        throw damaged("it ends too early");
      }
      pieces.push(part);
      left -= part.length;
    }
    return Buffer.concat(pieces);
  }

  async skip(length: number): Promise<void> {
    for await (const _ of this.parts(length));
  }

  async *parts(length: number): AsyncGenerator<Buffer> {
    for (let left = length; left > 0; ) {
      const part = await this.#next(left);
      if (part === undefined) throw damaged("it ends too early");
      left -= part.length;
      yield part;
    }
  }

  async #next(most: number): Promise<Buffer | undefined> {
    while (this.#rest.length === 0) {
      const next = await this.#chunks.next();
      if (next.done) return undefined;
      this.#rest = Buffer.from(next.value.buffer, next.value.byteOffset, next.value.byteLength);
    }
    const part = this.#rest.subarray(0, most);
    this.#rest = this.#rest.subarray(part.length);
    return part;
  }
}
