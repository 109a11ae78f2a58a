// Starts worker threads and child processes from TypeScript source. Node 20 cannot start a .ts file by itself, so both go
// through a small .mjs entry that can.
import { type ChildProcess, type ForkOptions, fork } from "node:child_process";
import { fileURLToPath } from "node:url";
import { Worker, type WorkerOptions } from "node:worker_threads";

/** Starts `entry` (a file URL of a .ts module) in a worker thread; `data` is its `workerData.data`. */
export function startWorker(entry: URL, data: unknown, options: WorkerOptions = {}): Worker {
  return new Worker(new URL("./worker.mjs", import.meta.url), {
    ...options,
    workerData: { entry: entry.href, data },
  });
}

/** Node's flags that make `node FILE.ts` work, for child processes. */
export const typescriptFlags: readonly string[] = ["--import", new URL("./ts-loader.mjs", import.meta.url).href];

/** Starts `entry` (a file URL of a .ts module) as a child process with an IPC channel. */
export function startProcess(entry: URL, args: readonly string[] = [], options: ForkOptions = {}): ChildProcess {
  return fork(fileURLToPath(entry), args, { ...options, execArgv: [...typescriptFlags, ...(options.execArgv ?? [])] });
}
