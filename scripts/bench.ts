// `./whet bench [NAME …]`: runs benchmarks and prints their tables. Each one is a module in bench/.
import { z } from "zod";
import { mixNames } from "../bench/learning-mixes.ts";
import { type Benchmark, formatReport } from "../bench/report.ts";
import { describeOptions } from "../src/cli/arguments/help.ts";
import { parseArguments } from "../src/cli/arguments/options.ts";
import type { Command } from "../src/cli/command.ts";
import { ConfigError, WhetstoneError } from "../src/core/errors.ts";
import { nearest } from "../src/core/nearest.ts";

interface BenchmarkEntry {
  summary: string;
  load(): Promise<{ benchmark: Benchmark }>;
}

const benchmarks: Readonly<Record<string, BenchmarkEntry>> = {
  client: {
    summary: "the Tinker client beside the official Python SDK",
    load: () => import("../bench/client.ts"),
  },
  dashboard: {
    summary: "the dashboard of a run of 10,000 steps and 1 GB: time to its curves, to one answer, memory, growth",
    load: () => import("../bench/dashboard.ts"),
  },
  engine: {
    summary: "sampling and training on the CPU beside PyTorch and transformers",
    load: () => import("../bench/engine.ts"),
  },
  episodes: {
    summary: "tokens that the engine computes of 64 episodes of 10 turns, beside every turn by itself",
    load: () => import("../bench/episodes.ts"),
  },
  grading: {
    summary: "executions in the jail beside a bare interpreter, and what 10,000 of them leave behind",
    load: () => import("../bench/grading.ts"),
  },
  learning: {
    summary:
      "time and completions to +40 points of Pass@1 beside TRL's GRPOTrainer, and by each way to share completions",
    load: () => import("../bench/learning.ts"),
  },
  loop: {
    summary: "what the training loop itself costs, and its event-loop lag",
    load: () => import("../bench/loop.ts"),
  },
  lag: {
    summary: "what max_lag costs in learning and saves in time, over three seeds of the bundled model",
    load: () => import("../bench/learning-lag.ts"),
  },
  pipeline: {
    summary: "updates per hour at lag 0, 1, 2, 4 beside tinker-cookbook's trainer, synchronous and asynchronous",
    load: () => import("../bench/pipeline.ts"),
  },
  recipes: {
    summary:
      "SFT, RL and both on families that the bundled model never saw; expert iteration and a teacher beside RL on the default task",
    load: () => import("../bench/recipes.ts"),
  },
  tail: {
    summary: "what tail=carry costs in learning and saves in time where answers come the later the longer they are",
    load: () => import("../bench/learning-tail.ts"),
  },
  scale: {
    summary:
      "memory, event-loop lag and journal of runs of 256 prompts × 16 completions × 8,192 tokens, and 8 × 16 × 24,576",
    load: () => import("../bench/scale.ts"),
  },
};

const BenchOptions = z.strictObject({
  quick: z
    .boolean()
    .default(false)
    .describe(
      "dashboard, engine with a model, lag, learning, pipeline, recipes, scale, tail: a small version, to see that it works",
    ),
  model: z
    .string()
    .default("")
    .describe(
      "engine: a folder, a GGUF file, a hub id, or SmolLM2 for random weights in its shape; the bundled one unless given",
    ),
  seeds: z.int().min(1).max(16).default(3).describe("learning, recipes, tail: how many seeds"),
  rules: z.array(z.string()).default([]).describe("learning: rules to measure, separated by commas; none: all"),
  mix: z
    .enum(mixNames)
    .default("shipped")
    .describe("learning: the problems; hard: the model solves at most 13% before training, easy: at least half"),
  target: z.number().gt(0).lt(1).optional().describe("learning: the Pass@1 to reach; the model's and 0.4 unless given"),
  folder: z
    .string()
    .default("")
    .describe("recipes: where its runs are kept, and what goes on with those that are there; none: nothing is kept"),
  peer: z.boolean().default(true).describe("learning: whether TRL runs beside it"),
});

export const command: Command = {
  keys: BenchOptions.shape,
  help: () =>
    [
      "Usage: ./whet bench [NAME …] [key=value …]",
      "",
      "Runs the named benchmarks, or all of them. Figures are ratios measured in one run on this machine.",
      "",
      ...Object.entries(benchmarks).map(([name, { summary }]) => `  ${name.padEnd(10)}  ${summary}`),
      "",
      describeOptions(BenchOptions),
    ].join("\n"),
  async run(args) {
    const { options, words } = parseArguments(BenchOptions, args);
    const entries = (words.length > 0 ? words : Object.keys(benchmarks)).map((name) => {
      const entry = Object.hasOwn(benchmarks, name) ? benchmarks[name] : undefined;
      if (entry) return { name, entry };
      const guess = nearest(name, Object.keys(benchmarks));
      const hint = guess ? `Did you mean "${guess}"?` : `There are: ${Object.keys(benchmarks).join(", ")}.`;
      throw new ConfigError("config/unknown-benchmark", `There is no benchmark "${name}". ${hint}`);
    });
    for (const { name, entry } of entries) {
      const { benchmark } = await entry.load();
      const report = await benchmark.run((line) => console.error(`whetstone: bench ${name}: ${line}`), options);
      if ("missing" in report)
        throw new WhetstoneError("cli/bench-missing", `Benchmark "${name}" cannot run here: ${report.missing}`);
      console.log(`\n${formatReport(report)}`);
    }
    return 0;
  },
};
