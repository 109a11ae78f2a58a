// What loader, trainer and sampler know of a model: its sizes, and the entry of its architecture in the table of architectures/,
// which says how the model's weights are named and in what its layers differ from those of others. All of them are decoders of one
// kind: attention and a gated MLP, each behind an RMS norm, with rotary positions. Names are Hugging Face's and PEFT's, so that
// nothing is ever renamed.
import { elementCount } from "../core/arrays.ts";
import type { Tensor } from "../graph/index.ts";
import type { ConfigFile } from "./config-file.ts";

export interface Architecture {
  /** What config.json says under `architectures`, and under `model_type`. */
  readonly name: string;
  readonly modelType: string;
  /** Fields of config.json that change the results, each with the only value that is computed. A missing field means that value. */
  readonly computed: Readonly<Record<string, unknown>>;
  readSizes(file: ConfigFile): Omit<DecoderConfig, "architecture">;
  readonly layer: LayerNames;
  /** The linear layers with a bias, which an adapter leaves as it is. */
  readonly biased: readonly ("query" | "key" | "value")[];
  /** Of the MLP's gate. */
  activation(x: Tensor): Tensor;
}

/** How a layer's weights are named under `model.layers.N.`, without `.weight`. */
export interface LayerNames {
  attentionNorm: string;
  query: string;
  key: string;
  value: string;
  output: string;
  /** Of every head, before it is rotated to its position. */
  queryNorm?: string;
  keyNorm?: string;
  mlpNorm: string;
  gate: string;
  up: string;
  down: string;
}

export interface DecoderConfig {
  architecture: Architecture;
  hiddenSize: number;
  intermediateSize: number;
  numLayers: number;
  numHeads: number;
  numKvHeads: number;
  headDim: number;
  vocabSize: number;
  /** Of each pair of a head's numbers: the angle between one position and the next. */
  ropeFrequencies: readonly number[];
  rmsNormEps: number;
  /** True: the output head is the embedding matrix, and there is no `lm_head.weight`. */
  tieWordEmbeddings: boolean;
  maxPositions: number;
}

/** An array with its shape, row-major. */
export interface Weight {
  data: Float32Array;
  shape: readonly number[];
}

/** Weights under Hugging Face's names. A linear layer's weight is [out, in]. */
export type Weights = ReadonlyMap<string, Weight>;

/**
 * Adapter parameters under PEFT's names without their `base_model.model.` prefix: for a linear layer `X` (such as
 * `model.layers.0.self_attn.q_proj` or `lm_head`), `X.lora_A.weight` is [rank, in] and `X.lora_B.weight` is [out, rank].
 */
export type AdapterWeights = Map<string, Weight>;

export const embedding = "model.embed_tokens.weight";
export const finalNorm = "model.norm";
export const head = "lm_head";

/** A part of a layer as it is named in the model. */
export function partName({ architecture }: DecoderConfig, layer: number, part: keyof LayerNames): string {
  return `model.layers.${layer}.${architecture.layer[part]}`;
}

/** Every weight a model of this configuration has, with its shape. */
export function weightShapes(config: DecoderConfig): Map<string, number[]> {
  const { hiddenSize, vocabSize, numLayers, architecture } = config;
  const shapes = new Map([
    [embedding, [vocabSize, hiddenSize]],
    [`${finalNorm}.weight`, [hiddenSize]],
  ]);
  if (!config.tieWordEmbeddings) shapes.set(`${head}.weight`, [vocabSize, hiddenSize]);
  const parts = partShapes(config);
  for (let layer = 0; layer < numLayers; layer++) {
    for (const part of Object.keys(architecture.layer) as (keyof LayerNames)[])
      shapes.set(`${partName(config, layer, part)}.weight`, parts[part]);
    for (const part of architecture.biased) shapes.set(`${partName(config, layer, part)}.bias`, [parts[part][0]!]);
  }
  return shapes;
}

function partShapes(config: DecoderConfig): Record<keyof LayerNames, number[]> {
  const { hiddenSize: hidden, intermediateSize: inner, headDim } = config;
  const [queries, keys] = [config.numHeads * headDim, config.numKvHeads * headDim];
  return {
    attentionNorm: [hidden],
    query: [queries, hidden],
    key: [keys, hidden],
    value: [keys, hidden],
    output: [hidden, queries],
    queryNorm: [headDim],
    keyNorm: [headDim],
    mlpNorm: [hidden],
    gate: [inner, hidden],
    up: [inner, hidden],
    down: [hidden, inner],
  };
}

/** The parts of a layer that an adapter can sit on, by what a client asks for. */
export const adaptedParts = {
  trainAttn: ["query", "key", "value", "output"],
  trainMlp: ["gate", "up", "down"],
} as const;

/** The weight a linear layer multiplies with: a tied head's is the embedding. */
export function weightName(config: DecoderConfig, layer: string): string {
  return layer === head && config.tieWordEmbeddings ? embedding : `${layer}.weight`;
}

/** The shape of a linear layer's weight. */
export function linearShapes(config: DecoderConfig): (layer: string) => [out: number, input: number] {
  const shapes = weightShapes(config);
  return (layer) => shapes.get(weightName(config, layer)) as [number, number];
}

/** The number of a model's parameters. */
export function parameterCount(config: DecoderConfig): number {
  return [...weightShapes(config).values()].reduce((total, shape) => total + elementCount(shape), 0);
}
