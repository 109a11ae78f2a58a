// Files that are either wholly there or not there at all, and the paths that may name them.
import { closeSync, fsyncSync, mkdirSync, openSync, renameSync, rmSync, statSync, writeFileSync } from "node:fs";
import { dirname, resolve } from "node:path";

/** Replaces a file in one step: a crash leaves the old content or the new one, never a part of either. */
export function writeFileAtomic(path: string, content: string | Uint8Array): void {
  replaceFile(path, (temporary) => writeFileSync(temporary, content));
}

/** Replaces a file by what `write` puts at a temporary path, in one step. */
export function replaceFile(path: string, write: (temporary: string) => void): void {
  const temporary = `${path}.${process.pid}.part`;
  try {
    write(temporary);
    const descriptor = openSync(temporary, "r+");
    try {
      fsyncSync(descriptor);
    } finally {
      closeSync(descriptor);
    }
    renameSync(temporary, path);
  } catch (error) {
    rmSync(temporary, { force: true });
    throw error;
  }
  syncFolder(dirname(path));
}

/** Makes a folder and the ones above it. Unlike Node's own, it ends with an error under /proc and its kind, where nothing can be made. */
export function makeFolder(path: string): void {
  const folder = resolve(path);
  if (statSync(folder, { throwIfNoEntry: false })?.isDirectory()) return;
  if (dirname(folder) !== folder) makeFolder(dirname(folder));
  try {
    mkdirSync(folder);
  } catch (error) {
    // Another process may have made it at this moment.
    if ((error as NodeJS.ErrnoException).code !== "EEXIST" || !statSync(folder).isDirectory()) throw error;
  }
}

/** A relative path that stays below the folder it is used in: no `..`, no empty or odd part, not too long for a file system. */
export function isInside(path: string): boolean {
  if (path.length > 1000 || path.includes("\0")) return false;
  return path.split("/").every((part) => !["", ".", ".."].includes(part) && part.length <= 255);
}

/** Makes a rename or a new entry in a folder durable. */
export function syncFolder(path: string): void {
  const descriptor = openSync(path, "r");
  try {
    fsyncSync(descriptor);
  } finally {
    closeSync(descriptor);
  }
}
