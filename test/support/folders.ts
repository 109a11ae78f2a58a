// Temporary folders that are gone when the test file ends.
import { mkdtempSync, rmSync, statfsSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll } from "vitest";

/** A function that makes new empty folders; call it once at the top of a test file. */
export function temporaryFolders(place: string = tmpdir()): () => string {
  const made: string[] = [];
  afterAll(() => {
    for (const folder of made) rmSync(folder, { recursive: true, force: true });
  });
  return () => {
    const folder = mkdtempSync(join(place, "whet-test-"));
    made.push(folder);
    return folder;
  };
}

/**
 * The same in memory, where there is enough of it: for tests that write runs. A run waits for the disk at everything it writes down,
 * which takes longer than all else where several wait at once. A TMPDIR that somebody has chosen is taken instead.
 */
export function foldersInMemory(): () => string {
  return temporaryFolders(process.env["TMPDIR"] === undefined && hasRoom("/dev/shm") ? "/dev/shm" : tmpdir());
}

function hasRoom(place: string): boolean {
  try {
    const { bavail, bsize } = statfsSync(place);
    return bavail * bsize > 2 ** 31;
  } catch {
    return false;
  }
}
