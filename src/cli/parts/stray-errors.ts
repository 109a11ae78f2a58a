// Errors that an environment throws where nothing waits for them, in a timer or a promise left behind: shown, without ending the run.
import { dirname } from "node:path";
import { messageOf } from "../../core/errors.ts";
import { placeIn } from "../../rl/environment/place.ts";

/** Errors that are shown; the others are counted when it ends. */
const maxShown = 3;

/** From here on `warn` gets what comes from modules beside `file`; everything else ends the process as before. Returns what ends that. */
export function tellStrayErrors(file: string, warn: (line: string) => void): () => void {
  const folder = dirname(file);
  let count = 0;
  const take = (error: unknown) => {
    if (error instanceof Error && !error.stack?.includes(folder)) {
      stop();
      setImmediate(() => {
        throw error;
      });
      return;
    }
    if (++count > maxShown) return;
    const place = placeIn(error);
    warn(
      `the environment threw where nothing waits for it: ${messageOf(error)}${place === undefined ? "" : ` (${place})`}. The run goes on; ` +
        "await the promise, or catch the error where it is made",
    );
  };
  const events = ["unhandledRejection", "uncaughtException"] as const;
  const stop = () => {
    for (const event of events) process.off(event, take);
    if (count > maxShown) warn(`the environment threw ${count - maxShown} more errors where nothing waits for them`);
    count = 0;
  };
  for (const event of events) process.on(event, take);
  return stop;
}
