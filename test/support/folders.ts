// Temporary folders that are gone when the test file ends.
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll } from "vitest";
import { inMemory } from "./place.ts";

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

/** The same in memory, where there is enough of it: for tests that write runs. */
export function foldersInMemory(): () => string {
  return temporaryFolders(inMemory());
}
