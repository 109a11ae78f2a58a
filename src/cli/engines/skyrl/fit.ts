// How many sequences SkyRL can sample, and train on, at once in the memory there is: an estimate, shown before anything is fetched, by which
// sizes are chosen.
import { readFileSync } from "node:fs";
import { join } from "node:path";
import {
  adaptedParts,
  type DecoderConfig,
  parameterCount,
  partName,
  weightShapes,
} from "../../../engine/architecture.ts";
import { readConfig } from "../../../engine/hf-folder.ts";

export interface Sizes {
  parameters: number;
  /** Bytes of one number, as SkyRL keeps it. */
  width: number;
  /** Numbers of an adapter of rank 1. */
  adapterPerRank: number;
  /** Numbers in the keys and values of a token. */
  tokenNumbers: number;
  layers: number;
  heads: number;
  hidden: number;
  inner: number;
  vocabulary: number;
}

export interface Fit {
  /** Weights, adapters and gradients. */
  fixedBytes: number;
  /** Sequences at once; 0: not one fits. */
  sampled: number;
  trained: number;
  /** Layers are computed again in the backward pass, to keep less. */
  checkpointing: boolean;
}

export interface Wanted {
  window: number;
  rank: number;
  adapters: number;
  /** Answers of a step, and of a problem. */
  answers: number;
  group: number;
}

/** The sizes of the model in a folder; undefined where they are not known here. */
export function sizesOf(folder: string): Sizes | undefined {
  let config: DecoderConfig;
  try {
    config = readConfig(folder);
  } catch {
    return undefined; // another architecture than those that the embedded engine computes
  }
  const shapes = weightShapes(config);
  const adapted = Object.values(adaptedParts).flat();
  const ofLayer = adapted.reduce((sum, part) => {
    const [out = 0, input = 0] = shapes.get(`${partName(config, 0, part)}.weight`) ?? [];
    return sum + out + input;
  }, 0);
  return {
    parameters: parameterCount(config),
    width: dtypeOf(folder) === "float32" ? 4 : 2,
    adapterPerRank: ofLayer * config.numLayers,
    tokenNumbers: 2 * config.numLayers * config.numKvHeads * config.headDim,
    layers: config.numLayers,
    heads: config.numHeads,
    hidden: config.hiddenSize,
    inner: config.intermediateSize,
    vocabulary: config.vocabSize,
  };
}

/** The type of a folder's weights, as its config says. */
export function dtypeOf(folder: string): unknown {
  const { torch_dtype: older, dtype = older } = configIn(folder);
  return dtype;
}

export const configIn = (folder: string): Record<string, unknown> =>
  JSON.parse(readFileSync(join(folder, "config.json"), "utf8"));

/** The share of the memory that XLA and its workspace leave. */
const usable = 0.85;
/** SkyRL computes logits of so many tokens at a time. */
const logitsAtOnce = 1024;

export function fitInto(bytes: number, sizes: Sizes, wanted: Wanted): Fit {
  const { width, layers, heads, hidden, inner, vocabulary } = sizes;
  const { window, rank, adapters, answers, group } = wanted;
  // An adapter with its gradient, and Adam's two averages of the one in training.
  const fixedBytes = width * (sizes.parameters + sizes.adapterPerRank * rank * (2 * adapters + 2));
  const room = bytes * usable - fixedBytes - 8 * logitsAtOnce * vocabulary;
  const perSampled = window * sizes.tokenNumbers * width + 8 * vocabulary;
  // What XLA keeps of a layer for its gradient: activations, once more in the order of the adapters; in float32, which has no fused
  // attention there, two numbers for every pair of tokens.
  const scores = width === 4 ? 2 * heads * window : 0;
  const layer = window * (15 * hidden + 6.5 * inner + scores);
  const perTrained = (everything: boolean) => width * (everything ? layers * layer : layers * window * hidden + layer);
  const power = (max: number, each: number) => {
    const fitting = Math.min(max, Math.floor(room / each));
    return fitting < 1 ? 0 : 2 ** Math.floor(Math.log2(fitting));
  };
  const plain = power(group, perTrained(true));
  const checkpointing = plain < Math.min(group, 4);
  return {
    fixedBytes,
    sampled: power(Math.min(answers, 256), perSampled),
    trained: checkpointing ? power(group, perTrained(false)) : plain,
    checkpointing,
  };
}
