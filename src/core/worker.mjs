// The entry of every worker thread: makes .ts importable inside the worker, then imports the module it was started for.
import { register } from "node:module";
import { workerData } from "node:worker_threads";

if (!process.features.typescript) {
  process.setSourceMapsEnabled(true);
  register("./ts-hooks.mjs", import.meta.url);
}
await import(workerData.entry);
