// Temporary folders that are gone when the test file ends (test/remove-folders.ts).
import { mkdtempSync, rmSync, statfsSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

/** Of the file that runs: a process has one at a time. */
const made: string[] = [];

/** A function that makes new empty folders. */
export function temporaryFolders(place: string = tmpdir()): () => string {
  return () => {
    const folder = mkdtempSync(join(place, "whet-test-"));
    made.push(folder);
    return folder;
  };
}

/** The same in memory, where there is enough of it: for tests that write runs. */
export function foldersInMemory(): () => string {
  return temporaryFolders(inMemory());
}

export function removeFolders(): void {
  for (const folder of made.splice(0)) rmSync(folder, { recursive: true, force: true });
}

/**
 * In memory, where there is enough of it: a run waits for the disk at everything it writes down, which takes longer than all else where
 * several wait at once. A TMPDIR that somebody has chosen is taken instead.
 */
export function inMemory(): string {
  return process.env["TMPDIR"] === undefined && hasRoom("/dev/shm") ? "/dev/shm" : tmpdir();
}

function hasRoom(place: string): boolean {
  try {
    const { bavail, bsize } = statfsSync(place);
    return bavail * bsize > 2 ** 31;
  } catch {
    return false;
  }
}
