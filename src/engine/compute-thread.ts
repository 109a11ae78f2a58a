// The thread of a compute worker.
import { parentPort, workerData } from "node:worker_threads";
import { ComputeWorker, type ComputeWorkerOptions } from "./compute-worker.ts";
import { serve } from "./serve-thread.ts";

await serve(parentPort!, () => new ComputeWorker((workerData as { data: ComputeWorkerOptions }).data));
