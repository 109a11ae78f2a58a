// `./whet bench loop`: what the training loop itself costs. A real run of the bundled model; time that is in neither engine nor grader,
// as a share of the steps, and how long the event loop keeps others waiting.
import { execFile } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { availableParallelism, loadavg, tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { readJsonLines } from "../src/core/jsonl.ts";
import { typescriptFlags } from "../src/core/workers.ts";
import type { Benchmark } from "./report.ts";

const steps = 6;

export const benchmark: Benchmark = {
  async run(say) {
    const folder = mkdtempSync(join(tmpdir(), "whetstone-bench-"));
    try {
      say(`${steps} steps of ./whet train`);
      const path = join(folder, "run");
      const entry = fileURLToPath(new URL("./loop-run.ts", import.meta.url));
      const args = [`log_path=${path}`, `max_steps=${steps}`, "eval_every=0", "save_every=2"];
      const { stdout } = await promisify(execFile)(process.execPath, [...typescriptFlags, entry, ...args], {
        timeout: 590_000,
        maxBuffer: 1 << 24,
      });
      const lag = JSON.parse(stdout.trim().split("\n").at(-1)!) as { totalMs: number; ownMs: number };
      const records = readJsonLines(join(path, "metrics.jsonl")) as Record<string, number>[];
      const sum = (name: string) => records.reduce((total, record) => total + (record[name] ?? 0), 0);
      const share = sum("time/other") / sum("time/total");
      return {
        title: "The training loop",
        columns: ["the loop", "whole"],
        rows: [
          {
            what: "time in neither engine nor grader",
            ours: `${sum("time/other").toFixed(3)} s`,
            other: `${sum("time/total").toFixed(1)} s`,
            figure: `${(100 * share).toFixed(2)}%`,
            target: "< 5%",
            met: share < 0.05,
          },
          {
            what: "event-loop lag, p99",
            ours: `${lag.ownMs.toFixed(1)} ms`,
            other: `${lag.totalMs.toFixed(1)} ms with the wait for a processor`,
            figure: `${lag.ownMs.toFixed(1)} ms`,
            target: "< 50 ms",
            met: lag.ownMs < 50,
          },
        ],
        notes: [
          `${steps} steps of 8 prompts × 16 completions, nano-coder, ${availableParallelism()} cores, load ${loadavg()[0]!.toFixed(1)}`,
        ],
      };
    } finally {
      rmSync(folder, { recursive: true, force: true });
    }
  },
};
