// Prints how far the embedded engine is from PyTorch and transformers, on the vectors of test/golden/engine:
//     node --import ./src/core/ts-loader.mjs scripts/engine-parity.ts [FOLDER …]      FOLDER: what engine-reference.py made of a real model

import { basename, resolve } from "node:path";
import type { Weight } from "../src/engine/architecture.ts";
import { BaseModel } from "../src/engine/base-model.ts";
import type { TrainingBatch } from "../src/engine/engine.ts";
import { readConfig, readWeights } from "../src/engine/hf-folder.ts";
import { defaultSamplerLimits, type RunnableRequest, Sampler } from "../src/engine/sampler.ts";
import { Trainer } from "../src/engine/trainer.ts";
import { LocalRunner } from "../src/engine/training-runner.ts";
import { ggufFolder } from "../src/gguf/index.ts";
import type { LossName } from "../src/protocol/losses.ts";
import { type Golden, goldenModels, readGolden } from "../test/support/golden-engine.ts";

// A deep model in float32 is further from float64, PyTorch's too and by the same roundings: a real model is compared with PyTorch in float32,
// and may be as far from float64 as that is.

interface Line {
  what: string;
  limit: string;
  /** Per golden model. */
  found: string[];
  met: boolean;
}

const losses = ["cross_entropy", "importance_sampling", "ppo", "cispo", "dro", "cross_entropy_soft"] as const;
const lines = new Map<string, Line>();

function record(what: string, limit: number, found: number): void {
  const line = lines.get(what) ?? { what, limit: `≤ ${limit.toExponential(limit > 0 ? 1 : 0)}`, found: [], met: true };
  line.found.push(found.toExponential(1));
  line.met &&= found <= limit;
  lines.set(what, line);
}

/** The length of the difference, relative to the length of the reference. */
function relative(a: Float32Array, b: Float32Array): number {
  let [difference, length] = [0, 0];
  for (const [index, value] of b.entries()) {
    difference += (a[index]! - value) ** 2;
    length += value ** 2;
  }
  return Math.sqrt(difference / length);
}

function worst(pairs: Iterable<[name: string, ours: Weight]>, reference: (name: string) => Weight): number {
  let largest = 0;
  for (const [name, { data }] of pairs) largest = Math.max(largest, relative(data, reference(name).data));
  return largest;
}

/** As for logits: the largest difference against the largest number, of all tensors together. */
function largestDifference(pairs: Iterable<[name: string, ours: Weight]>, reference: (name: string) => Weight): number {
  let [difference, largest] = [0, 0];
  for (const [name, { data }] of pairs)
    for (const [index, value] of reference(name).data.entries()) {
      difference = Math.max(difference, Math.abs(data[index]! - value));
      largest = Math.max(largest, Math.abs(value));
    }
  return difference / largest;
}

const peftName = (name: string): string => `base_model.model.${name}`;

function batchOf({ facts, tensor }: Golden, loss: string): TrainingBatch {
  const soft = loss === "cross_entropy_soft";
  const inputs = loss === "cross_entropy" ? ["weights"] : ["logprobs", "advantages"];
  return {
    loss: (soft ? "cross_entropy" : loss) as LossName,
    lossConfig: facts.losses[loss]!.config,
    forwardOnly: false,
    data: facts.sequences.map((sequence, index) => {
      const tokens = Int32Array.from(sequence.slice(0, -1));
      if (soft) {
        const { data, shape } = tensor(`soft.targets.${index}`);
        const targets = { data: Int32Array.from(data), shape };
        return { tokens, lossInputs: { target_tokens: targets, weights: tensor(`soft.weights.${index}`) } };
      }
      const targets = { data: Int32Array.from(sequence.slice(1)), shape: [tokens.length] };
      const named = inputs.map((name) => [name, tensor(`data.${name}.${index}`)] as const);
      return { tokens, lossInputs: { target_tokens: targets, ...Object.fromEntries(named) } };
    }),
  };
}

async function sampleAll(sampler: Sampler, requests: readonly RunnableRequest[]) {
  const running = requests.map((request) => sampler.submit(request));
  while (sampler.busy) await sampler.advance();
  return Promise.all(running.map(({ result }) => result));
}

