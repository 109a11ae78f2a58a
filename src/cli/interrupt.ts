// Ctrl-C as a signal for the work: the first one asks it to stop and lets it clean up, the second one ends the process. A reader of
// stdout that goes away (`| head`) stops the work too.
import { setMaxListeners } from "node:events";

/** Runs `work` with a signal that SIGINT and SIGTERM abort. Resolves to 130 when they did. */
export async function interruptible(work: (signal: AbortSignal) => Promise<number>): Promise<number> {
  const controller = new AbortController();
  // A step has hundreds of requests and programs under way, and each listens.
  setMaxListeners(0, controller.signal);
  const interrupt = () => {
    if (controller.signal.aborted) process.exit(130);
    controller.abort(new Error("interrupted"));
  };
  const readerGone = () => controller.abort(new Error("stdout is closed"));
  process.stdout.on("error", readerGone);
  process.on("SIGINT", interrupt);
  process.on("SIGTERM", interrupt);
  try {
    const code = await work(controller.signal);
    return controller.signal.aborted ? 130 : code;
  } catch (error) {
    if (controller.signal.aborted) return 130;
    throw error;
  } finally {
    process.stdout.off("error", readerGone);
    process.off("SIGINT", interrupt);
    process.off("SIGTERM", interrupt);
  }
}
