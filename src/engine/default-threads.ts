// How many threads compute unless the caller says.
import { availableParallelism } from "node:os";

/** As many as OMP_NUM_THREADS says, as in other programs that compute; without it, all cores. */
export function defaultThreads(variable = process.env["OMP_NUM_THREADS"]): number {
  const wanted = Number(variable?.split(",")[0]); // a list has a number for each level of nested threads
  return Number.isInteger(wanted) && wanted > 0 ? Math.min(wanted, availableParallelism()) : availableParallelism();
}
