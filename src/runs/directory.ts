// The run directory: who may write into it, and what to do when it is already there. Nothing in it is ever overwritten; deleting it
// is refused unless it is plainly a run directory.
import { accessSync, constants, existsSync, readdirSync, readFileSync, rmSync, statSync } from "node:fs";
import { homedir } from "node:os";
import { join, parse, resolve } from "node:path";
import { messageOf, WhetstoneError } from "../core/errors.ts";
import { makeFolder, writeFileAtomic } from "../core/files.ts";
import { takeLock } from "../core/lock-file.ts";

/** A run directory cannot be used as asked. */
export class RunError extends WhetstoneError {}

export const runFiles = {
  config: "config.json",
  metrics: "metrics.jsonl",
  log: "logs.log",
  checkpoints: "checkpoints.jsonl",
  rollouts: "rollouts",
  timing: "timing.jsonl",
  summary: "summary.json",
  evaluations: "evaluations",
  lock: "run.lock",
} as const;

/** What a run that failed before its config was written leaves behind: starting over loses nothing. */
const beforeFirstStep: ReadonlySet<string> = new Set([
  runFiles.log,
  runFiles.metrics,
  runFiles.timing,
  runFiles.lock,
  "engine",
  "server.log",
]);

export type ExistingBehavior = "ask" | "resume" | "delete" | "raise";

/** `~/code-rl-logs/YYYY_MM_DD-HH_MM_SS`, in local time; a suffix keeps two runs of one second apart. */
export function defaultRunPath(now: Date, home = homedir()): string {
  const two = (value: number) => String(value).padStart(2, "0");
  const day = [now.getFullYear(), two(now.getMonth() + 1), two(now.getDate())].join("_");
  const time = [two(now.getHours()), two(now.getMinutes()), two(now.getSeconds())].join("_");
  const path = join(home, "code-rl-logs", `${day}-${time}`);
  for (let copy = 0; ; copy++) {
    const candidate = copy === 0 ? path : `${path}-${copy}`;
    if (!existsSync(candidate)) return candidate;
  }
}

/** Whether a folder holds a run: it has a config.json that says so. */
export function isRunDirectory(path: string): boolean {
  return readRunConfig(path) !== undefined;
}

/** The config.json of a run, or undefined where there is none or it is not readable. */
export function readRunConfig(path: string): Record<string, unknown> | undefined {
  try {
    const value: unknown = JSON.parse(readFileSync(join(path, runFiles.config), "utf8"));
    return typeof value === "object" && value !== null && "model_name" in value
      ? (value as Record<string, unknown>)
      : undefined;
  } catch {
    return undefined;
  }
}

/**
 * Makes the directory ready. `ask` is called where the answer is a person's; undefined means that nobody can be asked.
 * Resolves to whether an existing run is being resumed.
 */
export async function openRunDirectory(
  path: string,
  behavior: ExistingBehavior,
  ask?: (question: string) => Promise<"resume" | "delete" | "exit">,
): Promise<"new" | "resumed" | "exit"> {
  const absolute = resolve(path);
  if (existsSync(absolute) && !statSync(absolute).isDirectory())
    throw new RunError("runs/not-a-directory", `log_path=${path} is a file. Name a folder, or leave log_path out.`);
  const occupied = existsSync(absolute) && !readdirSync(absolute).every((name) => beforeFirstStep.has(name));
  if (!occupied) {
    makeRunDirectory(path);
    return "new";
  }
  if (!isRunDirectory(absolute)) {
    throw new RunError(
      "runs/foreign-directory",
      `log_path=${path} exists and holds no run (no readable ${runFiles.config}). Name an empty or new folder; nothing was changed.`,
    );
  }
  let choice: "resume" | "delete" | "exit" | "raise" = behavior === "ask" ? "resume" : behavior;
  if (behavior === "ask" && ask) choice = await ask(`${path} holds a run. resume, delete or exit?`);
  if (choice === "exit") return "exit";
  if (choice === "raise") {
    throw new RunError(
      "runs/exists",
      `log_path=${path} holds a run already. Set behavior_if_log_dir_exists=resume to go on with it, or name another folder.`,
    );
  }
  if (choice === "delete") {
    deleteRunDirectory(absolute);
    makeRunDirectory(path);
    return "new";
  }
  return "resumed";
}

function makeRunDirectory(path: string): void {
  try {
    makeFolder(path);
    accessSync(path, constants.W_OK);
  } catch (cause) {
    throw new RunError(
      "runs/not-writable",
      `log_path=${path} cannot be made or written (${messageOf(cause)}). Name a folder where you may write.`,
      { cause },
    );
  }
}

/** Removes a run directory; refuses whatever is not plainly one. */
export function deleteRunDirectory(path: string): void {
  const absolute = resolve(path);
  const guarded = [parse(absolute).root, homedir(), process.cwd()].map((folder) => resolve(folder));
  if (guarded.includes(absolute) || !isRunDirectory(absolute)) {
    throw new RunError(
      "runs/delete-refused",
      `${path} is not a run directory, so it is not deleted. Delete it by hand if you mean it.`,
    );
  }
  rmSync(absolute, { recursive: true });
}

/** Writes config.json in one piece. */
export function writeRunConfig(path: string, config: Readonly<Record<string, unknown>>): void {
  writeFileAtomic(join(path, runFiles.config), `${JSON.stringify(config, null, 2)}\n`);
}

/** Marks the directory as written by this process; another live process is refused. Returns the release function. */
export function lockRunDirectory(path: string): () => void {
  const lock = takeLock(join(path, runFiles.lock));
  if ("release" in lock) return lock.release;
  throw new RunError(
    "runs/locked",
    `${path} is being written by process ${lock.holder}. Wait for it to end or stop it, then run this again.`,
  );
}