async function compareSampling(golden: Golden, base: BaseModel): Promise<void> {
  const { facts } = golden;
  const sampler = new Sampler(base.config, await base.snapshot(golden.adapter, golden.lora), defaultSamplerLimits);
  const settings = { maxTokens: 1, seed: 0, temperature: 0, topK: -1, topP: 1, stopTokens: [] };
  const { vocabSize } = base.config;
  const scored = await sampleAll(
    sampler,
    facts.sequences.map((sequence) => ({
      prompt: Int32Array.from(sequence),
      numSamples: 1,
      settings,
      promptLogprobs: false,
      // All of them, or as many of a real model as can be held.
      topkPromptLogprobs: Math.min(vocabSize, 4096),
    })),
  );
  let [logits, largest] = [0, 0];
  for (const [index, sequence] of facts.sequences.entries()) {
    const reference = golden.tensor(`logits.${index}`).data;
    for (let position = 0; position < sequence.length - 1; position++) {
      const row = reference.subarray(position * vocabSize, (position + 1) * vocabSize);
      const found = scored[index]!.topkPromptLogprobs![position + 1]!;
      // Log-probabilities are logits up to one number per row: the row's log-sum-exp.
      const shift = Math.log(row.reduce((total, logit) => total + Math.exp(logit), 0));
      for (const [token, logprob] of found) {
        logits = Math.max(logits, Math.abs(logprob + shift - row[token]!));
        largest = Math.max(largest, Math.abs(row[token]!));
      }
    }
  }
  record("logits (both float32), largest difference", 1e-4, logits);
  record("the same, against the largest logit", 1e-5, logits / largest);

  const [greedy] = await sampleAll(sampler, [
    {
      prompt: Int32Array.from(facts.greedy.prompt),
      numSamples: 1,
      settings: { ...settings, maxTokens: facts.greedy.tokens.length },
      promptLogprobs: false,
      topkPromptLogprobs: 0,
    },
  ]);
  const tokens = greedy!.sequences[0]!.tokens;
  record(
    "greedy tokens (200) that differ",
    0,
    facts.greedy.tokens.filter((token, index) => token !== tokens[index]).length,
  );
}

async function compareTraining(golden: Golden, base: BaseModel): Promise<void> {
  const { facts } = golden;
  const runner = new LocalRunner(base.config, base.weights, 1);
  const fresh = (): Trainer => {
    const trainer = new Trainer(base.config, golden.lora, runner);
    trainer.importState({ weights: golden.adapter });
    return trainer;
  };
  for (const loss of losses) {
    const trainer = fresh();
    const { metrics } = await trainer.forwardBackward(batchOf(golden, loss));
    const expected = facts.losses[loss]!.loss_sum;
    const positions = facts.sequences.reduce((total, sequence) => total + sequence.length - 1, 0);
    record(`${loss}: loss:sum, difference per token`, 1e-4, Math.abs(metrics["loss:sum"]! - expected) / positions);
    const reference = (name: string) => golden.tensor(`grad.${loss}.${peftName(name)}`);
    const found = [...trainer.accumulatedGradient()];
    const { float32: own = 0 } = facts.losses[loss]!;
    if (own > 0) {
      const alike = (name: string) => golden.tensor(`grad32.${loss}.${peftName(name)}`);
      record(`${loss}: LoRA gradients (both float32), against the largest`, 1e-5, largestDifference(found, alike));
    }
    record(`${loss}: LoRA gradients against float64, relative`, Math.max(1e-5, 1.1 * own), worst(found, reference));
  }
  for (const variant of Object.keys(facts.adam.variants)) {
    const trainer = fresh();
    for (let step = 0; step < facts.adam.steps; step++) {
      const loss = facts.adam.losses[step % facts.adam.losses.length]!;
      await trainer.forwardBackward(batchOf(golden, loss));
      trainer.optimStep(golden.adam(variant));
    }
    const parameters = worst(trainer.weights(), (name) => golden.tensor(`adam.${variant}.${peftName(name)}`));
    const own = facts.adam.variants[variant]!["float32"] ?? 0;
    record(`parameters after Adam steps (${variant}), relative`, Math.max(1e-4, 1.5 * own), parameters);
  }
  await runner.close();
}

/** The weights that this project reads from a GGUF file against those that transformers reads. */
async function compareGguf({ dir, facts: { gguf } }: Golden): Promise<void> {
  if (gguf === undefined) return;
  const folder = await ggufFolder(gguf);
  const reference = readWeights(dir, readConfig(dir));
  let largest = 0;
  for (const [name, { data }] of readWeights(folder, readConfig(folder)))
    for (const [index, value] of reference.get(name)!.data.entries())
      largest = Math.max(largest, Math.abs(data[index]! - value));
  record("weights of the GGUF file, largest difference", 0, largest);
}

const folders = process.argv.slice(2).map((folder) => resolve(folder));
const models = folders.length > 0 ? folders : goldenModels;
for (const name of models) {
  const golden = readGolden(name);
  await compareGguf(golden);
  const base = new BaseModel(name, golden.dir, 1);
  await compareSampling(golden, base);
  await compareTraining(golden, base);
  await base.close();
}
const made = new Set(
  models.map((name) => readGolden(name).facts).map(({ torch, transformers }) => `${torch} and ${transformers}`),
);
console.log(`The embedded engine against PyTorch and transformers (${[...made].join("; ")})\n`);
const width = Math.max(...[...lines.keys()].map((what) => what.length));
console.log([" ".repeat(width), ...models.map((name) => basename(name).padStart(10)), "limit".padStart(8)].join("  "));
for (const { what, limit, found, met } of lines.values()) {
  console.log(
    [what.padEnd(width), ...found.map((text) => text.padStart(10)), limit.padStart(8), met ? "" : "MISSED"].join("  "),
  );
}
process.exitCode = [...lines.values()].every(({ met }) => met) ? 0 : 1;
