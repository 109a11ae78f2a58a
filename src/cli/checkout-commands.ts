// The commands that work on the checkout itself; the package is without them.
import type { CommandEntry } from "./command.ts";

export const checkoutCommands: Readonly<Record<string, CommandEntry>> = {
  bench: {
    group: "Servers and this installation",
    summary: "benchmarks, as ratios measured in one run",
    load: () => import("./bench.ts"),
  },
  test: {
    group: "Servers and this installation",
    summary: "type check, lint and every test",
    load: () => import("./test.ts"),
  },
};
