// A file of byte strings in the cache, written once and then read by offset and length. It appears under its name when it is complete.
import { type FileHandle, mkdir, open, rename, rm, stat } from "node:fs/promises";
import { dirname } from "node:path";
import { messageOf } from "../core/errors.ts";
import { DataError } from "./errors.ts";

export class Spill {
  readonly path: string;
  /** Of one byte string: larger ones need not be kept. */
  readonly maxBytes: number;
  readonly #temporary: string;
  #writing: FileHandle | undefined;
  #size = 0;

  constructor(path: string, maxBytes: number) {
    this.path = path;
    this.maxBytes = maxBytes;
    this.#temporary = `${path}.${process.pid}.part`;
  }

  /** Adds bytes; the answer is where they start. */
  async append(bytes: Uint8Array): Promise<number> {
    try {
      if (!this.#writing) {
        await mkdir(dirname(this.path), { recursive: true });
        this.#writing = await open(this.#temporary, "w");
        this.#size = 0;
      }
      const offset = this.#size;
      await this.#writing.writeFile(bytes);
      this.#size += bytes.length;
      return offset;
    } catch (cause) {
      throw new DataError(
        "data/cache",
        `${this.path} cannot be written: ${messageOf(cause)}. Free some space, or set WHETSTONE_CACHE to another folder.`,
        { cause },
      );
    }
  }

  /** Makes what was added readable. Nothing was added: there is no file. */
  async finish(): Promise<void> {
    if (!this.#writing) return;
    await this.#writing.close();
    this.#writing = undefined;
    await rename(this.#temporary, this.path);
  }

  /** Drops what was added and not finished. */
  async abandon(): Promise<void> {
    await this.#writing?.close();
    this.#writing = undefined;
    await rm(this.#temporary, { force: true });
  }

  /** How large the finished file is; 0 when there is none. */
  async size(): Promise<number> {
    return (await stat(this.path).catch(() => undefined))?.size ?? 0;
  }

  async read(offset: number, length: number): Promise<Buffer> {
    // While the rows are still being added, a reader looks into the unfinished file.
    const file = await open(this.#writing ? this.#temporary : this.path).catch((cause: unknown) => {
      throw new DataError(
        "data/cache",
        `The file ${this.path}, which holds tests of this data set, cannot be opened. Do not delete the cache during a run; start again.`,
        { cause },
      );
    });
    try {
      const { buffer, bytesRead } = await file.read(Buffer.alloc(length), 0, length, offset);
      if (bytesRead === length) return buffer;
      throw new DataError("data/cache", `The file ${this.path} is too short. Delete it and start again.`);
    } finally {
      await file.close();
    }
  }
}
