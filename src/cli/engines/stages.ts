// What a person waits for and how long already, while something is installed or starts.
import { Progress } from "../terminal/progress.ts";

/** Shows `label` with the seconds so far and what `note` was last told, until the work is over. */
export async function waitingFor<T>(label: string, work: (note: (what: string) => void) => Promise<T>): Promise<T> {
  const progress = new Progress({ label });
  const started = performance.now();
  let note = "";
  const show = () => progress.update(Math.round((performance.now() - started) / 1000), { note: `s  ${note}` });
  const timer = setInterval(show, 250);
  try {
    return await work((what) => {
      note = what;
    });
  } finally {
    clearInterval(timer);
    progress.end();
  }
}
