// Where tests write runs.
import { statfsSync } from "node:fs";
import { tmpdir } from "node:os";

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
