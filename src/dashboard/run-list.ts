// The runs that a dashboard shows, with the names that addresses have for them. Looked up anew each time, as runs come and go.
import { basename, relative, resolve } from "node:path";
import { findRuns, journalFiles, writerOf } from "../runs/overview.ts";

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

/** Every run under the given paths, the last changed first. */
export function listRuns(roots: readonly string[]): ListedRun[] {
  const runs = new Map<string, ListedRun>();
  const ids = new Set<string>();
  for (const root of roots.map((path) => resolve(path)))
    for (const path of findRuns(root)) {
      if (runs.has(path)) continue;
      const name = relative(root, path) || basename(path);
      let id = name;
      for (let copy = 2; ids.has(id); copy++) id = `${name} (${copy})`;
      ids.add(id);
      runs.set(path, { id, path, ...journalFiles(path), pid: writerOf(path) ?? null });
    }
  return [...runs.values()].sort((a, b) => b.changedAt - a.changedAt || (a.id < b.id ? -1 : 1));
}
