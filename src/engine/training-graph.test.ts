// The whole training graph of a small model: its gradients against finite differences of the interpreter, and ONNX Runtime
// against the interpreter, for every loss, with nothing shared, with shared prefixes and as trees, merged and beside the weights.
import { expect, test } from "vitest";
import { type Feed, interpret } from "../../test/support/graph-interpreter.ts";
import { randomWeights } from "../../test/support/tiny-model.ts";
import { Random } from "../core/random.ts";
import { floats, Session, type Value, value } from "../graph/index.ts";
import type { LossName } from "../protocol/losses.ts";
import type { DecoderConfig } from "./architecture.ts";
import { qwen3 } from "./architectures/qwen3.ts";
import { ropeFrequencies } from "./config-file.ts";
import { initialAdapter, loraScale } from "./lora.ts";
import { layOutSlots } from "./loss-slots.ts";
import { losses } from "./losses.ts";
import { packBatch } from "./packing.ts";
import { prepareBatch } from "./training-batch.ts";
import { packedFeeds, slotFeeds } from "./training-feeds.ts";
import { trainingGraph } from "./training-graph.ts";
import { toValues } from "./training-runner.ts";
import { RopeTables } from "./transformer.ts";

const config: DecoderConfig = {
  architecture: qwen3,
  hiddenSize: 6,
  intermediateSize: 8,
  numLayers: 2,
  numHeads: 4,
  numKvHeads: 2,
  headDim: 4,
  vocabSize: 11,
  ropeFrequencies: ropeFrequencies(100, 4),
  rmsNormEps: 1e-6,
  tieWordEmbeddings: true,
  maxPositions: 64,
};
const spec = { rank: 2, seed: 3, trainAttn: true, trainMlp: true, trainUnembed: true };
const prompt = [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 1, 2, 3, 4, 5, 6];
const batches = {
  plain: [
    [1, 5, 3],
    [2, 2, 9, 4],
  ],
  shared: [
    [...prompt, 3, 1],
    [...prompt, 4],
    [...prompt, 5, 2, 8],
  ],
  tree: [
    [...prompt, 3, 1, 7],
    [...prompt, 4, 9],
    [...prompt, 3, 1, 8, 2],
    [...prompt, 3, 1, 7],
  ],
};
const blocksOf = { plain: ["plain"], shared: ["plain", "shared"], tree: ["tree"] } as const;

function feedsFor(
  kind: keyof typeof batches,
  loss: LossName,
): { feeds: Record<string, Value>; runs: number; idle: boolean } {
  const random = new Random(kind, loss);
  const data = batches[kind].map((sequence) => {
    const shape = [sequence.length - 1];
    const numbers = (scale: number): Float32Array =>
      Float32Array.from({ length: shape[0]! }, () => scale * random.normal());
    const idle = numbers(1).map((x, i) => (i % 3 === 1 ? 0 : x));
    const inputs =
      loss === "cross_entropy" ? { weights: idle } : { logprobs: numbers(0.1).map((x) => x - 2.4), advantages: idle };
    const tensors = Object.entries(inputs).map(([name, values]) => [name, { data: values, shape }]);
    const targets = { data: Int32Array.from(sequence.slice(1)), shape };
    return {
      tokens: Int32Array.from(sequence.slice(0, -1)),
      lossInputs: { target_tokens: targets, ...Object.fromEntries(tensors) },
    };
  });
  const checked = prepareBatch({ data, loss, lossConfig: {}, forwardOnly: false });
  const runs = packBatch(
    checked.map(({ tokens }) => tokens),
    1000,
  );
  const slots = layOutSlots(losses[loss], checked, runs[0]!, 4);
  const feeds: Record<string, Value> = {
    ...toValues({ ...packedFeeds(runs[0]!), ...slotFeeds(slots, losses[loss].inputs) }),
    ...new RopeTables(config).feeds(config.maxPositions),
    lora_scale: value(Float32Array.of(loraScale(spec.rank) / 16), []),
  };
  // With equal thresholds cispo's ratio is constant, and finite differences hold although no gradient goes through it.
  const settings = loss === "cispo" ? { clip_low_threshold: 0.9, clip_high_threshold: 0.9 } : losses[loss].config;
  for (const [name, setting] of Object.entries(settings)) feeds[`config.${name}`] = value(Float32Array.of(setting), []);
  for (const [name, { data: weights, shape }] of randomWeights(config, 5)) feeds[name] = value(weights, shape);
  for (const [name, { data: weights, shape }] of initialAdapter(config, spec)) {
    // A fresh adapter's B is zero, and then so is A's gradient.
    feeds[name] = value(name.includes("lora_B") ? weights.map(() => 0.3 * random.normal()) : weights, shape);
  }
  return { feeds, runs: runs.length, idle: slots.idle !== undefined };
}

