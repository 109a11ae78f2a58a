// The entry of every worker thread: imports the module it was started for. Where Node cannot run TypeScript that is what prepared.mjs
// has made of it; of a module outside src/ there is nothing made, and .ts is made importable inside the worker.
import { register } from "node:module";
import { workerData } from "node:worker_threads";

await import(process.features.typescript ? workerData.entry : await runnable(workerData.entry));

async function runnable(entry) {
  const { preparedModule } = await import("./prepared.mjs");
  const prepared = await preparedModule(entry);
  if (prepared !== undefined) return prepared;
  process.setSourceMapsEnabled(true);
  register("./ts-hooks.mjs", import.meta.url);
  return entry;
}
