// The run directory: who may write into it, and what to do when it is already there. Nothing in it is ever overwritten; deleting it
// is refused unless it is plainly a run directory.
import { existsSync, readdirSync, readFileSync, rmSync, statSync } from "node:fs";
import { homedir } from "node:os";
import { join, parse, resolve } from "node:path";
import { messageOf, WhetstoneError } from "../core/errors.ts";
import { makeFolder, removeEmpty, writeFileAtomic } from "../core/files.ts";
import { jsonObject } from "../core/json.ts";
import { type Lock, takeLock } from "../core/lock-file.ts";
import { whet } from "../core/program.ts";
import { shellCommand } from "../core/shell.ts";

/** A run directory cannot be used as asked. */
export class RunError extends WhetstoneError {}

export const runFiles = {
  config: "config.json",
  metrics: "metrics.jsonl",
  log: "logs.log",
  checkpoints: "checkpoints.jsonl",
  findings: "findings.jsonl",
  rollouts: "rollouts",
  timing: "timing.jsonl",
  summary: "summary.json",
  evaluations: "evaluations",
  lock: "run.lock",
  journal: "journal",
  controls: "controls",
} as const;

/** What a run that failed before its config was written leaves behind: starting over loses nothing. */
const beforeFirstStep: ReadonlySet<string> = new Set([
  runFiles.log,
  runFiles.metrics,
  runFiles.timing,
  runFiles.checkpoints,
  runFiles.findings,
  runFiles.journal,
  runFiles.lock,
  runFiles.controls,
  "engine",
  "server.log",
]);

/** Everything a run ever writes. A folder with anything else in it is not deleted. */
const ownNames: ReadonlySet<string> = new Set([
  ...Object.values(runFiles),
  ...beforeFirstStep,
  "curves.svg",
  "report.html",
]);
const ownPattern =
  /^(config-\d{3}\.json|((metrics|timing|checkpoints|findings)\.jsonl|logs\.log)\.bak|events\.out\.tfevents\..*)$/;
/** What a kill in the middle of writing a file or taking the lock leaves. */
const leftover = /^(run\.lock\..+|.+\.part)$/;

export type ExistingBehavior = "ask" | "resume" | "delete" | "raise";

/** Where runs are unless log_path names another place. */
export const runsFolder = (home = homedir()) => join(home, "code-rl-logs");

/** `~/code-rl-logs/YYYY_MM_DD-HH_MM_SS`, in local time; a suffix keeps two runs of one second apart. */
export function defaultRunPath(now: Date, home = homedir()): string {
  const two = (value: number) => String(value).padStart(2, "0");
  const day = [now.getFullYear(), two(now.getMonth() + 1), two(now.getDate())].join("_");
  const time = [two(now.getHours()), two(now.getMinutes()), two(now.getSeconds())].join("_");
  const path = join(runsFolder(home), `${day}-${time}`);
  for (let copy = 0; ; copy++) {
    const candidate = copy === 0 ? path : `${path}-${copy}`;
    if (!existsSync(candidate)) return candidate;
  }
}

/** The command that goes on with a run, from any folder. */
export const resumeCommand = (path: string, ...words: readonly string[]) =>
  shellCommand(`${whet} resume`, resolve(path), ...words);

/** Whether a folder holds a run: it has a config.json that says so. */
export function isRunDirectory(path: string): boolean {
  return readRunConfig(path) !== undefined;
}

/** The config.json of a run, or undefined where there is none or it is not readable. */
export function readRunConfig(path: string): Record<string, unknown> | undefined {
  try {
    const value = jsonObject(readFileSync(join(path, runFiles.config), "utf8"));
    return value && "model_name" in value ? value : undefined;
  } catch {
    return undefined;
  }
}

export type Choice = "resume" | "delete" | "exit";

/** What the directory is to this process: new, or a run to go on with; `release` gives it back. Undefined: leave it alone. */
export type OpenedDirectory = { state: "new" | "resumed"; release: () => void };

/**
 * Takes the directory for this process and makes it ready. `ask` is called where the answer is a person's; undefined means that nobody
 * can be asked. Nothing is touched before the directory is this process's own, and `agree` said yes to what it is going to be.
 */
