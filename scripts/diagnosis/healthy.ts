// Ten healthy runs: other seeds, every lag that is on by default or recommended, short and as long as the default.
import type { Fault } from "./faults.ts";
import { train } from "./whet.ts";

const settings: readonly [seed: number, lag: number, steps: number][] = [
  [1, 0, 20],
  [2, 0, 20],
  [3, 0, 20],
  [4, 1, 20],
  [5, 1, 20],
  [6, 1, 20],
  [7, 2, 20],
  [8, 2, 20],
  [9, 2, 20],
  [10, 0, 50],
];

export const healthy: Record<string, Fault> = Object.fromEntries(
  settings.map(([seed, lag, steps]) => [
    `healthy-${seed}-lag-${lag}`,
    {
      wants: [],
      run: (path) =>
        train(path, {
          seed,
          max_lag: lag,
          max_steps: steps,
          ...(steps === 50 ? { eval_every: 25 } : { eval_every: 10, eval_max_problems: 60 }),
        }).then(() => undefined),
    },
  ]),
);
