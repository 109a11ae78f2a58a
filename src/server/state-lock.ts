// One server per state folder: two would each think the journal theirs.
import { closeSync, existsSync, mkdirSync, openSync, readFileSync, rmSync, writeSync } from "node:fs";
import { join } from "node:path";
import { messageOf } from "../core/errors.ts";
import { ServerError } from "./errors.ts";

/** Takes the folder for this process; returns the release. A dead holder's lock is taken over. */
export function lockStateDir(stateDir: string): () => void {
  const file = join(stateDir, "lock");
  for (let attempt = 0; attempt < 3; attempt++) {
    try {
      mkdirSync(stateDir, { recursive: true });
      const descriptor = openSync(file, "wx");
      writeSync(descriptor, identity(process.pid) ?? String(process.pid));
      closeSync(descriptor);
      return () => rmSync(file, { force: true });
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== "EEXIST" || !existsSync(file))
        throw new ServerError(
          500,
          "server/state-dir",
          `${stateDir} cannot be written (${messageOf(error)}). Make it a folder that this user can write, or set another state_dir.`,
          { cause: error },
        );
    }
    const holder = read(file);
    if (holder !== "" && identity(Number.parseInt(holder, 10)) === holder) throw locked(stateDir, holder);
    rmSync(file, { force: true });
  }
  throw locked(stateDir, read(file));
}

const locked = (stateDir: string, holder: string) =>
  new ServerError(
    500,
    "server/state-locked",
    `${stateDir} is in use by the server with process id ${holder.split(" ")[0]}. Stop that one, or set another state_dir.`,
  );

function read(file: string): string {
  try {
    return readFileSync(file, "utf8").trim();
  } catch {
    return "";
  }
}

/** A process id with its start time, so that a reused id is not mistaken for a live holder; undefined when it is gone. */
function identity(pid: number): string | undefined {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, "utf8");
    return `${pid} ${stat.slice(stat.lastIndexOf(")") + 2).split(" ")[19]}`;
  } catch {
    // Without /proc: a signal of 0 tells whether it lives.
    try {
      process.kill(pid, 0);
      return String(pid);
    } catch {
      return undefined;
    }
  }
}