export async function openRunDirectory(
  path: string,
  behavior: ExistingBehavior,
  ask?: (question: string) => Promise<Choice>,
  agree: (to: "new" | "resume") => Promise<boolean> = async () => true,
): Promise<OpenedDirectory | undefined> {
  const absolute = resolve(path);
  if (existsSync(absolute) && !statSync(absolute).isDirectory())
    throw new RunError("runs/not-a-directory", `log_path=${path} is a file. Name a folder, or leave log_path out.`);
  const occupied =
    existsSync(absolute) && !readdirSync(absolute).every((name) => beforeFirstStep.has(name) || leftover.test(name));
  if (!occupied) {
    if (!(await agree("new"))) return undefined;
    return { state: "new", release: takeNewDirectory(path) };
  }
  if (!isRunDirectory(absolute)) {
    throw new RunError(
      "runs/foreign-directory",
      `log_path=${path} exists and holds no run (no readable ${runFiles.config}). Name an empty or new folder; nothing was changed.`,
    );
  }
  if (behavior === "raise") {
    throw new RunError(
      "runs/exists",
      `log_path=${path} holds a run already. Set behavior_if_log_dir_exists=resume to go on with it, or name another folder.`,
    );
  }
  const release = lockRunDirectory(path);
  try {
    const choice = behavior !== "ask" ? behavior : ask ? await ask(`${path} holds a run.`) : "resume";
    if (choice === "exit" || !(await agree(choice === "delete" ? "new" : "resume"))) {
      release();
      return undefined;
    }
    if (choice === "delete") {
      emptyRunDirectory(absolute);
      return { state: "new", release };
    }
    return { state: "resumed", release };
  } catch (error) {
    release();
    throw error;
  }
}

/** Makes and locks the directory. A run that has written nothing when it gives it back has left nothing, the folders neither. */
function takeNewDirectory(path: string): () => void {
  let made: string[] = [];
  try {
    made = makeFolder(path);
    const release = lockRunDirectory(path);
    return () => {
      release();
      removeEmpty(made);
    };
  } catch (error) {
    removeEmpty(made);
    throw error instanceof RunError ? error : notWritable(path, error);
  }
}

const notWritable = (path: string, cause: unknown) =>
  new RunError(
    "runs/not-writable",
    `log_path=${path} cannot be made or written (${messageOf(cause)}). Free some space there, or name a folder where you may write.`,
    { cause },
  );

/** Removes what a run wrote from its directory, which this process holds; refuses a folder with anything else in it. */
export function emptyRunDirectory(path: string): void {
  const absolute = resolve(path);
  const guarded = [parse(absolute).root, homedir(), process.cwd()].map((folder) => resolve(folder));
  const names = readdirSync(absolute);
  const foreign = names.filter((name) => !ownNames.has(name) && !ownPattern.test(name) && !leftover.test(name));
  if (guarded.includes(absolute) || !isRunDirectory(absolute) || foreign.length > 0) {
    throw new RunError(
      "runs/delete-refused",
      foreign.length > 0
        ? `${path} holds what no run writes (${foreign.slice(0, 3).join(", ")}), so it is not deleted. Delete it by hand if you mean it.`
        : `${path} is not a run directory, so it is not deleted. Delete it by hand if you mean it.`,
    );
  }
  for (const name of names) if (name !== runFiles.lock) rmSync(join(absolute, name), { recursive: true });
}

/** Writes config.json in one piece; where it says something else, the old one is kept as config-NNN.json. */
export function keepConfig(path: string, config: Readonly<Record<string, unknown>>, session: number): void {
  const file = join(path, runFiles.config);
  const text = `${JSON.stringify(config, null, 2)}\n`;
  const old = existsSync(file) ? readFileSync(file, "utf8") : text;
  if (old !== text)
    writeFileAtomic(join(path, `config-${String(Math.max(0, session - 1)).padStart(3, "0")}.json`), old);
  writeFileAtomic(file, text);
}

/** Marks the directory as written by this process; another live process is refused. Returns the release function. */
export function lockRunDirectory(path: string): () => void {
  let lock: Lock;
  try {
    lock = takeLock(join(path, runFiles.lock));
  } catch (error) {
    throw notWritable(path, error);
  }
  if ("release" in lock) return lock.release;
  throw new RunError(
    "runs/locked",
    `${path} is being written by process ${lock.holder}. Wait for it to end or stop it, then run this again.`,
  );
}
