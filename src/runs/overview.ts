// The runs in a folder, and what a list says of one: its state, steps, Pass@1 before and after, cost. Whatever is broken in a run is
// reported with it and ends nothing.
import { existsSync, readdirSync, statSync } from "node:fs";
import { join } from "node:path";
import { messageOf } from "../core/errors.ts";
import { lockHolder } from "../core/lock-file.ts";
import { readRunConfig, runFiles } from "./directory.ts";
import { framesOf } from "./read-journal.ts";
import { journalSegments } from "./segments.ts";
import { RunView } from "./view.ts";

/** live: a process writes it; stopped: it was asked to; crashed: its process was killed; broken: it cannot be read. */
export type RunState = "live" | "finished" | "stopped" | "failed" | "crashed" | "broken";

/** Folders that are looked into below one, and in how many at most: a home directory is not searched. */
const maxDepth = 2;
const maxFolders = 5000;
/** What a sweep was asked for, in the folder of its runs: they are found where the folder itself would be. */
export const sweepFile = "sweep.json";

/** Run directories in a folder and the folders in it, or the folder itself where it is one. */
export function findRuns(folder: string): string[] {
  let looked = 0;
  const look = (path: string, depth: number): string[] => {
    if (++looked > maxFolders) return [];
    if (looksLikeRun(path)) return [path];
    if (depth >= maxDepth && !existsSync(join(path, sweepFile))) return [];
    return foldersIn(path).flatMap((name) => look(join(path, name), depth + 1));
  };
  return look(folder, 0);
}

function foldersIn(path: string): string[] {
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

/** A run, whole or damaged: its journal is there, or the files that only a run has. */
export function looksLikeRun(folder: string): boolean {
  const has = (name: string) => existsSync(join(folder, name));
  return (
    journalSegments(folder).length > 0 ||
    readRunConfig(folder) !== undefined ||
    (has(runFiles.metrics) && has(runFiles.log))
  );
}

/** The live process that writes a run. */
export const writerOf = (path: string): number | undefined => lockHolder(join(path, runFiles.lock));

/** What the file system says of a run's journal: when it was last written, in milliseconds since the epoch, and its size. */
export function journalFiles(path: string): { changedAt: number; bytes: number } {
  const files = journalSegments(path).flatMap((segment) => statSync(segment, { throwIfNoEntry: false }) ?? []);
  const folder = statSync(path, { throwIfNoEntry: false });
  return {
    changedAt: files.length === 0 ? (folder?.mtimeMs ?? 0) : Math.max(...files.map(({ mtimeMs }) => mtimeMs)),
    bytes: files.reduce((sum, { size }) => sum + size, 0),
  };
}

/** Where a run is; `damage`: why its journal cannot be read further. */
export function stateOf(path: string, { sessions }: RunView, damage?: string): RunState {
  if (writerOf(path) !== undefined) return "live";
  const last = sessions.at(-1);
  if (damage !== undefined || !last) return "broken";
  const { outcome } = last;
  if (outcome === undefined) return sessions.some(({ started }) => started) ? "crashed" : "broken";
  return outcome === "interrupted" ? "stopped" : outcome;
}

/** The view of a run as far as its journal can be read; where it is, and what is wrong with it. */
export function lookAt(path: string): { view: RunView; state: RunState; problem: string | undefined } {
  const view = new RunView();
  let damage: string | undefined;
  try {
    for (const frame of framesOf(path)) view.takeFrame(frame);
  } catch (error) {
    damage = messageOf(error);
  }
  const state = stateOf(path, view, damage);
  return { view, state, problem: problemOf(view, state, damage) };
}

export type RunOverview = ReturnType<typeof overviewOf>;

/** One line of the list. */
export function overviewOf(path: string) {
  const { view, state, problem } = lookAt(path);
  const { model_name: model, max_steps: maxSteps } = view.config;
  const measured = [...view.evaluations.values()]
    .sort((a, b) => a.step - b.step)
    .flatMap(({ metrics }) => metrics["eval/pass@1"] ?? []);
  return {
    path,
    state,
    steps: view.steps.length,
    /** Why it is broken, how it failed, or the worst that the diagnosis found. */
    problem,
    model: typeof model === "string" ? model : undefined,
    /** As asked for; undefined for a run without end. */
    maxSteps: typeof maxSteps === "number" && maxSteps >= 0 ? maxSteps : undefined,
    /** Pass@1 of the first and the last evaluation. */
    before: measured[0],
    after: measured.length > 1 ? measured.at(-1) : undefined,
    /** US dollars, where the run counts them. */
    cost: view.steps.findLast(({ metrics }) => metrics["cost/total"] !== undefined)?.metrics["cost/total"],
    startedAt: view.sessions[0]?.openedAt,
    lastAt: view.lastAt || journalFiles(path).changedAt,
  };
}

function problemOf({ sessions, findings }: RunView, state: RunState, damage: string | undefined): string | undefined {
  if (damage !== undefined) return damage;
  if (state === "broken") return sessions.length === 0 ? "it has no journal" : "it ended before it began";
  const error = state === "failed" ? sessions.at(-1)!.error : undefined;
  const worst = findings.causes.find(({ level }) => level === "error")?.root;
  return error ?? (worst && `${worst.finding.id} after step ${worst.since}: ${worst.finding.message}`);
}
