// The thread of the host.
import { parentPort, workerData } from "node:worker_threads";
import { EngineHost, type HostOptions } from "./host.ts";
import { serve } from "./serve-thread.ts";

await serve(
  parentPort!,
  () => EngineHost.start((workerData as { data: HostOptions }).data),
  (host) => host.models,
);
