// The thread of a compute worker. Files that threads start from end in worker.ts (core/prepared.mjs).
import { parentPort, workerData } from "node:worker_threads";
import { ComputeWorker, type ComputeWorkerOptions } from "./compute.ts";
import { serve } from "./serve-thread.ts";

await serve(parentPort!, () => new ComputeWorker((workerData as { data: ComputeWorkerOptions }).data));
