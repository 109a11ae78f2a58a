// `./whet dashboard`: runs in the browser, on this machine.
import { existsSync } from "node:fs";
import { z } from "zod";
import { countOf } from "../../core/count.ts";
import { listRuns } from "../../dashboard/run-list.ts";
import { startDashboard } from "../../dashboard/server.ts";
import { runsFolder } from "../../runs/directory.ts";
import { findRuns } from "../../runs/overview.ts";
import { commandOf } from "../command.ts";
import { interruptible } from "../terminal/interrupt.ts";
import { findRun, lookUp } from "../weights/find-run.ts";

const DashboardOptions = z.strictObject({
  port: z.int().min(0).max(65_535).default(0).describe("0: any free one. The host is always 127.0.0.1"),
});

export const command = commandOf(DashboardOptions, {
  usage: "dashboard [RUN or folder of runs …] [key=value …]",
  about: [
    "Shows runs in the browser: curves, every answer with its verdict, evaluations, comparison; of a live run also its controls. Without a",
    "name: the runs under ~/code-rl-logs and in this folder. Everything stays on this machine, behind the link that is printed.",
  ],
  words: Number.POSITIVE_INFINITY,
  run({ options, words }) {
    const here = findRuns(process.cwd()).length > 0 ? [process.cwd()] : [];
    // A folder of runs can be named too.
    const find = (word: string) => lookUp(word) ?? (existsSync(word) ? word : findRun(word));
    const roots = words.length > 0 ? words.map(find) : [runsFolder(), ...here];
    return interruptible(async (signal) => {
      const server = await startDashboard({ roots, port: options.port });
      const count = listRuns(roots).length;
      console.error(`whetstone: ${countOf(count, "run")} under ${roots.join(", ")}; Ctrl-C ends the dashboard`);
      console.log(server.url);
      if (!signal.aborted) await new Promise((resolve) => signal.addEventListener("abort", resolve, { once: true }));
      await server.close();
      return 0;
    });
  },
});
