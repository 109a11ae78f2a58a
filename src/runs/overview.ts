// What a list of runs says of one: its state, steps, Pass@1 before and after. It reads a few small files and the journal's last event, so
// that a folder of long runs is listed at once; whatever is broken in a run is said of it and ends nothing.
import { existsSync, readdirSync, statSync } from "node:fs";
import { join } from "node:path";
import { messageOf } from "../core/errors.ts";
import { readJsonLines } from "../core/jsonl.ts";
import { lockHolder } from "../core/lock-file.ts";
import { readRunConfig, runFiles } from "./directory.ts";
import { Finding, FoundFindings } from "./findings.ts";
import { lastEvent } from "./read-journal.ts";
import type { MetricsRecord } from "./records.ts";
import { journalSegments } from "./segments.ts";

/** live: a process writes it; stopped: it was told to; crashed: its process ended without a word. */
export type RunState = "live" | "finished" | "stopped" | "failed" | "crashed" | "broken";

export interface RunOverview {
  path: string;
  state: RunState;
  /** Why it is broken, how it failed, or the worst that the diagnosis found. */
  problem?: string;
  model?: string;
  steps: number;
  /** As asked for; undefined for a run without end. */
  maxSteps?: number;
  /** Pass@1 of the first and the last evaluation. */
  before?: number;
  after?: number;
  /** US dollars, where the run counts them. */
  cost?: number;
  startedAt?: number;
  lastAt?: number;
}

/** Run directories in a folder and the folders in it, or the folder itself where it is one. */
export function findRuns(folder: string, depth = 2): string[] {
  if (looksLikeRun(folder)) return [folder];
  if (depth === 0) return [];
  let names: string[];
  try {
    names = readdirSync(folder, { withFileTypes: true }).flatMap((entry) =>
      entry.isDirectory() && !entry.name.startsWith(".") && entry.name !== "node_modules" ? [entry.name] : [],
    );
  } catch {
    return [];
  }
  return names.flatMap((name) => findRuns(join(folder, name), depth - 1));
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

/** What is to be said of a run. Never throws. */
export function overviewOf(path: string): RunOverview {
  try {
    return readOverview(path);
  } catch (error) {
    return { path, state: "broken", problem: messageOf(error), steps: 0, ...folderWritten(path) };
  }
}

function readOverview(path: string): RunOverview {
  const config = readRunConfig(path);
  const last = lastEvent(path);
  const holder = lockHolder(join(path, runFiles.lock));
  const records = readRecords(path);
  const measured = records.flatMap((record) => record["eval/pass@1"] ?? []);
  const { started_at: started, model_name: model, max_steps: maxSteps } = config ?? {};
  const startedAt = typeof started === "string" ? Date.parse(started) : Number.NaN;
  const facts = {
    path,
    steps: records.filter((record) => record["mean_reward"] !== undefined).length,
    ...(typeof model === "string" ? { model } : {}),
    ...(typeof maxSteps === "number" && maxSteps >= 0 ? { maxSteps } : {}),
    ...(measured.length > 0 ? { before: measured[0]! } : {}),
    ...(measured.length > 1 ? { after: measured.at(-1)! } : {}),
    ...costOf(records),
    ...(Number.isNaN(startedAt) ? {} : { startedAt }),
    ...worstFinding(path),
    ...(last ? { lastAt: last.at } : folderWritten(path)),
  };
  if (holder !== undefined) return { ...facts, state: "live" };
  if (!config)
    return {
      ...facts,
      state: "broken",
      problem: existsSync(join(path, runFiles.config))
        ? `${runFiles.config} cannot be read`
        : "it ended before it began",
    };
  if (!last) return { ...facts, state: "broken", problem: "it has no journal" };
  if (last.type !== "stopped") return { ...facts, state: "crashed" };
  if (last.outcome === "failed") return { ...facts, state: "failed", ...(last.error ? { problem: last.error } : {}) };
  return { ...facts, state: last.outcome === "finished" ? "finished" : "stopped" };
}

/** The cause of the worst error that was found; nothing where none was. */
function worstFinding(path: string): { problem?: string } {
  const findings = new FoundFindings();
  for (const line of readJsonLines(join(path, runFiles.findings), () => {})) {
    const finding = Finding.safeParse(line);
    if (finding.success)
      findings.add({ step: Number((line as { step: unknown }).step), action: "none", finding: finding.data });
  }
  const worst = findings.causes.find(({ level }) => level === "error")?.root;
  return worst ? { problem: `${worst.finding.id} after step ${worst.since}: ${worst.finding.message}` } : {};
}

/** The steps so far; a last line that is being written is left out. */
function readRecords(path: string): MetricsRecord[] {
  const file = join(path, runFiles.metrics);
  if (!existsSync(file)) return [];
  return readJsonLines(file).filter(
    (value): value is MetricsRecord => typeof value === "object" && value !== null && "step" in value,
  );
}

function costOf(records: readonly MetricsRecord[]): { cost?: number } {
  const cost = records.findLast((record) => record["cost/total"] !== undefined)?.["cost/total"];
  return cost === undefined ? {} : { cost };
}

/** When something was last written into a run: its journal says, or its folder. */
export function lastWritten(path: string): number | undefined {
  try {
    return lastEvent(path)?.at ?? folderWritten(path).lastAt;
  } catch {
    return folderWritten(path).lastAt;
  }
}

function folderWritten(path: string): { lastAt?: number } {
  try {
    return { lastAt: statSync(path).mtimeMs };
  } catch {
    return {};
  }
}
