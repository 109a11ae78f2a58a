// One server per state folder: two would each think the journal theirs.
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { messageOf } from "../core/errors.ts";
import { makeFolder, removeEmpty } from "../core/files.ts";
import { type Lock, takeLock } from "../core/lock-file.ts";
import { ServerError } from "./errors.ts";

/** Takes the folder for this process and returns what releases it. Waits up to `waitMs` for another server to leave it. */
export async function lockStateDir(stateDir: string, waitMs: number): Promise<() => void> {
  const deadline = performance.now() + waitMs;
  for (;;) {
    const lock = tryLock(stateDir);
    if ("release" in lock) return lock.release;
    if (performance.now() >= deadline)
      throw new ServerError(
        500,
        "server/state-locked",
        `${stateDir} is in use by the server with process id ${lock.holder}. Stop that one, or set another state_dir.`,
      );
    await sleep(50);
  }
}

function tryLock(stateDir: string): Lock {
  let made: string[] = [];
  try {
    made = makeFolder(stateDir);
    return takeLock(join(stateDir, "lock"));
  } catch (cause) {
    removeEmpty(made);
    throw new ServerError(
      500,
      "server/state-dir",
      `${stateDir} cannot be written (${messageOf(cause)}). Make it a folder that this user can write, or set another state_dir.`,
      { cause },
    );
  }
}
