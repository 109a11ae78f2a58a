// Runs `./whet` as a person does, in an environment without their settings.
import { type ChildProcess, spawn } from "node:child_process";
import { fileURLToPath } from "node:url";

export const whetPath = fileURLToPath(new URL("../../whet", import.meta.url));

export interface WhetResult {
  code: number | null;
  signal: NodeJS.Signals | null;
  stdout: string;
  stderr: string;
}

export interface WhetOptions {
  env?: Record<string, string>;
  cwd?: string;
  /** Called with the process, e.g. to kill it later. */
  onStart?(child: ChildProcess): void;
}

/** Only what a command needs: settings of whoever runs the tests must not reach it. */
export function cleanEnvironment(env: Record<string, string> = {}): NodeJS.ProcessEnv {
  const kept = ["PATH", "HOME", "TMPDIR", "LANG", "OMP_NUM_THREADS"].flatMap((name) =>
    process.env[name] === undefined ? [] : [[name, process.env[name]]],
  );
  return { ...Object.fromEntries(kept), ...env };
}

/** What a process says until its end, and how that was. */
export function outcomeOf(child: ChildProcess): Promise<WhetResult> {
  const output = { stdout: "", stderr: "" };
  for (const name of ["stdout", "stderr"] as const)
    child[name]?.setEncoding("utf8").on("data", (text: string) => (output[name] += text));
  return new Promise((resolve, reject) => {
    child.once("error", reject);
    child.once("close", (code, signal) => resolve({ code, signal, ...output }));
  });
}

/** Runs a command to its end. */
export function runWhet(args: readonly string[], options: WhetOptions = {}): Promise<WhetResult> {
  const child = spawn(whetPath, args, {
    env: cleanEnvironment(options.env),
    cwd: options.cwd,
    stdio: ["ignore", "pipe", "pipe"],
  });
  options.onStart?.(child);
  return outcomeOf(child);
}
