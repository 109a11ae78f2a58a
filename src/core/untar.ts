// Takes files out of an npm package's tarball. It reads plain ustar entries, which is what npm writes.
import { createReadStream } from "node:fs";
import { chmod, mkdir, open } from "node:fs/promises";
import { dirname, join } from "node:path";
import { createGunzip } from "node:zlib";
import { isInside } from "./files.ts";

const blockBytes = 512;

/** Extracts the files that `wanted` accepts into `folder`; names are without the leading "package/". */
export async function untar(tarball: string, folder: string, wanted: (name: string) => boolean): Promise<void> {
  const source = new Blocks(createReadStream(tarball).pipe(createGunzip()));
  for (;;) {
    const header = await source.take(blockBytes);
    if (header.length < blockBytes || header[0] === 0) return;
    const size = Number.parseInt(text(header, 124, 12), 8);
    const prefix = text(header, 345, 155);
    const name = (prefix === "" ? "" : `${prefix}/`) + text(header, 0, 100);
    const plain = header[156] === 0 || header[156] === 0x30; // "0"
    const path = name.replace(/^[^/]+\//, "");
    await source.copy(size, plain && isInside(path) && wanted(path) ? join(folder, path) : undefined);
    await source.take((blockBytes - (size % blockBytes)) % blockBytes);
  }
}

const text = (block: Buffer, offset: number, length: number) =>
  block
    .toString("utf8", offset, offset + length)
    .replace(/\0.*$/s, "")
    .trim();

/** Bytes of a stream in the portions that are asked for. */
class Blocks {
  readonly #chunks: AsyncIterator<Buffer>;
  #rest: Buffer = Buffer.alloc(0);

  constructor(stream: AsyncIterable<Buffer>) {
    this.#chunks = stream[Symbol.asyncIterator]();
  }

  async take(length: number): Promise<Buffer> {
    const parts: Buffer[] = [];
    for await (const part of this.#parts(length)) parts.push(part);
    return Buffer.concat(parts);
  }

  /** The next `length` bytes into a file, or nowhere. */
  async copy(length: number, path: string | undefined): Promise<void> {
    if (path === undefined) {
      for await (const _ of this.#parts(length));
      return;
    }
    await mkdir(dirname(path), { recursive: true });
    const file = await open(path, "w");
    try {
      for await (const part of this.#parts(length)) await file.write(part);
    } finally {
      await file.close();
    }
    await chmod(path, 0o644);
  }

  async *#parts(length: number): AsyncGenerator<Buffer> {
    for (let left = length; left > 0; ) {
      if (this.#rest.length === 0) {
        const next = await this.#chunks.next();
        if (next.done) return;
        this.#rest = next.value;
      }
      const part = this.#rest.subarray(0, left);
      this.#rest = this.#rest.subarray(part.length);
      left -= part.length;
      yield part;
    }
  }
}
