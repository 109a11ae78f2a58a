// `./whet bench engine model=…`: a model of a real size beside PyTorch, and how near both are to what the processor can multiply.
import { rmSync } from "node:fs";
import { availableParallelism } from "node:os";
import { scratchFolder } from "../src/core/files.ts";
import { type DecoderConfig, parameterCount } from "../src/engine/architecture.ts";
import { llama } from "../src/engine/architectures/llama.ts";
import { ropeFrequencies } from "../src/engine/config-file.ts";
import type { Engine } from "../src/engine/engine.ts";
import { expandGguf } from "../src/engine/expand-gguf.ts";
import { readConfig } from "../src/engine/hf-folder.ts";
import { createEmbeddedEngine } from "../src/engine/index.ts";
import { modelFolder } from "../src/hub/model-folder.ts";
import { writeTinyModel } from "../test/support/tiny-model.ts";
import { describeRun } from "./engine.ts";
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
import type { BenchReport, BenchRow } from "./report.ts";

const [groups, samples, promptLength, newTokens, trainedTokens] = [8, 8, 144, 32, 64];
/** What PyTorch takes at once: all of them together do not fit into 24 GiB. */
const micro = 8;

/** The shape of SmolLM2-135M. */
const smollm2: DecoderConfig = {
  architecture: llama,
  hiddenSize: 576,
  intermediateSize: 1536,
  numLayers: 30,
  numHeads: 9,
  numKvHeads: 3,
  headDim: 64,
  vocabSize: 49_152,
  ropeFrequencies: ropeFrequencies(100_000, 64),
  rmsNormEps: 1e-5,
  tieWordEmbeddings: true,
  maxPositions: 8192,
};

/** `model`: SmolLM2, for random weights in its shape; or a folder, a GGUF file or a hub id. */
export async function benchModel(model: string, quick: boolean, say: Say): Promise<BenchReport | { missing: string }> {
  const scratch = scratchFolder("bench-engine");
  try {
    const random = model === "SmolLM2";
    if (random) writeTinyModel(scratch, smollm2);
    const folder = random ? scratch : await modelFolder(model);
    expandGguf(folder);
    return await compare(folder, random ? "SmolLM2-135M's shape, random weights" : model, quick ? 1 : 3, say);
  } finally {
    rmSync(scratch, { recursive: true, force: true });
  }
}

async function compare(
  folder: string,
  name: string,
  rounds: number,
  say: Say,
): Promise<BenchReport | { missing: string }> {
  const threads = availableParallelism();
  const torch = await startTorch(folder, threads, say);
  if ("missing" in torch) return torch;
  const engine = await createEmbeddedEngine({ models: [{ name: "bench", dir: folder }], threads });
  try {
    const config = readConfig(folder);
    const rows = [...(await sampling(engine, torch, rounds, say)), await training(engine, torch, rounds, say)];
    return {
      title: `The embedded engine beside PyTorch and transformers, on the CPU: ${name}`,
      columns: ["whetstone", "PyTorch"],
      rows,
      notes: [...(await floors(config, torch)), ...(await describeRun(engine, torch, threads, rounds))],
    };
  } finally {
    await engine.close();
    await torch.close();
  }
}

async function sampling(engine: Engine, torch: Torch, rounds: number, say: Say): Promise<BenchRow[]> {
  const asked = prompts(groups, promptLength);
  const times = { ours: [] as number[], generate: [] as number[], loop: [] as number[] };
  for (let round = 0; round <= rounds; round++) {
    say(`sampling, round ${round} of ${rounds}`);
    const sampler = await freshSampler(engine);
    const { seconds } = await sampleAll(engine, sampler.id, asked, samples, newTokens);
    await engine.releaseSampler(sampler.id);
    const command = { prompts: asked, samples, new_tokens: newTokens };
    const generate = await torch.ask<number>({ do: "generate", ...command });
    const [loop] = await torch.ask<[number, number]>({ do: "loop", ...command });
    if (round === 0) continue; // the first round warms everything up
    times.ours.push(seconds);
    times.generate.push(generate);
    times.loop.push(loop);
  }
  const total = groups * samples * newTokens;
  const what = `sampling ${groups} × ${samples} × ${newTokens} after ${promptLength}`;
  return [
    ratioRow(`${what}: transformers generate`, total, times.ours, times.generate, 4),
    ratioRow(`${what}: hand-written loop`, total, times.ours, times.loop, 2),
  ];
}

async function training(engine: Engine, torch: Torch, rounds: number, say: Say): Promise<BenchRow> {
  const answers = prompts(groups * samples, trainedTokens + 1);
  const sequences = prompts(groups, promptLength).flatMap((prompt, group) =>
    answers.slice(group * samples, (group + 1) * samples).map((answer) => [...prompt, ...answer]),
  );
  const id = await trainedModel(engine);
  const [ours, other]: [number[], number[]] = [[], []];
  for (let round = 0; round < rounds; round++) {
    say(`training, round ${round + 1} of ${rounds}`);
    const data = sequences.map((sequence) => datumOf(sequence, promptLength));
    const start = performance.now();
    await engine.forwardBackward(id, { data, loss: "importance_sampling", lossConfig: {}, forwardOnly: false });
    ours.push((performance.now() - start) / 1000);
    other.push(await torch.ask<number>({ do: "train", sequences, prompt_length: promptLength, micro }));
  }
  const tokens = groups * samples * (promptLength + trainedTokens);
  return ratioRow(
    `forward+backward of ${groups} × ${samples} × (${promptLength} + ${trainedTokens}), PyTorch by ${micro}`,
    tokens,
    ours,
    other,
    3,
  );
}

/** What the products with the weights alone would take, with each prompt computed once. */
async function floors(config: DecoderConfig, torch: Torch): Promise<string[]> {
  const speed = (rows: number) =>
    torch.ask<number>({ do: "product", rows, inner: config.hiddenSize, columns: config.intermediateSize });
  const [few, many] = [await speed(groups * samples), await speed(1024)];
  const parameters = parameterCount(config);
  const sampled = groups * samples * newTokens;
  const samplingS = (2 * parameters * groups * promptLength) / (many * 1e9) + (2 * parameters * sampled) / (few * 1e9);
  // Forward, and backward to the activations: the weights themselves are not trained.
  const trained = groups * (promptLength + samples * trainedTokens);
  const trainingS = (4 * parameters * trained) / (many * 1e9);
  const tokens = groups * samples * (promptLength + trainedTokens);
  return [
    `The floor: float32 products run at ${few.toFixed(0)} GFLOP/s with ${groups * samples} rows and ${many.toFixed(0)} with 1,024, so the products with ` +
      `the weights alone allow ${Math.round(sampled / samplingS)} tok/s of sampling and ${Math.round(tokens / trainingS)} of training.`,
  ];
}
