// Starts worker threads from a module of this package. In a checkout that is TypeScript source, which Node 20 cannot start by
// itself: there it goes through a small .mjs entry that can.
import { Worker, type WorkerOptions } from "node:worker_threads";
import { moduleUrl, runsTypeScript } from "./program.ts";

/** Starts `entry` (the file URL of a .ts module) in a worker thread; `data` is its `workerData.data`. */
export function startWorker(entry: URL, data: unknown, options: WorkerOptions = {}): Worker {
  const file = runsTypeScript ? new URL("./worker.mjs", import.meta.url) : moduleUrl(entry);
  // None of the flags that this process was started with is needed there, and some (--input-type) are errors in a thread.
  return new Worker(file, { execArgv: [], ...options, workerData: { entry: entry.href, data } });
}

/** Node's flags that make `node FILE.ts` work in a checkout, for child processes. */
export const typescriptFlags: readonly string[] = ["--import", new URL("./ts-loader.mjs", import.meta.url).href];
