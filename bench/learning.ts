// `./whet bench learning`: how long it takes, and how many completions, until the bundled model is 40 points better on problems it has
// not met; beside TRL's GRPOTrainer on the same model, problems, rank, learning rate, optimizer and budget. On both sides the clock runs
// while training and stands while loading and evaluating; TRL's answers are graded without a sandbox, ours in the jail.
import { spawn } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { availableParallelism, loadavg, tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { presetConfig } from "../src/rl/config.ts";
import { openNewest, openVenv } from "../test/support/venv.ts";
import { median, ratioInterval } from "./intervals.ts";
import { type Mix, mixOf } from "./learning-mixes.ts";
import { measureAt, type Point, type Rule, rules, rulesNamed, train, trainOn } from "./learning-run.ts";
import type { Benchmark, BenchRow } from "./report.ts";

const root = new URL("../", import.meta.url);
const file = (path: string) => fileURLToPath(new URL(path, root));
/** Points of Pass@1 to gain on seen families and unseen compositions together. */
const gain = 0.4;
/** The shape of the published comparisons, and that of `preset=nano`; TRL is measured with both. */
const standard = "8x16";
const nano = presetConfig("nano");
const preset = `${nano.prompts_per_step}x${nano.completions_per_prompt}`;
/** Steps between two evaluations, and the most steps. */
const every = 2;
const maxSteps = 60;

type Say = (line: string) => void;
/** One for each seed, by the rule's name. */
type Points = ReadonlyMap<string, readonly Point[]>;

export const benchmark: Benchmark = {
  async run(say, { quick, seeds: count, rules: asked, peer, mix, target: wanted }) {
    const seeds = Array.from({ length: quick ? 1 : count }, (_, seed) => seed);
    // TRL is measured on the problems as shipped alone.
    const usual = mix === "shipped" ? [standard, preset] : [preset];
    const chosen = [...new Set(rulesNamed(quick ? [standard] : [...usual, ...rulesNamed(asked)]))];
    const folder = mkdtempSync(join(tmpdir(), "whetstone-bench-"));
    try {
      const problems = await mixOf(mix, folder, say);
      const { test } = problems;
      const [base] = (await train(join(folder, "base"), [0], settingsOf(rules[standard]!, 0, problems))) as [Point];
      const target = wanted ?? base.rate + (quick ? 0.01 : gain);
      say(`before training: ${percent(base.rate)}; the target is ${percent(target)}`);
      const trl =
        quick || !peer || mix !== "shipped"
          ? { missing: quick ? "quick=true" : peer ? `mix=${mix}` : "peer=false" }
          : await prepareTrl(say);
      const ours = new Map<string, Point[]>(chosen.map((name) => [name, []]));
      const theirs = new Map<string, Point[]>([standard, preset].map((name) => [name, []]));
      // Seed by seed, so that a change in the machine's load meets everybody.
      for (const seed of seeds) {
        for (const name of chosen) {
          const path = join(folder, `${name}-${seed}`);
          const point = await reach(path, target, quick ? 2 : 6, settingsOf(rules[name]!, seed, problems), say);
          ours.get(name)!.push(point);
          say(`${rules[name]!.name}, seed ${seed}: ${describe(point)}`);
        }
        if ("missing" in trl) continue;
        for (const [name, points] of theirs) {
          const point = await reachWithTrl(trl.python, folder, test, target, rules[name]!, seed, say);
          points.push(point);
          say(`TRL, ${rules[name]!.name}, seed ${seed}: ${describe(point)}`);
        }
      }
      return {
        title: `Learning: from ${percent(base.rate)} to ${percent(target)} greedy Pass@1 on ${mix === "shipped" ? "seen families and unseen compositions" : `${mix} problems held out`}`,
        columns: ["whetstone", "missing" in trl ? "TRL" : `TRL ${trl.version}`],
        rows: [
          ...(ours.has(standard) ? peerRows(standard, standard, ours, theirs) : []),
          // Without TRL it would be the same figures twice.
          ...("missing" in trl ? [] : peerRows(preset, standard, ours, theirs)),
          ...(ours.has(preset) ? peerRows(preset, preset, ours, theirs) : []),
          ...chosen.map((name) => ruleRow(name, chosen[0]!, ours)),
        ],
        notes: [
          `median [least–most] over seeds ${seeds.join(", ")}; behind a ratio of medians its 95% interval (Welch, logarithms)`,
          `learning rate ${nano.learning_rate}, rank 32, at most 128 completions a step; measured every ${every} steps with the clock stopped`,
          "TRL: GRPOTrainer on the CPU, float32, all cores, its programs run without a sandbox; ours run in the jail",
          `${availableParallelism()} cores, load ${loadavg()[0]!.toFixed(1)}`,
          ...("missing" in trl ? [`TRL's side was skipped: ${trl.missing}`] : []),
        ],
      };
    } finally {
      rmSync(folder, { recursive: true, force: true });
    }
  },
};

const settingsOf = ({ keys }: Rule, seed: number, problems: Mix) => [
  ...keys,
  `seed=${seed}`,
  `train_data=${problems.train}`,
  `test_data=${problems.test}`,
  `learning_rate=${nano.learning_rate}`,
];

/** Trains some steps at a time, and measures what it left until the target is reached. */
async function reach(path: string, target: number, first: number, keys: readonly string[], say: Say): Promise<Point> {
  let trained = 0;
  for (let steps = first; ; steps += every) {
    if (steps > trained) {
      trained += 2 * first + every;
      await trainOn(path, trained, every, keys);
    }
    const point = await measureAt(path, steps, trained);
    if (point.rate >= target || steps >= maxSteps) return point;
    say(`  ${describe(point)}`);
  }
}

type Trl = { python: string; version: string };

async function prepareTrl(say: Say): Promise<Trl | { missing: string }> {
  say("preparing TRL (the first time this downloads some gigabytes)");
  const newest = await openNewest("trl");
  if ("missing" in newest) return newest;
  const venv = await openVenv([`trl==${newest.version}`, "peft"]);
  return "missing" in venv ? venv : { python: venv.python, version: newest.version };
}

async function reachWithTrl(
  python: string,
  folder: string,
  test: string,
  target: number,
  { prompts, samples }: Rule,
  seed: number,
  say: Say,
): Promise<Point> {
  const settings = {
    threads: availableParallelism(),
    model: file("models/nano-coder"),
    train: file("data/starter/train.jsonl"),
    test,
    seed,
    target,
    prompts,
    samples,
    steps: maxSteps,
    first_eval: 10,
    eval_every: every,
    learning_rate: nano.learning_rate,
    rank: nano.lora_rank,
    max_tokens: nano.max_tokens,
    format_coef: nano.format_coef,
    folder: join(folder, "trl"),
  };
  const path = join(folder, "trl.json");
  writeFileSync(path, JSON.stringify(settings));
  const child = spawn(python, [file("bench/learning_trl.py"), path], { stdio: ["ignore", "pipe", "pipe"] });
  let errors = "";
  child.stderr.on("data", (chunk: Buffer) => {
    errors = (errors + chunk.toString()).slice(-2000);
  });
  let last: Point | undefined;
  for await (const line of createInterface({ input: child.stdout })) {
    if (!line.startsWith('{"step"')) continue;
    last = JSON.parse(line) as Point;
    if (last.rate < target) say(`  ${describe(last)}`);
  }
  if (!last) throw new Error(`TRL did not train: ${errors}`);
  return last;
}

/** Ours of one shape beside TRL with the same or another. */
function peerRows(name: string, other: string, ours: Points, theirs: Points): BenchRow[] {
  const [shape, their] = [name, other].map((one) => one.replace("x", " × "));
  const what = name === other ? `${shape}, both` : `${shape}, TRL ${their}`;
  const row = (
    part: string,
    of: (point: Point) => number,
    show: (value: number) => string,
    least?: number,
  ): BenchRow => {
    const [mine, peer] = [ours.get(name)!.map(of), theirs.get(other)!.map(of)];
    const begin = { what: `${what}: ${part}`, ours: spread(mine, show) };
    if (peer.length === 0) return { ...begin, other: "–", figure: "–" };
    const { middle, low, high } = ratioInterval(mine, peer);
    const figure = `${middle.toFixed(1)}×${Number.isFinite(high) ? ` [${low.toFixed(1)}, ${high.toFixed(1)}]` : ""}`;
    const target = least === undefined ? {} : { target: `≥ ${least}×`, met: middle >= least };
    return { ...begin, other: spread(peer, show), figure, ...target };
  };
  return [
    row(
      "training until the target",
      ({ seconds }) => seconds,
      (value) => `${value.toFixed(1)} s`,
      other === standard ? 20 : undefined,
    ),
    row(
      "a step",
      ({ seconds, step }) => seconds / step,
      (value) => `${value.toFixed(2)} s`,
    ),
    row("completions until the target", ({ completions }) => completions, whole),
  ];
}

/** One way to share completions beside another. */
function ruleRow(name: string, beside: string, ours: Points): BenchRow {
  const points = ours.get(name)!;
  const fixed = ours.get(beside)!;
  const seconds = spread(
    points.map((point) => point.seconds),
    (value) => `${value.toFixed(1)} s`,
  );
  const { middle } = ratioInterval(
    points.map(({ completions }) => completions),
    fixed.map(({ completions }) => completions),
  );
  return {
    what: `${rules[name]!.name}: completions, seconds`,
    ours: spread(
      points.map(({ completions }) => completions),
      whole,
    ),
    other: seconds,
    figure: `${middle.toFixed(2)}× fewer completions than ${beside.replace("x", " × ")}`,
  };
}

const percent = (rate: number) => `${(100 * rate).toFixed(1)}%`;
const whole = (value: number) => Math.round(value).toLocaleString("en");
const describe = ({ step, completions, seconds, rate }: Point) =>
  `${percent(rate)} after ${step} steps, ${whole(completions)} completions, ${seconds.toFixed(1)} s of training`;

/** A median and the range. */
function spread(values: readonly number[], show: (value: number) => string): string {
  return values.length === 1
    ? show(values[0]!)
    : `${show(median(values))} [${show(Math.min(...values))}–${show(Math.max(...values))}]`;
}
