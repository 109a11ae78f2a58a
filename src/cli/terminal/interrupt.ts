// Signals as requests to the work: the first one asks it to stop in good order, the second one ends the process. What happens when the
// output's reader goes away (`| head`, a closed terminal) is for the command to decide.
import { setMaxListeners } from "node:events";

export interface Interrupts {
  /** Aborted by the first SIGINT, SIGTERM or SIGHUP: take on nothing more, save, stop. */
  drain: AbortSignal;
  /** Aborted by the second: stop at once. */
  cancel: AbortSignal;
}

const signals = ["SIGINT", "SIGTERM", "SIGHUP"] as const;

/**
 * Runs `work` and resolves to its exit code, or to 130 when a signal asked it to stop. `readerGone` says what a closed stdout or stderr
 * means: "stop" for commands whose output is their result, "go on" for those whose work is worth more than who watches it.
 */
export async function interruptible(
  work: (signal: AbortSignal, interrupts: Interrupts) => Promise<number>,
  { readerGone = "stop" }: { readerGone?: "stop" | "go on" } = {},
): Promise<number> {
  const drain = new AbortController();
  const cancel = new AbortController();
  // A step has hundreds of requests and programs under way, and each listens.
  for (const { signal } of [drain, cancel]) setMaxListeners(0, signal);
  const interrupt = () => {
    if (!drain.signal.aborted) {
      drain.abort(new Error("interrupted"));
      return;
    }
    cancel.abort(new Error("interrupted"));
    process.exit(130);
  };
  const outputError = () => {
    if (readerGone === "stop") drain.abort(new Error("the output is closed"));
  };
  for (const stream of [process.stdout, process.stderr]) stream.on("error", outputError);
  for (const signal of signals) process.on(signal, interrupt);
  // A process that started this one as a part of its work, and is gone, can ask for nothing any more.
  process.on("disconnect", interrupt);
  if (process.send && !process.connected) interrupt();
  try {
    const code = await work(drain.signal, { drain: drain.signal, cancel: cancel.signal });
    return drain.signal.aborted && code === 0 ? 130 : code;
  } catch (error) {
    if (drain.signal.aborted && (error === drain.signal.reason || isAbort(error))) return 130;
    throw error;
  } finally {
    for (const signal of signals) process.off(signal, interrupt);
    process.off("disconnect", interrupt);
    // A late complaint of a closed pipe still finds a listener when the work went on without its reader.
    if (readerGone === "stop") for (const stream of [process.stdout, process.stderr]) stream.off("error", outputError);
  }
}

const isAbort = (error: unknown) => error instanceof Error && error.name === "AbortError";
