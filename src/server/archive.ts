// Streams a folder as a tar archive (ustar), file by file: nothing is held in memory but one read buffer.
import { createReadStream } from "node:fs";
import { readdir, stat } from "node:fs/promises";
import { join, relative } from "node:path";
import { ServerError } from "./errors.ts";

const blockBytes = 512;

/** The bytes of a tar of every file below `dir`, names relative to it, sorted. */
export async function* tarOf(dir: string): AsyncGenerator<Uint8Array> {
  for (const name of (await filesBelow(dir)).sort()) {
    const path = join(dir, name);
    const { size, mtimeMs } = await stat(path);
    yield header(name, size, Math.floor(mtimeMs / 1000));
    let sent = 0;
    for await (const part of createReadStream(path)) {
      sent += (part as Buffer).length;
      yield part as Buffer;
    }
    if (sent !== size) throw new Error(`${path} changed while it was read`);
    if (size % blockBytes !== 0) yield Buffer.alloc(blockBytes - (size % blockBytes));
  }
  yield Buffer.alloc(2 * blockBytes);
}

/** The files below a folder, relative to it, in any order. */
export async function filesBelow(dir: string): Promise<string[]> {
  const entries = await readdir(dir, { recursive: true, withFileTypes: true });
  return entries.filter((entry) => entry.isFile()).map((entry) => relative(dir, join(entry.parentPath, entry.name)));
}

function header(name: string, size: number, mtimeSeconds: number): Buffer {
  const block = Buffer.alloc(blockBytes);
  const bytes = Buffer.byteLength(name);
  if (bytes > 100)
    throw new ServerError(
      500,
      "server/archive",
      `"${name}" is too long a file name for the archive (${bytes} bytes of 100). Copy the checkpoint from the state folder instead.`,
    );
  block.write(name, 0);
  const octal = (value: number, offset: number, length: number) =>
    block.write(`${value.toString(8).padStart(length - 1, "0")}\0`, offset);
  octal(0o644, 100, 8);
  octal(0, 108, 8);
  octal(0, 116, 8);
  // Sizes past 8 GiB do not fit octal digits; GNU tar's base-256 form is read by every tar in use.
  if (size < 8 ** 11) octal(size, 124, 12);
  else {
    block.writeUInt8(0x80, 124);
    block.writeBigUInt64BE(BigInt(size), 128);
  }
  octal(mtimeSeconds, 136, 12);
  block.write("        0", 148);
  block.write("ustar\0" + "00", 257, "latin1");
  let sum = 0;
  for (const byte of block) sum += byte;
  block.write(`${sum.toString(8).padStart(6, "0")}\0 `, 148, "latin1");
  return block;
}
