// The runs that a dashboard shows: run directories, and folders that hold some. Looked up anew each time, as runs come and go.
import { existsSync, readdirSync, statSync } from "node:fs";
import { basename, join, relative, resolve } from "node:path";
import { lockHolder } from "../core/lock-file.ts";
import { runFiles } from "../runs/directory.ts";
import { journalSegments } from "../runs/segments.ts";

export interface ListedRun {
  /** How addresses name it. */
  id: string;
  path: string;
  /** When its journal was last written, in milliseconds since the epoch. */
  changedAt: number;
  bytes: number;
  /** The process that writes it; null where none does. */
  pid: number | null;
}

/** Folders are looked into this deep, and no further than this many entries: a home directory is not searched. */
const deepest = 3;
const mostEntries = 5_000;

export const isRun = (path: string): boolean => existsSync(join(path, runFiles.journal));

/** The live process that writes a run. */
export const writerOf = (path: string): number | undefined => lockHolder(join(path, runFiles.lock));

/** Every run under the given paths, the last changed first. */
export function listRuns(roots: readonly string[]): ListedRun[] {
  const runs = new Map<string, ListedRun>();
  for (const root of roots.map((path) => resolve(path))) {
    let looked = 0;
    const look = (path: string, depth: number) => {
      if (++looked > mostEntries) return;
      if (isRun(path)) {
        const id = unused(runs, path === root ? basename(path) : relative(root, path));
        if (![...runs.values()].some((run) => run.path === path)) runs.set(id, { id, path, ...stateOf(path) });
        return;
      }
      if (depth >= deepest) return;
      for (const entry of entriesOf(path)) look(join(path, entry), depth + 1);
    };
    look(root, 0);
  }
  return [...runs.values()].sort((a, b) => b.changedAt - a.changedAt || (a.id < b.id ? -1 : 1));
}

function unused(runs: ReadonlyMap<string, ListedRun>, name: string): string {
  for (let copy = 1; ; copy++) {
    const id = copy === 1 ? name : `${name} (${copy})`;
    if (!runs.has(id)) return id;
  }
}

function entriesOf(path: string): string[] {
  try {
    return readdirSync(path, { withFileTypes: true })
      .filter((entry) => entry.isDirectory() && !entry.name.startsWith(".") && entry.name !== "node_modules")
      .map(({ name }) => name)
      .sort();
  } catch {
    // A folder that may not be read holds no run for this user.
    return [];
  }
}

function stateOf(path: string): Pick<ListedRun, "changedAt" | "bytes" | "pid"> {
  let changedAt = 0;
  let bytes = 0;
  for (const segment of journalSegments(path)) {
    const entry = statSync(segment, { throwIfNoEntry: false });
    changedAt = Math.max(changedAt, entry?.mtimeMs ?? 0);
    bytes += entry?.size ?? 0;
  }
  return { changedAt, bytes, pid: writerOf(path) ?? null };
}
