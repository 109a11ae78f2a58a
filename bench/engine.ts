// `./whet bench engine`: the embedded engine beside PyTorch and transformers on this machine's CPU. The same model, the same
// number of threads, runs taken in turns; a figure is the ratio of medians.
import { existsSync } from "node:fs";
import { availableParallelism, cpus, loadavg } from "node:os";
import { fileURLToPath } from "node:url";
import { Random } from "../src/core/random.ts";
import { loadDataset } from "../src/data/index.ts";
import { buildMessages } from "../src/data/question.ts";
import type { Engine } from "../src/engine/engine.ts";
import { createEmbeddedEngine } from "../src/engine/index.ts";
import { getRenderer } from "../src/renderers/index.ts";
import { presetConfig } from "../src/rl/config.ts";
import { loadTokenizer } from "../src/tokenizer/load.ts";
import {
  datumOf,
  freshSampler,
  prompts,
  ratioRow,
  type Say,
  sampleAll,
  startTorch,
  type Torch,
  trainedModel,
} from "./engine-load.ts";
import { median } from "./intervals.ts";
import type { Benchmark, BenchReport, BenchRow } from "./report.ts";

const folder = fileURLToPath(new URL("../models/nano-coder", import.meta.url));
const rounds = 7;
const promptLength = 150;
const newTokens = 64;
const [groupCount, groupSize] = [8, 16];
const answerTokens = presetConfig("nano").max_tokens;

export const benchmark: Benchmark = {
  async run(say, { model, quick }) {
    // Loaded here: it takes this file's rows for its notes.
    if (model !== "") return (await import("./engine-model.ts")).benchModel(model, quick, say);
    if (!existsSync(folder)) return { missing: `there is no model at ${folder}` };
    const threads = availableParallelism();
    const engine = await createEmbeddedEngine({ models: [{ name: "bench", dir: folder }], threads });
    try {
      const torch = await startTorch(folder, threads, say);
      const rows: BenchRow[] = [];
      const notes: string[] = [];
      if ("missing" in torch) notes.push(`PyTorch's side was skipped: ${torch.missing}`);
      const peer = "missing" in torch ? undefined : torch;
      try {
        rows.push(await compareAnswers(engine, peer, say));
        rows.push(...(await compareSampling(engine, peer, say)), ...(await compareTraining(engine, peer, say)));
        notes.push(...(await curve(engine, say)), ...(await describeRun(engine, peer, threads, rounds)));
      } finally {
        await peer?.close();
      }
      const report: BenchReport = {
        title: "The embedded engine beside PyTorch and transformers, on the CPU",
        columns: ["whetstone", "PyTorch"],
        rows,
        notes,
      };
      return report;
    } finally {
      await engine.close();
    }
  },
};

/** What a step of training samples: answers to problems, each until it ends. */
async function compareAnswers(engine: Engine, torch: Torch | undefined, say: Say): Promise<BenchRow> {
  const renderer = getRenderer("qwen3_instruct", await loadTokenizer("nano-coder"));
  const { problems } = await loadDataset("starter", { split: "train" });
  const asked = problems
    .slice(0, groupCount)
    .map(({ question, starterCode }) => [
      ...renderer.buildGenerationPrompt(buildMessages({ question, starterCode, call: null })),
    ]);
  const stop = renderer.stop[0] as number;
  const [ours, other]: [number[], number[]] = [[], []];
  for (let round = 0; round <= rounds; round++) {
    say(`answers, round ${round} of ${rounds}`);
    const sampler = await freshSampler(engine);
    const { tokensPerSecond } = await sampleAll(engine, sampler.id, asked, groupSize, answerTokens, [stop]);
    await engine.releaseSampler(sampler.id);
    const command = { prompts: asked, samples: groupSize, new_tokens: answerTokens, stop };
    const peer = await torch?.ask<[seconds: number, tokens: number]>({ do: "answers", ...command });
    if (round === 0) continue;
    ours.push(1 / tokensPerSecond);
    if (peer) other.push(peer[0] / peer[1]);
  }
  return ratioRow(
    `${groupCount} problems × ${groupSize} answers to their end: transformers generate`,
    1,
    ours,
    other,
    5,
  );
}

