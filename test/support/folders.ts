// Temporary folders that are gone when the test file ends (test/remove-folders.ts).
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { inMemory } from "./place.ts";

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
