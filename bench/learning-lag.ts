// `./whet bench lag`: what lag costs in learning, and what it saves in time. The bundled model, 8 × 16, at max_lag 0, 1 and 2,
// three seeds each: Pass@1 after 50 steps, and the seconds until the steps' own correctness first held a level.
import { mkdtempSync, rmSync } from "node:fs";
import { availableParallelism, loadavg, tmpdir } from "node:os";
import { join } from "node:path";
import { mean, wilsonInterval } from "../src/core/statistics.ts";
import { summarizeOutcomes } from "../src/rl/evaluate.ts";
import { RunView } from "../src/runs/view.ts";
import { whet } from "./learning-run.ts";
import type { Benchmark } from "./report.ts";

const lags = [0, 1, 2];
/** Correct on average over five steps: what a run reaches well before it ends. */
const level = 0.85;
const window = 5;

interface Measured {
  passed: number;
  problems: number;
  rate: number;
  seconds: number;
  secondsToLevel: number | undefined;
}

export const benchmark: Benchmark = {
  async run(say, { quick }) {
    const seeds = quick ? [0] : [0, 1, 2];
    const folder = mkdtempSync(join(tmpdir(), "whetstone-bench-"));
    try {
      const results = new Map<number, Measured[]>(lags.map((lag) => [lag, []]));
      // Seed by seed, so that a change in the machine's load meets every lag.
      for (const seed of seeds)
        for (const lag of lags) {
          const path = join(folder, `${lag}-${seed}`);
          const args = [`log_path=${path}`, `max_lag=${lag}`, `seed=${seed}`, "eval_every=50", "tensorboard=false"];
          if (quick) args.push("max_steps=3", "eval_max_problems=6", "prompts_per_step=2", "completions_per_prompt=8");
          // What the figures in docs/results.md were measured with.
          else args.push("max_steps=50", "completions_per_prompt=16", "learning_rate=2.5e-3", "reward_timeout=6");
          await whet("train", ...args);
          const measured = measure(path);
          results.get(lag)!.push(measured);
          say(`max_lag=${lag} seed=${seed}: ${percent(measured.rate)} after ${measured.seconds.toFixed(1)} s of steps`);
        }
      const base = results.get(0)!;
      const rows = lags.map((lag) => {
        const runs = results.get(lag)!;
        const trials = runs.reduce((sum, { problems }) => sum + problems, 0);
        const passed = runs.reduce((sum, run) => sum + run.passed, 0);
        const [low, high] = wilsonInterval(passed, trials);
        const seconds = mean(runs.map((run) => run.seconds))!;
        const reached = runs.map(({ secondsToLevel }) => secondsToLevel?.toFixed(1) ?? "–").join(" / ");
        return {
          what: `max_lag=${lag}: Pass@1 ${runs.map(({ rate }) => percent(rate)).join(" / ")}, together ${percent(passed / trials)} [${(100 * low).toFixed(1)}, ${(100 * high).toFixed(1)}]`,
          ours: `${seconds.toFixed(1)} s`,
          other: reached,
          figure: `${(mean(base.map((run) => run.seconds))! / seconds).toFixed(2)}×`,
        };
      });
      return {
        title: "Lag on the embedded engine: learning and time",
        columns: ["50 steps", `s to ${percent(level)} correct`],
        rows,
        notes: [
          `seeds ${seeds.join(", ")}; greedy Pass@1 on all test problems, 95% interval over problems and seeds; ${availableParallelism()} cores, load ${loadavg()[0]!.toFixed(1)}`,
          "sampler and trainer share the cores here, so overlap saves only what either leaves idle; on a server they do not",
        ],
      };
    } finally {
      rmSync(folder, { recursive: true, force: true });
    }
  },
};

function measure(path: string): Measured {
  const view = RunView.read(path);
  const last = [...view.evaluations.entries()].sort(([a], [b]) => a - b).at(-1)![1].outcomes;
  const { pass1 } = summarizeOutcomes(last);
  const steps = view.records.filter((record) => record["mean_correct"] !== undefined);
  let seconds = 0;
  let secondsToLevel: number | undefined;
  for (const [index, record] of steps.entries()) {
    seconds += record["time/total"] ?? 0;
    const recent = mean(steps.slice(Math.max(0, index - window + 1), index + 1).map((step) => step["mean_correct"]!))!;
    if (index >= window - 1 && recent >= level) secondsToLevel ??= seconds;
  }
  return {
    passed: Math.round((pass1?.rate ?? 0) * (pass1?.problems ?? 0)),
    problems: pass1?.problems ?? 0,
    rate: pass1?.rate ?? 0,
    seconds,
    secondsToLevel,
  };
}

const percent = (value: number) => `${(100 * value).toFixed(1)}%`;
