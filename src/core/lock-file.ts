// A lock is a file that names the process that holds it. The lock of a process that has ended is taken over.
import {
  closeSync,
  fstatSync,
  linkSync,
  openSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";

export type Lock = { release: () => void } | { holder: number };

/**
 * The second lines of the locks that this thread holds, each of which is used once. Not the paths: one folder has many, through links and
 * mounts. Other threads of this process have a list of their own; theirs are known by the files that the process has open.
 */
const held = new Set<string>();
let drafts = 0;

/** Takes the lock, or names the live process that has it. The folder must exist. */
export function takeLock(file: string): Lock {
  const draft = `${file}.${process.pid}-${drafts++}`;
  const token = crypto.randomUUID();
  let opened: number | undefined;
  try {
    writeFileSync(draft, `${identity(process.pid) ?? process.pid}\n${token}\n`);
    opened = openSync(draft, "r");
    for (;;) {
      if (placed(draft, file)) {
        held.add(token);
        // Kept open while it is held: the end of a thread closes it. A copy of the draft is another file.
        const descriptor = openSync(file, "r");
        const release = () => {
          if (!held.delete(token)) return;
          rmSync(file, { force: true });
          closeSync(descriptor);
        };
        return { release };
      }
      const holder = holderOf(file);
      if (holder !== undefined) return { holder };
      setAside(file);
    }
  } finally {
    rmSync(draft, { force: true });
    if (opened !== undefined) closeSync(opened);
  }
}

/** Waits until the lock is free and takes it; `waiting` is called once, with the process that holds it. Rejects with the signal's reason. */
export async function waitForLock(
  file: string,
  waiting: (holder: number) => void,
  signal?: AbortSignal,
): Promise<() => void> {
  for (let said = false; ; said = true) {
    const lock = takeLock(file);
    if ("release" in lock) return lock.release;
    if (!said) waiting(lock.holder);
    await sleep(500, undefined, signal && { signal });
  }
}

/** Puts a file in place unless there is one: with its content, so that nobody ever reads a lock without a holder. */
function placed(draft: string, file: string): boolean {
  try {
    linkSync(draft, file);
    return true;
  } catch (error) {
    if (codeOf(error) === "EEXIST") return false;
    // Some file systems have no links.
    if (!["EPERM", "ENOTSUP", "EOPNOTSUPP", "ENOSYS"].includes(codeOf(error))) throw error;
  }
  try {
    writeFileSync(file, readFileSync(draft), { flag: "wx" });
    return true;
  } catch (error) {
    if (codeOf(error) === "EEXIST") return false;
    // A full disk may have taken the name and not the content: a lock without a holder.
    rmSync(file, { force: true });
    throw error;
  }
}

const codeOf = (error: unknown): string => (error as NodeJS.ErrnoException).code ?? "";

/** Removes a dead holder's file. Another process may do the same at this moment, and be the holder already: then it is put back. */
function setAside(file: string): void {
  const aside = `${file}.${process.pid}-${drafts++}`;
  try {
    renameSync(file, aside);
  } catch (error) {
    if (codeOf(error) === "ENOENT") return;
    throw error;
  }
  if (holderOf(aside) !== undefined) placed(aside, file);
  rmSync(aside, { force: true });
}

/** The live process that holds a lock, which may be this one; for readers that do not want it. */
export const lockHolder = (file: string): number | undefined => readLock(file)?.pid;

/** The live process that has a lock that this one wants. */
function holderOf(file: string): number | undefined {
  const lock = readLock(file);
  return lock?.pid === process.pid && !held.has(lock.token) && !isOpen(file) ? undefined : lock?.pid;
}

/** Whether some thread of this process has a file open; true where nothing tells. */
function isOpen(file: string): boolean {
  const wanted = statSync(file, { throwIfNoEntry: false });
  if (!wanted) return false;
  let descriptors: string[];
  try {
    descriptors = readdirSync("/dev/fd");
  } catch {
    return true;
  }
  return descriptors.some((descriptor) => {
    try {
      const { dev, ino } = fstatSync(Number(descriptor));
      return dev === wanted.dev && ino === wanted.ino;
    } catch {
      return false; // closed meanwhile
    }
  });
}

/** What a lock says, if the process that it names lives. */
function readLock(file: string): { pid: number; token: string } | undefined {
  let content: string;
  try {
    content = readFileSync(file, "utf8");
  } catch (error) {
    if (codeOf(error) === "ENOENT") return undefined;
    throw error;
  }
  const [holder = "", token = ""] = content.split("\n");
  const pid = Number.parseInt(holder, 10);
  return pid > 0 && identity(pid) === holder ? { pid, token } : undefined;
}

/** Whether a process runs. */
export const lives = (pid: number): boolean => identity(pid) !== undefined;

/** A process id with its start time, so that a reused id is not mistaken for a live holder; undefined when it has ended. */
function identity(pid: number): string | undefined {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, "utf8");
    const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
    // One that has ended and was not yet waited for is still listed; under some containers' first process, for ever.
    return fields[0] === "Z" || fields[0] === "X" ? undefined : `${pid} ${fields[19]}`;
  } catch {
    // Without /proc: signal 0 shows whether it lives.
    try {
      process.kill(pid, 0);
      return String(pid);
    } catch (error) {
      return codeOf(error) === "EPERM" ? String(pid) : undefined;
    }
  }
}