const asFeeds = (values: Record<string, Value>): Record<string, Feed> =>
  Object.fromEntries(
    Object.entries(values).map(([name, { data, dims }]) => [name, { data: data as Float32Array, shape: dims }]),
  );

// gspo's value does not depend on the position's own logprob, so finite differences say nothing; see trainer.test.ts.
const cases = Object.keys(losses)
  .filter((loss) => loss !== "gspo")
  .flatMap((loss, index) =>
    (["plain", "shared", "tree"] as const).map((kind, i) => ({
      loss: loss as LossName,
      kind,
      merge: (index + i) % 2 === 0,
      recompute: (2 * index + i) % 3 === 0,
    })),
  );

test.each(cases)("$loss, $kind, merged: $merge, recomputed: $recompute", async ({ loss, kind, merge, recompute }) => {
  const { feeds: values, runs, idle } = feedsFor(kind, loss);
  expect(runs).toBe(1);
  const blocks = blocksOf[kind];
  const outputs = trainingGraph(config, { targets: spec, loss, backward: true, blocks, idle, merge, recompute });
  const feeds = asFeeds(values);
  const exact = interpret(outputs, feeds);

  const session = await Session.compile(outputs, 1);
  const ran = await session.run(values);
  await session.release();
  for (const [name, { data }] of Object.entries(exact)) {
    const largest = data.reduce((most, x) => Math.max(most, Math.abs(x)), 0);
    const off = floats(ran[name]!).reduce((most, x, i) => Math.max(most, Math.abs(x - data[i]!)), 0);
    expect(off, name).toBeLessThan(1e-5 * (1 + largest));
  }

  // One random direction through all parameters, and one through each of four.
  const names = Object.keys(outputs).filter((name) => name.startsWith("grad."));
  const random = new Random("directions");
  for (const chosen of [names, ...[0, 5, 17, names.length - 1].map((i) => [names[i]!])]) {
    const direction = new Map(
      chosen.map((name) => [name, Float64Array.from(exact[name]!.data, () => random.normal())]),
    );
    let predicted = 0;
    for (const [name, along] of direction) predicted += along.reduce((sum, x, i) => sum + x * exact[name]!.data[i]!, 0);
    const lossAt = (step: number): number => {
      const moved = { ...feeds };
      for (const [name, along] of direction) {
        const feed = feeds[name.slice("grad.".length)]!;
        const data = Float64Array.from(feed.data, (x, i) => x + step * along[i]!);
        moved[name.slice("grad.".length)] = { data, shape: feed.shape };
      }
      return interpret({ losses: outputs["losses"]! }, moved).losses.data.reduce((sum, x) => sum + x, 0);
    };
    const measured = (lossAt(1e-5) - lossAt(-1e-5)) / 2e-5;
    expect(Math.abs(measured - predicted), chosen.length === 1 ? chosen[0] : "all").toBeLessThan(
      1e-5 * (1 + Math.abs(predicted)),
    );
  }
});
