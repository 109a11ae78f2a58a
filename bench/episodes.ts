// `./whet bench episodes`: what the embedded engine computes of 64 episodes of 10 turns, beside computing every turn by itself. Counted in
// tokens: sampling by what the engine says it had computed already, training by the trees that it makes of the same sequences.
import { execFile } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { largestTree } from "../src/engine/packing.ts";
import { shareBatch, tokensOf } from "../src/engine/sharing.ts";
import { readableRun, readBatch, type TurnTokens, turnTokens } from "../src/runs/batch.ts";
import type { EventOf } from "../src/runs/events.ts";
import { readJournal } from "../src/runs/read-journal.ts";
import { turnPaths } from "../src/runs/turn-paths.ts";
import type { Benchmark } from "./report.ts";

const here = (path: string) => fileURLToPath(new URL(path, import.meta.url));
const settings = [
  `env=${here("ten-turns.ts")}`,
  "preset=nano",
  "max_steps=1",
  "prompts_per_step=8",
  "completions_per_prompt=8",
  "max_tokens=64",
  "context_window=1024",
  "eval_every=0",
  "tensorboard=false",
];
export const benchmark: Benchmark = {
  async run(say) {
    const folder = mkdtempSync(join(tmpdir(), "whetstone-bench-"));
    try {
      say("one step of 64 episodes of 10 turns");
      const path = join(folder, "run");
      await promisify(execFile)(here("../whet"), ["train", `log_path=${path}`, ...settings], { timeout: 590_000 });
      const events = [...readJournal(path)].map(({ event }) => event);
      const asked = events.filter((event) => event.type === "group-sampled" || event.type === "turn-sampled");
      const done = events.find((event) => event.type === "step-done");
      const [kl, gap] = ["v1", "v2"].map((name) => done?.metrics[`optim/kl_sample_train_${name}`]?.toExponential(1));
      const sum = (pick: (event: EventOf<"group-sampled"> | EventOf<"turn-sampled">) => number) =>
        asked.reduce((total, event) => total + pick(event), 0);
      // A group's first prompt is read once for its 8 answers already.
      const prompts = sum((event) => event.promptTokens * (event.type === "group-sampled" ? event.samples.length : 1));
      const computed = sum(({ promptTokens, cachedTokens }) => promptTokens - cachedTokens);

      const run = readableRun(path);
      const batch = readBatch(run, "train", 0);
      const episodes = batch.groups.flatMap((group) =>
        group.sampled.samples.map((_, sample) => turnTokens(run, group, sample)!),
      );
      const sequences = episodes.flatMap(sequencesOf);
      const apart = episodes.flatMap((turns) => turns.map((turn) => pathTo(turns, turn).length));
      const total = (lengths: readonly number[]) => lengths.reduce((all, length) => all + length, 0);
      const sharing = shareBatch(sequences, largestTree);
      const once =
        total(sharing.trees.map(({ tokens }) => tokens.length)) +
        total(sharing.groups.map((group) => tokensOf(group, sequences)));
      const row = (what: string, ours: number, other: number) => ({
        what,
        ours: `${ours} tokens`,
        other: `${other} tokens`,
        figure: `${(other / ours).toFixed(1)}×`,
      });
      return {
        title: "Episodes of ten turns",
        columns: ["computed", "every turn by itself"],
        rows: [
          row("prompts of the sampler", computed, prompts),
          row("sequences of the trainer, one an episode", total(sequences.map(({ length }) => length)), total(apart)),
          row("the same, as the engine computes them", once, total(apart)),
        ],
        notes: [
          `${episodes.length} episodes, ${total(episodes.map(({ length }) => length))} turns, ${sequences.length} sequences; nano-coder`,
          `sampler and trainer over all turns: KL ${kl}, half the mean squared gap ${gap}`,
        ],
      };
    } finally {
      rmSync(folder, { recursive: true, force: true });
    }
  },
};

/** All tokens up to a turn's end. */
function pathTo(turns: readonly TurnTokens[], { parent, context, tokens }: TurnTokens): number[] {
  const before = turns.find(({ turn }) => turn === parent);
  return [...(before ? pathTo(turns, before) : []), ...context, ...tokens];
}

function sequencesOf(turns: readonly TurnTokens[]): Int32Array[] {
  const counted = turns.flatMap(({ turn, counts }) => (counts ? [turn] : []));
  return turnPaths(turns, counted).map(({ path }) =>
    Int32Array.from(pathTo(turns, turns.find(({ turn }) => turn === path.at(-1))!)),
  );
}
