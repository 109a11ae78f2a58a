// `./whet bench groups`: adaptive groups beside fixed shapes at equal completions, on three mixes of problems: as shipped, hard ones (the
// model solves at most 13% before training) and easy ones (at least half). The same seeds on both sides, so that differences are paired.
import { createHash } from "node:crypto";
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { availableParallelism, loadavg, tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { Random } from "../src/core/random.ts";
import { RunView } from "../src/runs/view.ts";
import { meanInterval } from "./intervals.ts";
import { budget, knownTests, type Point, rules, rulesNamed, train } from "./learning-run.ts";
import type { Benchmark, BenchRow } from "./report.ts";

const file = (path: string) => fileURLToPath(new URL(`../${path}`, import.meta.url));
/** Steps after which both sides are measured; at 128 completions each, 1,152 and 1,920 completions. */
const checks = [9, 15];
/** Shapes of as many completions as adaptive groups may take. */
const equalShapes = Object.keys(rules).filter((name) => rules[name]!.prompts * rules[name]!.samples === budget);
const hardest = 0.13;
const easiest = 0.5;
/** Answers per problem by which hard and easy are told apart. */
const tries = 8;

interface Mix {
  name: string;
  train: string;
  test: string;
}

export const benchmark: Benchmark = {
  async run(say, { quick, seeds: count, rules: asked }) {
    const seeds = Array.from({ length: quick ? 1 : count }, (_, seed) => seed);
    const wanted = asked.filter((name) => name !== "adaptive");
    const fixed = quick ? ["32x4"] : rulesNamed(wanted.length > 0 ? wanted : equalShapes);
    const steps = quick ? [1, 2] : checks;
    const folder = mkdtempSync(join(tmpdir(), "whetstone-bench-"));
    try {
      const mixes = quick ? [shipped(folder)] : [shipped(folder), ...choose(folder, await baseRates(folder, say))];
      const rows: BenchRow[] = [];
      for (const mix of mixes) {
        const results = new Map<string, Point[][]>();
        for (const seed of seeds)
          for (const rule of ["adaptive", ...fixed]) {
            const path = join(folder, `${mix.name}-${rule}-${seed}`);
            const keys = [...rules[rule]!.keys, `seed=${seed}`, `train_data=${mix.train}`, `test_data=${mix.test}`];
            const points = await train(path, steps, keys);
            results.set(rule, [...(results.get(rule) ?? []), points]);
            rmSync(path, { recursive: true });
            say(
              `${mix.name}, ${rules[rule]!.name}, seed ${seed}: ${points.map(({ rate, completions }) => `${percent(rate)} at ${completions}`).join(", ")}`,
            );
          }
        for (const rule of fixed)
          for (const [index, step] of steps.entries())
            rows.push(
              compare(
                `${mix.name}, ${step} steps, beside ${rules[rule]!.name}`,
                results.get("adaptive")!,
                results.get(rule)!,
                index,
              ),
            );
      }
      return {
        title: "Adaptive groups beside fixed shapes at equal completions, greedy Pass@1 on held-out problems",
        columns: [rules["adaptive"]!.name, "fixed"],
        rows,
        notes: [
          `mean over seeds ${seeds.join(", ")}, completions in brackets; the figure is the paired difference in points with its 95% interval (Student)`,
          "shipped: seen families and unseen compositions; hard and easy: problems of the training set, a fifth of them or 150 held out",
          `${availableParallelism()} cores, load ${loadavg()[0]!.toFixed(1)}; nothing here depends on time`,
        ],
      };
    } finally {
      rmSync(folder, { recursive: true, force: true });
    }
  },
};

function compare(what: string, ours: readonly Point[][], theirs: readonly Point[][], index: number): BenchRow {
  const mine = ours.map((points) => points[index]!);
  const other = theirs.map((points) => points[index]!);
  const { middle, low, high } = meanInterval(mine.map(({ rate }, seed) => 100 * (rate - other[seed]!.rate)));
  const show = (points: readonly Point[]) =>
    `${percent(meanInterval(points.map(({ rate }) => rate)).middle)} (${Math.round(meanInterval(points.map(({ completions }) => completions)).middle)})`;
  const sign = (value: number) => `${value < 0 ? "−" : "+"}${Math.abs(value).toFixed(1)}`;
  return {
    what,
    ours: show(mine),
    other: show(other),
    figure: `${sign(middle)}${Number.isFinite(high) ? ` [${sign(low)}, ${sign(high)}]` : ""}`,
  };
}

function shipped(folder: string): Mix {
  return { name: "shipped", train: file("data/starter/train.jsonl"), test: knownTests(folder) };
}

/** The training problems that are hard, and those that are easy, with some of each held out. */
function choose(folder: string, rates: ReadonlyMap<string, number>): Mix[] {
  const lines = readFileSync(file("data/starter/train.jsonl"), "utf8").trimEnd().split("\n");
  const mix = (name: string, wanted: (rate: number) => boolean): Mix => {
    const chosen = lines.filter((line) => wanted(rates.get((JSON.parse(line) as { id: string }).id)!));
    const random = new Random("mix", name);
    const order = chosen.map((line) => ({ line, key: random.float() })).sort((a, b) => a.key - b.key);
    const held = Math.min(150, Math.floor(chosen.length / 5));
    const [test, rest] = [order.slice(0, held), order.slice(held)];
    const write = (part: string, some: typeof order) => {
      const path = join(folder, `${name}-${part}.jsonl`);
      writeFileSync(path, `${some.map(({ line }) => line).join("\n")}\n`);
      return path;
    };
    return {
      name: `${name} (${rest.length} problems, ${held} held out)`,
      train: write("train", rest),
      test: write("test", test),
    };
  };
  return [mix("hard", (rate) => rate <= hardest), mix("easy", (rate) => rate >= easiest)];
}

/** How often the model solves each training problem before it is trained; measured once for a model and its problems. */
async function baseRates(folder: string, say: (line: string) => void): Promise<Map<string, number>> {
  const [data, weights] = ["data/starter/train.jsonl", "models/nano-coder/model.safetensors"].map(file);
  const hash = createHash("sha256")
    .update(readFileSync(data!))
    .update(readFileSync(weights!))
    .digest("hex")
    .slice(0, 16);
  const cache = file(`node_modules/.cache/whetstone/solve-rates-${hash}.json`);
  try {
    return new Map(JSON.parse(readFileSync(cache, "utf8")) as [string, number][]);
  } catch {
    say(`trying every training problem ${tries} times (once; some minutes)`);
  }
  const path = join(folder, "base");
  await train(path, [0], [`test_data=${data}`, `eval_num_samples=${tries}`, "eval_temperature=1"]);
  const outcomes = RunView.read(path).evaluations.get(0) ?? [];
  const rates = outcomes.map(({ id, passed, samples }) => [id, passed / Math.max(1, samples)] as const);
  mkdirSync(dirname(cache), { recursive: true });
  writeFileSync(cache, JSON.stringify(rates));
  return new Map(rates);
}

const percent = (rate: number) => `${(100 * rate).toFixed(1)}%`;
