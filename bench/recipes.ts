// `./whet bench recipes`: what comes before and beside RL, on the bundled model. Teaching what it never saw (the families of the part
// "unseen", with problems that are none of the test's): RL alone, SFT on solved examples alone, SFT and then RL. On the default task: RL
// beside two rounds of expert iteration with as many answers, and a fresh adapter that learns from the one after RL.
import { execFileSync } from "node:child_process";
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { availableParallelism, loadavg, tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { mean } from "../src/core/statistics.ts";
import { summarizeOutcomes } from "../src/rl/evaluate.ts";
import { ProblemOutcome } from "../src/runs/events.ts";
import { RunView } from "../src/runs/view.ts";
import { meanInterval } from "./intervals.ts";
import { whet } from "./learning-run.ts";
import type { Benchmark, BenchReport, BenchRow } from "./report.ts";

const file = (path: string) => fileURLToPath(new URL(`../${path}`, import.meta.url));
/** Problems of the new families, and how many of them come with their solutions. */
const taught = 400;
const solved = 100;
/** How often the student of a teacher is measured. */
const every = 5;

interface Sizes {
  rl: number;
  sft: number;
  /** Problems of a round of expert iteration: with eight answers each, two rounds are as many as RL has. */
  asked: number;
  /** Further keys of every command. */
  keys: readonly string[];
}
const whole: Sizes = { rl: 40, sft: 16, asked: 160, keys: ["eval_max_problems=0"] };
const small: Sizes = { rl: 2, sft: 2, asked: 8, keys: ["eval_max_problems=6"] };

/** What was reached, and what it took. */
interface Result {
  parts: Readonly<Record<string, number>>;
  rate: number;
  /** Of training and collecting. */
  seconds: number;
  steps: number;
}

export const benchmark: Benchmark = {
  async run(say, { quick, seeds: count, folder: kept }) {
    const seeds = Array.from({ length: quick ? 1 : count }, (_, seed) => seed);
    const folder = kept || mkdtempSync(join(tmpdir(), "whetstone-bench-"));
    mkdirSync(folder, { recursive: true });
    try {
      const data = problemsIn(folder);
      const results = new Map<string, Result[]>();
      for (const seed of seeds)
        for await (const [name, result] of recipesOf(new Bench(folder, seed, quick ? small : whole), data)) {
          results.set(name, [...(results.get(name) ?? []), result]);
          say(`seed ${seed}, ${name}: ${percent(result.rate)}, ${describe(result)}`);
        }
      return reportOf(results, seeds);
    } finally {
      if (kept === "") rmSync(folder, { recursive: true, force: true });
    }
  },
};

type Data = ReturnType<typeof problemsIn>;

function problemsIn(folder: string) {
  const data = { taught: join(folder, "taught.jsonl"), solved: join(folder, "solved.jsonl") };
  execFileSync("python3", ["-B", file("scripts/starter/taught.py"), data.taught, "--count", String(taught)]);
  writeFileSync(data.solved, `${readFileSync(data.taught, "utf8").split("\n").slice(0, solved).join("\n")}\n`);
  return data;
}

/** Each recipe with what came of it, in an order in which nothing is missing. */
async function* recipesOf(bench: Bench, data: Data): AsyncGenerator<[string, Result]> {
  const { rl, sft } = bench.sizes;
  yield ["the model as it is", await bench.measured("base")];

  // The same for both. What is seldom right at first wants larger batches and smaller steps than the default task.
  const teach = [`train_data=${data.taught}`, "learning_rate=1e-3", "prompts_per_step=16", "fill_batch=true"];
  await bench.train("train", "new-rl", rl, teach);
  yield ["new families: RL alone", await bench.measured("new-rl")];
  await bench.train("sft", "new-sft", sft, [`train_data=${data.solved}`]);
  const supervised = await bench.measured("new-sft");
  yield [`new families: SFT on ${solved} examples alone`, supervised];
  await bench.train("train", "new-both", rl, [...teach, `from=${bench.path("new-sft")}`]);
  yield ["new families: SFT, then RL", plus(await bench.measured("new-both"), supervised)];

  await bench.train("train", "rl", rl, []);
  const teacher = await bench.measured("rl");
  yield ["default task: RL", teacher];
  let before = "base";
  let took: Result | undefined;
  for (const round of [1, 2]) {
    const name = `expert-${round}`;
    const collected = await bench.collect(name, before, round);
    await bench.train("sft", name, sft, [
      `train_data=${collected.file}`,
      "learning_rate=1e-3",
      ...(before === "base" ? [] : [`from=${bench.path(before)}`]),
    ]);
    const result = plus(await bench.measured(name), { seconds: collected.seconds, steps: 0 });
    took = took ? plus(result, took) : result;
    yield [`default task: expert iteration, round ${round}`, took];
    before = name;
  }

  const pupil = [`teacher=${bench.path("rl")}`, "teacher_mode=alone", `save_every=${every}`];
  await bench.train("train", "pupil", rl, pupil);
  let reached: Result;
  let step = every;
  do {
    reached = await bench.measured("pupil", Math.min(step, rl));
    step += every;
  } while (reached.rate < teacher.rate && step <= rl);
  yield ["default task: taught by the adapter after RL", reached];
}

/** The runs of one seed in a folder. What is there already is not done again. */
class Bench {
  readonly sizes: Sizes;
  readonly #folder: string;
  readonly #seed: number;

  constructor(folder: string, seed: number, sizes: Sizes) {
    this.#folder = folder;
    this.#seed = seed;
    this.sizes = sizes;
  }

  path(name: string): string {
    return join(this.#folder, `${name}-${this.#seed}`);
  }

  /** Nothing is measured while the clock of a step runs. */
  async train(command: "train" | "sft", name: string, steps: number, keys: readonly string[]): Promise<void> {
    const path = this.path(name);
    const own = [`log_path=${path}`, `max_steps=${steps}`, "eval_every=0", "dashboard=false", "tensorboard=false"];
    if (!RunView.read(path).newest?.final)
      await whet(command, "preset=nano", `seed=${this.#seed}`, ...own, ...this.sizes.keys, ...keys);
  }

  async collect(name: string, from: string, round: number): Promise<{ file: string; seconds: number }> {
    const out = `${this.path(name)}.jsonl`;
    const clock = `${out}.seconds`;
    const start = Date.now();
    const source = from === "base" ? ["run=none", "preset=nano"] : [`run=${this.path(from)}`, "train_data=starter"];
    // Each round asks other problems.
    const how = [`seed=${100 * round + this.#seed}`, `problems=${this.sizes.asked}`, "samples=8"];
    if (!existsSync(clock)) {
      if (!existsSync(out)) await whet("collect", ...source, ...how, `out=${out}`);
      writeFileSync(clock, String((Date.now() - start) / 1000));
    }
    return { file: out, seconds: Number(readFileSync(clock, "utf8")) };
  }

  /** Greedy Pass@1 on the test problems, and the time of the steps up to there. */
  async measured(name: string, at?: number): Promise<Result> {
    const out = `${this.path(name)}${at === undefined ? "" : `-${at}`}.outcomes`;
    const view = name === "base" ? undefined : RunView.read(this.path(name));
    const last = view?.newest?.step ?? 0;
    const checkpoint = at === undefined || at === last ? [] : [`checkpoint=${String(at).padStart(6, "0")}`];
    const weights = view ? [`run=${this.path(name)}`, ...checkpoint] : ["run=none", "preset=nano"];
    if (!existsSync(out)) await whet("eval", ...weights, "test_data=starter", ...this.sizes.keys, `out=${out}`);
    const lines = readFileSync(out, "utf8").trim().split("\n");
    const { pass1, bySource } = summarizeOutcomes(lines.map((line) => ProblemOutcome.parse(JSON.parse(line))));
    const steps = at ?? last;
    const done = (view?.records ?? []).filter((record) => Number(record.step) < steps);
    return {
      parts: Object.fromEntries(Object.entries(bySource).map(([source, { rate }]) => [source, rate])),
      rate: pass1?.rate ?? Number.NaN,
      seconds: done.reduce((sum, record) => sum + (record["time/total"] ?? 0), 0),
      steps,
    };
  }
}

/** A result with what it took before. */
const plus = (result: Result, { seconds, steps }: Pick<Result, "seconds" | "steps">): Result => ({
  ...result,
  seconds: result.seconds + seconds,
  steps: result.steps + steps,
});

function reportOf(results: ReadonlyMap<string, readonly Result[]>, seeds: readonly number[]): BenchReport {
  const rows = [...results].map(([what, all]): BenchRow => {
    const of = (pick: (result: Result) => number) => all.map(pick);
    const unseen = of(({ parts }) => parts["starter-unseen"] ?? Number.NaN);
    const known = of(({ parts }) => mean([parts["starter-seen"] ?? 0, parts["starter-composition"] ?? 0])!);
    return { what, ours: spread(unseen), other: spread(known), figure: describe(meansOf(all)) };
  });
  return {
    title: "Recipes: greedy Pass@1 by part of the test problems, and what it took",
    columns: ["starter-unseen", "the other parts"],
    rows,
    notes: [
      `mean [95% interval] over seeds ${seeds.join(", ")}; steps and seconds of training and collecting, all that led there together`,
      `new families: ${taught} problems of those that no training has, none of them a test problem; default task: the starter problems`,
      `expert iteration: ${whole.asked} problems × 8 answers a round, what passes is learned; the pupil is measured every ${every} steps until it is level`,
      `${availableParallelism()} cores, load ${loadavg()[0]!.toFixed(1)}`,
    ],
  };
}

const meansOf = (all: readonly Result[]) => ({
  steps: Math.round(mean(all.map(({ steps }) => steps))!),
  seconds: mean(all.map(({ seconds }) => seconds))!,
});
const percent = (rate: number) => `${(100 * rate).toFixed(1)}%`;
const describe = ({ steps, seconds }: Pick<Result, "steps" | "seconds">) => `${steps} steps, ${seconds.toFixed(0)} s`;

function spread(rates: readonly number[]): string {
  const { middle, low, high } = meanInterval(rates);
  return rates.length < 2 ? percent(middle) : `${percent(middle)} [${percent(low)}, ${percent(high)}]`;
}