async function compareSampling(engine: Engine, torch: Torch | undefined, say: Say): Promise<BenchRow[]> {
  const cases = [
    { what: `${groupCount} prompts × ${groupSize} completions`, groups: groupCount, samples: groupSize, targets: true },
    { what: "128 unrelated prompts", groups: groupCount * groupSize, samples: 1, targets: false },
  ];
  const rows: BenchRow[] = [];
  for (const { what, groups, samples, targets } of cases) {
    const asked = prompts(groups, promptLength);
    const times: Record<"ours" | "generate" | "loop", number[]> = { ours: [], generate: [], loop: [] };
    for (let round = 0; round <= rounds; round++) {
      say(`sampling, ${what}, round ${round} of ${rounds}`);
      const sampler = await freshSampler(engine);
      const { seconds } = await sampleAll(engine, sampler.id, asked, samples, newTokens);
      await engine.releaseSampler(sampler.id);
      const command = { prompts: asked, samples, new_tokens: newTokens };
      const generate = await torch?.ask<number>({ do: "generate", ...command });
      const loop = await torch?.ask<[number, number]>({ do: "loop", ...command });
      if (round === 0) continue; // the first round warms everything up
      times.ours.push(seconds);
      if (generate !== undefined) times.generate.push(generate);
      if (loop !== undefined) times.loop.push(loop[0]);
    }
    const total = groups * samples * newTokens;
    const compare = (name: string, other: number[], least: number): BenchRow =>
      ratioRow(`${what}, ${newTokens} tokens: ${name}`, total, times.ours, other, targets ? least : undefined);
    rows.push(compare("transformers generate", times.generate, 4), compare("hand-written loop", times.loop, 1.5));
  }
  return rows;
}

async function compareTraining(engine: Engine, torch: Torch | undefined, say: Say): Promise<BenchRow[]> {
  const random = new Random("completions");
  const completion = () => prompts(1, 30 + random.integer(51))[0]!.map(() => 1 + random.integer(900));
  const grpo = prompts(groupCount, promptLength).flatMap((prompt) =>
    Array.from({ length: groupSize }, () => [...prompt, ...completion()]),
  );
  const unrelated = Array.from({ length: 128 }, (_, index) => [...prompts(index + 2, 150)[index]!, ...completion()]);
  const cases = [
    { what: "forward+backward, 8 prompts × 16 completions of 30–80", sequences: grpo, least: 2 },
    { what: "forward+backward, 128 unrelated sequences", sequences: unrelated, least: 0.9 },
  ];
  const rows: BenchRow[] = [];
  const id = await trainedModel(engine);
  for (const { what, sequences, least } of cases) {
    const [ours, other]: [number[], number[]] = [[], []];
    for (let round = 0; round <= rounds; round++) {
      say(`training, ${what}, round ${round} of ${rounds}`);
      const data = sequences.map((sequence) => datumOf(sequence, promptLength));
      const start = performance.now();
      await engine.forwardBackward(id, { data, loss: "importance_sampling", lossConfig: {}, forwardOnly: false });
      const seconds = (performance.now() - start) / 1000;
      const peer = await torch?.ask<number>({ do: "train", sequences, prompt_length: promptLength });
      if (round === 0) continue;
      ours.push(seconds);
      if (peer !== undefined) other.push(peer);
    }
    const tokens = sequences.reduce((total, sequence) => total + sequence.length - 1, 0);
    rows.push(ratioRow(what, tokens, ours, other, least));
  }
  await engine.optimStep(id, {
    learningRate: 0,
    beta1: 0.9,
    beta2: 0.95,
    epsilon: 1e-12,
    weightDecay: 0,
    gradClipNorm: 0,
  });
  return rows;
}

/** Tokens per second over batch and prompt length, decoding 32 tokens each. */
async function curve(engine: Engine, say: Say): Promise<string[]> {
  const lengths = [32, 128, 512];
  const lines = [`tokens/s by batch (rows) and prompt length (${lengths.join(", ")}), one prompt per sample:`];
  for (const batch of [1, 8, 32, 128]) {
    const speeds: string[] = [];
    for (const length of lengths) {
      say(`curve, batch ${batch}, prompts of ${length}`);
      const sampler = await freshSampler(engine);
      const { tokensPerSecond } = await sampleAll(engine, sampler.id, prompts(batch, length), 1, 32);
      await engine.releaseSampler(sampler.id);
      speeds.push(String(Math.round(tokensPerSecond)).padStart(7));
    }
    lines.push(`  ${String(batch).padStart(4)} ${speeds.join(" ")}`);
  }
  return lines;
}

export async function describeRun(
  engine: Engine,
  torch: Torch | undefined,
  threads: number,
  rounds: number,
): Promise<string[]> {
  const made = [];
  for (let i = 0; i < 5; i++) made.push((await freshSampler(engine)).milliseconds);
  const peak = (process.resourceUsage().maxRSS / 1024).toFixed(0);
  const load = loadavg()[0]!;
  return [
    // PyTorch's threads wait for each other after every op, and lose far more to other processes than ours do.
    ...(load > 1.5 * threads
      ? [`This machine is busy (load ${load.toFixed(1)}): the ratios flatter us. Run it again on an idle one.`]
      : []),
    `A sampler of new weights is made in ${median(made).toFixed(0)} ms (median of 5).`,
    `Peak memory: ${peak} MiB here${torch ? `, ${torch.peakMib().toFixed(0)} MiB in PyTorch's process` : ""}.`,
    `${threads} threads, ${cpus()[0]?.model ?? "unknown CPU"}, load ${load.toFixed(1)}, median of ${rounds} rounds in turns, ${torch?.versions ?? ""}`,
  ];
}
