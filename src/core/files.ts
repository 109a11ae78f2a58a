// Files that are either wholly there or not there at all.
import { closeSync, fsyncSync, openSync, renameSync, rmSync, writeSync } from "node:fs";
import { dirname } from "node:path";

/** Replaces a file in one step: a crash leaves the old content or the new one, never a part of either. */
export function writeFileAtomic(path: string, content: string | Uint8Array): void {
  const temporary = `${path}.${process.pid}.part`;
  const bytes = typeof content === "string" ? Buffer.from(content) : content;
  try {
    const descriptor = openSync(temporary, "w");
    try {
      for (let written = 0; written < bytes.length; ) written += writeSync(descriptor, bytes, written);
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

/** Makes a rename or a new entry in a folder durable. */
export function syncFolder(path: string): void {
  const descriptor = openSync(path, "r");
  try {
    fsyncSync(descriptor);
  } finally {
    closeSync(descriptor);
  }
}
