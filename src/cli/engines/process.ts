// An engine as a child process: how it is started and stopped, and where what it says is kept.
import { type ChildProcess, type ChildProcessWithoutNullStreams, spawn } from "node:child_process";
import { createWriteStream, type WriteStream } from "node:fs";

/** Starts it. It has a process group of its own: a signal to this one's must not take away the server that a run saves its state on. */
export function spawnEngine(
  program: string,
  args: readonly string[],
  options: { env: NodeJS.ProcessEnv; cwd?: string },
): ChildProcessWithoutNullStreams {
  const child = spawn(program, args, { ...options, stdio: "pipe", detached: true });
  child.stdin.on("error", () => {});
  return child;
}

/** Closing its standard input asks it to stop; one that hangs is ended after `limitMs`. */
export async function stopEngine(child: ChildProcess, limitMs: number): Promise<void> {
  if (child.pid === undefined || child.exitCode !== null || child.signalCode !== null) return;
  const gone = new Promise<void>((resolve) => child.once("exit", () => resolve()));
  child.stdin?.end();
  const timer = setTimeout(() => child.kill("SIGKILL"), limitMs);
  await gone;
  clearTimeout(timer);
}

/** A log that cannot be written (a full disk) is no reason to end: what matters of it is in the errors. */
export function openLog(file: string): WriteStream {
  return createWriteStream(file, { flags: "a" }).on("error", () => {});
}

export const closeLog = (log: WriteStream): Promise<void> => new Promise((resolve) => log.end(() => resolve()));
