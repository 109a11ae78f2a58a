// The dashboard of a run beside the process that trains it. It reads the journal from disk as any other would; without it, or when it
// fails, training is the same.
import { messageOf } from "../core/errors.ts";
import { startWorker } from "../core/workers.ts";
import type { FromDashboard } from "./worker.ts";

/** How long pages have to learn that the run has ended. */
const closeMs = 1500;

export interface DashboardBeside {
  /** The link, once it can be opened; or why there is none. Never rejects. */
  ready: Promise<FromDashboard>;
  close(): Promise<void>;
}

/** Starts it; nothing waits for it. */
export function dashboardBeside(runPath: string): DashboardBeside {
  // Its own memory: a page that asks for much must not take what training needs.
  const worker = startWorker(
    new URL("./worker.ts", import.meta.url),
    { runPath },
    { resourceLimits: { maxOldGenerationSizeMb: 1024 } },
  );
  worker.unref();
  const ended = new Promise<void>((resolve) => worker.once("exit", () => resolve()));
  const ready = new Promise<FromDashboard>((resolve) => {
    worker.once("message", (message: FromDashboard) => resolve(message));
    worker.on("error", (error) => resolve({ error: messageOf(error) }));
    void ended.then(() => resolve({ error: "it ended" }));
  });
  return {
    ready,
    async close() {
      worker.postMessage("close");
      const late = setTimeout(() => void worker.terminate(), closeMs);
      worker.ref();
      await ended;
      clearTimeout(late);
    },
  };
}
