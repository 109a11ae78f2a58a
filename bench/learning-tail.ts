// `./whet bench tail`: what carrying slow groups over costs in learning. The bundled model behind a proxy that holds answers back the longer
// they are, at max_lag 1 and 2, with tail=wait and tail=carry on the same seeds: Pass@1 after the run, its seconds, and whether what was
// trained on is shorter than what was sampled.
import { mkdtempSync, rmSync } from "node:fs";
import { availableParallelism, loadavg, tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { mean } from "../src/core/statistics.ts";
import { summarizeOutcomes } from "../src/rl/evaluate.ts";
import { readJournal } from "../src/runs/read-journal.ts";
import { RunView } from "../src/runs/view.ts";
import { startServe } from "../test/contract/serve-process.ts";
import { type Held, holdingProxy } from "../test/support/delaying-proxy.ts";
import { meanInterval, median } from "./intervals.ts";
import { whet } from "./learning-run.ts";
import type { Benchmark } from "./report.ts";

const cells = [1, 2].flatMap((lag) => (["wait", "carry"] as const).map((tail) => ({ lag, tail })));
/** A group of median length waits so long, one of twice its length 2 ** power times that. */
const medianMs = 100;
const power = 6;
const mostMs = 3000;

export const benchmark: Benchmark = {
  async run(say, { quick, seeds: count }) {
    const seeds = Array.from({ length: quick ? 1 : count }, (_, seed) => seed);
    const folder = mkdtempSync(join(tmpdir(), "whetstone-bench-"));
    const server = await startServe([`state_dir=${join(folder, "state")}`]);
    const proxy = await holdingProxy(server.baseUrl, longerIsLater());
    process.env["TINKER_API_KEY"] = server.apiKey;
    try {
      const results = cells.map(() => [] as Measured[]);
      // Seed by seed, so that a change in the machine's load meets all.
      for (const seed of seeds)
        for (const [cell, { lag, tail }] of cells.entries()) {
          const path = join(folder, `${tail}-${lag}-${seed}`);
          const args = [`log_path=${path}`, `base_url=${proxy.url}`, "preset=nano", `seed=${seed}`, "dashboard=false"];
          // The clipped loss for all: what is carried over at max_lag=2 is three versions old.
          args.push(`max_lag=${lag}`, `tail=${tail}`, "loss_fn=ppo", "tensorboard=false");
          if (quick) args.push("max_steps=4", "eval_every=4", "eval_max_problems=6", "completions_per_prompt=4");
          await whet("train", ...args);
          const measured = measure(path);
          results[cell]!.push(measured);
          say(`max_lag=${lag} tail=${tail} seed=${seed}: ${percent(measured.rate)}, ${describe(measured)}`);
        }
      return {
        title: "Tails that grow with length: carrying over beside waiting",
        columns: ["Pass@1, mean with 95% interval over seeds", "a step"],
        rows: cells.map(({ lag, tail }, cell) => {
          const runs = results[cell]!;
          const { middle, low, high } = meanInterval(runs.map(({ rate }) => rate));
          const each = runs.map(({ rate }) => percent(rate)).join(" / ");
          const sum = (pick: (run: Measured) => number) => mean(runs.map(pick))!;
          const lengths = `${sum(({ trained }) => trained).toFixed(2)} of ${sum(({ sampled }) => sampled).toFixed(2)} tokens`;
          const shortened = runs.some(({ trained, sampled }) => trained < sampled);
          return {
            what: `max_lag=${lag} tail=${tail}: ${each}`,
            ours: `${percent(middle)} [${percent(low)}, ${percent(high)}]`,
            other: `${sum(({ seconds }) => seconds).toFixed(2)} s, ${percent(sum(({ carried }) => carried))} carried`,
            figure: lengths,
            ...(!quick && { target: "no shorter", met: !shortened }),
          };
        }),
        notes: [
          "figures: the mean length of the answers that were trained on, and of those that were sampled",
          `preset=nano with loss_fn=ppo, seeds ${seeds.join(", ")}; a group waits ${medianMs} ms × (its length / the median)^${power}, at most ${mostMs / 1000} s`,
          `${availableParallelism()} cores, load ${loadavg()[0]!.toFixed(1)}`,
        ],
      };
    } finally {
      await proxy.close();
      await server.close();
      rmSync(folder, { recursive: true, force: true });
    }
  },
};

/** Holds back what was sampled, by how long it is. */
function longerIsLater(): (held: Held) => Promise<undefined> {
  const sampling = new Set<string>();
  const sizes: number[] = [];
  return async ({ path, body, answer }) => {
    if (path.includes("/asample")) sampling.add((JSON.parse(answer.toString()) as { request_id: string }).request_id);
    if (!path.includes("/retrieve_future")) return undefined;
    const { request_id: id } = JSON.parse(body.toString()) as { request_id: string };
    // Below that it is no answer yet.
    if (!sampling.has(id) || answer.length < 200) return undefined;
    sizes.push(answer.length);
    const share = answer.length / median(sizes.slice(-200));
    return sleep(Math.min(mostMs, medianMs * share ** power), undefined);
  };
}

interface Measured {
  rate: number;
  /** A step. */
  seconds: number;
  /** Share of the groups. */
  carried: number;
  /** Mean tokens of answers. */
  trained: number;
  sampled: number;
}

function measure(path: string): Measured {
  const view = RunView.read(path);
  const [, last] = [...view.evaluations.entries()].sort(([a], [b]) => a - b).at(-1)!;
  const lengths = new Map<string, number[]>();
  const trained: number[] = [];
  let [groups, late] = [0, 0];
  for (const { event } of readJournal(path)) {
    if (event.type === "group-sampled" && event.phase === "train") {
      const tokens = event.samples.map((sample) => sample.tokens);
      lengths.set(`${event.batch} ${event.group}`, tokens);
    } else if (event.type === "update-submitted")
      for (const { batch, group } of event.groups) {
        trained.push(...lengths.get(`${batch} ${group}`)!);
        groups++;
        if (batch < event.step) late++;
      }
  }
  return {
    rate: summarizeOutcomes(last.outcomes).pass1?.rate ?? Number.NaN,
    seconds: mean(
      view.records.flatMap((record) => Number(record["time/total"] ?? Number.NaN)).filter(Number.isFinite),
    )!,
    carried: late / groups,
    trained: mean(trained)!,
    sampled: mean([...lengths.values()].flat())!,
  };
}

const percent = (value: number) => `${(100 * value).toFixed(1)}%`;
const describe = ({ seconds, carried, trained, sampled }: Measured) =>
  `${seconds.toFixed(2)} s a step, ${percent(carried)} of the groups carried over, ${trained.toFixed(2)} of ${sampled.toFixed(2)} tokens`;
