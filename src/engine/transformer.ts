// A decoder as a graph over rows of tokens: every row is one token, whatever sequence it belongs to. What differs between training,
// prefill and decoding is passed in: how a linear layer finds its weights (and its adapter), and how rows attend to each other.
import {
  add,
  gather,
  input,
  multiply,
  multiplyDims,
  reshape,
  rmsNorm,
  rope,
  type Tensor,
  type Value,
  value,
} from "../graph/index.ts";
import { type DecoderConfig, embedding, finalNorm, type LayerNames, partName } from "./architecture.ts";

/** Where a model's parameters come from. */
export interface Parameters {
  /** A weight used as it is: norms and the embedding. */
  weight(name: string, shape: readonly number[]): Tensor;
  linear(x: Tensor, layer: string): Tensor;
  /** Layers of the same rows whose weights follow each other in memory: what a layer's attention starts from. */
  joined(x: Tensor, layers: readonly string[]): Tensor[];
}

/** Attention's operands for all rows, rotated to their positions: [rows, heads · headDim]. The query is not scaled. */
export interface Projections {
  query: Tensor;
  key: Tensor;
  value: Tensor;
}

export interface DecoderContext {
  config: DecoderConfig;
  parameters: Parameters;
  /** [rows], each token's place in its sequence. */
  positions: Tensor;
}

/** Cosines and sines for positions 0 … maxPositions - 1, of which the first `count` rows are fed. */
export class RopeTables {
  readonly #half: number;
  readonly #cos: Float32Array;
  readonly #sin: Float32Array;

  /** From angles in float32, as transformers has them. */
  constructor({ headDim, ropeFrequencies, maxPositions }: DecoderConfig) {
    this.#half = headDim / 2;
    const angles = new Float32Array(maxPositions * this.#half);
    for (const [i, frequency] of ropeFrequencies.entries()) {
      for (let position = 0; position < maxPositions; position++)
        angles[position * this.#half + i] = position * frequency;
    }
    this.#cos = angles.map(Math.cos);
    this.#sin = angles.map(Math.sin);
  }

  feeds(count: number): Record<"rope_cos" | "rope_sin", Value> {
    const table = (data: Float32Array): Value => value(data.subarray(0, count * this.#half), [count, this.#half]);
    return { rope_cos: table(this.#cos), rope_sin: table(this.#sin) };
  }
}

export function embed({ config, parameters }: DecoderContext, tokens: Tensor): Tensor {
  return gather(parameters.weight(embedding, [config.vocabSize, config.hiddenSize]), tokens);
}

/** One transformer layer on rows [rows, hidden]. `wanted`: the rows that matter afterwards; all attend, the others are left out. */
export function transformerLayer(
  context: DecoderContext,
  index: number,
  x: Tensor,
  attend: (projections: Projections) => Tensor,
  wanted?: Tensor,
): Tensor {
  const { config, parameters } = context;
  const keep = (rows: Tensor): Tensor => (wanted ? gather(rows, wanted) : rows);
  const named = (part: keyof LayerNames): string => partName(config, index, part);
  const normed = norm(context, x, named("attentionNorm"));
  const parts = ["query", "key", "value"] as const;
  const products = parameters.joined(normed, parts.map(named));
  const [query, key, value] = parts.map((part, at) => biased(context, products[at]!, index, part)) as [
    Tensor,
    Tensor,
    Tensor,
  ];
  const { queryNorm, keyNorm } = config.architecture.layer;
  const attended = attend({
    query: rotated(context, query, queryNorm && named("queryNorm")),
    key: rotated(context, key, keyNorm && named("keyNorm")),
    value,
  });
  const middle = add(keep(x), parameters.linear(keep(attended), named("output")));

  const inner = norm(context, middle, named("mlpNorm"));
  const gate = parameters.linear(inner, named("gate"));
  const up = parameters.linear(inner, named("up"));
  return add(middle, parameters.linear(multiply(config.architecture.activation(gate), up), named("down")));
}

/** The rows as the head sees them. */
export function headInput(context: DecoderContext, x: Tensor): Tensor {
  return norm(context, x, finalNorm);
}

function norm({ config, parameters }: DecoderContext, x: Tensor, name: string): Tensor {
  return rmsNorm(x, parameters.weight(`${name}.weight`, [x.shape.at(-1) as number]), config.rmsNormEps);
}

/** Adds the bias of a linear layer, where the architecture has one. */
function biased(
  { config, parameters }: DecoderContext,
  x: Tensor,
  index: number,
  part: "query" | "key" | "value",
): Tensor {
  if (!config.architecture.biased.includes(part)) return x;
  return add(x, parameters.weight(`${partName(config, index, part)}.bias`, [x.shape.at(-1) as number]));
}

/** Normalises every head where the architecture does, then rotates it to its row's position. */
function rotated(context: DecoderContext, x: Tensor, headNorm: string | undefined): Tensor {
  const { config, positions } = context;
  const table = ["rope_positions", config.headDim / 2];
  const rotate = (rows: Tensor): Tensor => rope(rows, positions, input("rope_cos", table), input("rope_sin", table));
  if (headNorm === undefined) return rotate(x);
  const heads = reshape(x, [multiplyDims(x.shape[0]!, (x.shape[1] as number) / config.headDim), config.headDim]);
  return rotate(reshape(norm(context, heads, headNorm), x.shape));
}
