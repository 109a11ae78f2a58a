// How many threads compute where nobody says.
import { availableParallelism } from "node:os";

/** What OMP_NUM_THREADS says, as for other programs that compute; all cores without it. */
export function defaultThreads(said = process.env["OMP_NUM_THREADS"]): number {
  const wanted = Number(said?.split(",")[0]); // a list has a number for each level of nested threads
  return Number.isInteger(wanted) && wanted > 0 ? Math.min(wanted, availableParallelism()) : availableParallelism();
}
