// Files that are either wholly there or not there at all, and the paths that may name them.
import type { Hash } from "node:crypto";
import {
  closeSync,
  createReadStream,
  existsSync,
  fsyncSync,
  mkdirSync,
  mkdtempSync,
  openSync,
  readdirSync,
  readSync,
  renameSync,
  rmdirSync,
  rmSync,
  statfsSync,
  statSync,
  writeFileSync,
  writeSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join, resolve } from "node:path";
import { messageOf, WhetstoneError } from "./errors.ts";
import { waitForLock } from "./lock-file.ts";

/**
 * Writes all of it: a short write (a disk that is nearly full) goes on, until everything is there or the call fails. One call is asked for
 * at most 1 GiB, as systems take no more than 2.
 */
export function writeAll(descriptor: number, bytes: Uint8Array): void {
  for (let done = 0; done < bytes.byteLength; )
    done += writeSync(descriptor, bytes, done, Math.min(bytes.byteLength - done, 1 << 30));
}

/** Replaces a file in one step: a crash leaves the old content or the new one, never a part of either. */
export function writeFileAtomic(path: string, content: string | Uint8Array): void {
  replaceFile(path, (temporary) => writeFileSync(temporary, content));
}

/** Replaces a file by what `write` puts at a temporary path, in one step. */
export function replaceFile(path: string, write: (temporary: string) => void): void {
  const temporary = `${path}.${process.pid}.part`;
  try {
    write(temporary);
    sync(temporary, "r+");
    renameSync(temporary, path);
  } catch (error) {
    rmSync(temporary, { force: true });
    throw error;
  }
  syncFolder(dirname(path));
}

/** A hash that has read a file, however large. */
export async function hashFile(path: string, hash: Hash, signal?: AbortSignal): Promise<Hash> {
  for await (const chunk of createReadStream(path, { highWaterMark: 1 << 20, signal })) hash.update(chunk as Buffer);
  return hash;
}

/** Bytes that can still be written where `path` is or will be. */
export function freeBytes(path: string): number {
  let folder = resolve(path);
  while (!existsSync(folder)) folder = dirname(folder);
  const { bavail, bsize, blocks } = statfsSync(folder);
  // Some file systems do not say.
  return blocks === 0 ? Number.MAX_SAFE_INTEGER : bavail * bsize;
}

/**
 * Makes a folder and the ones above it; returns those that were not there, the innermost first. Unlike Node's own, it ends with an error
 * under /proc and its kind, where nothing can be made. When it fails, what it made is gone again.
 */
export function makeFolder(path: string): string[] {
  const folder = resolve(path);
  if (statSync(folder, { throwIfNoEntry: false })?.isDirectory()) return [];
  const above = dirname(folder) === folder ? [] : makeFolder(dirname(folder));
  try {
    mkdirSync(folder);
    return [folder, ...above];
  } catch (error) {
    // Another process may have made it at this moment.
    if ((error as NodeJS.ErrnoException).code === "EEXIST" && statSync(folder).isDirectory()) return above;
    removeEmpty(above);
    throw error;
  }
}

/**
 * Makes a folder with what `fill` puts there, unless it is there. It gets its name when it is complete, so that a half-made one is never used;
 * other processes that want the same wait for it.
 */
export async function makeOnce(folder: string, fill: (draft: string) => Promise<void>): Promise<void> {
  if (existsSync(folder)) return;
  mkdirSync(dirname(folder), { recursive: true });
  const release = await waitForLock(`${folder}.lock`, () => {});
  const draft = `${folder}.part`;
  try {
    if (existsSync(folder)) return;
    rmSync(draft, { recursive: true, force: true });
    mkdirSync(draft);
    await fill(draft);
    renameSync(draft, folder);
  } finally {
    rmSync(draft, { recursive: true, force: true });
    release();
  }
}

/** What processes that are gone have left in a folder: entries called by the prefix and a process id. */
export function leftBehind(folder: string, prefix: string): string[] {
  const left = readdirSync(folder).filter((name) => {
    const pid = name.startsWith(prefix) ? Number.parseInt(name.slice(prefix.length), 10) : Number.NaN;
    return pid > 0 && !existsSync(`/proc/${pid}`);
  });
  return left.map((name) => join(folder, name));
}

/** Removes folders, the innermost first, up to one that holds something. */
export function removeEmpty(folders: readonly string[]): void {
  try {
    for (const folder of folders) rmdirSync(folder);
  } catch {
    // It holds what somebody wrote, or is gone.
  }
}

/** A new folder for what is not kept; the caller removes it. */
export function scratchFolder(purpose: string): string {
  try {
    return mkdtempSync(join(tmpdir(), `whet-${purpose}-`));
  } catch (cause) {
    throw new WhetstoneError(
      "cli/temporary-folder",
      `No temporary folder can be made in ${tmpdir()} (${messageOf(cause)}). Free some space there, or set TMPDIR to another folder.`,
      { cause },
    );
  }
}

/** A relative path that stays below the folder it is used in: no `..`, no empty or odd part, not too long for a file system. */
export function isInside(path: string): boolean {
  if (path.length > 1000 || path.includes("\0")) return false;
  return path.split("/").every((part) => !["", ".", ".."].includes(part) && part.length <= 255);
}

/** Makes a rename or a new entry in a folder durable. */
export const syncFolder = (path: string): void => sync(path, "r");

function sync(path: string, flags: "r" | "r+"): void {
  const descriptor = openSync(path, flags);
  try {
    fsyncSync(descriptor);
  } finally {
    closeSync(descriptor);
  }
}

/** Fills an array with the bytes of an open file from a position on; returns how many there were. */
export function readFully(descriptor: number, into: Uint8Array, position: number): number {
  let done = 0;
  while (done < into.byteLength) {
    // Linux reads at most 2 GiB at once.
    const read = readSync(descriptor, into, done, Math.min(into.byteLength - done, 1 << 30), position + done);
    if (read === 0) break;
    done += read;
  }
  return done;
}
