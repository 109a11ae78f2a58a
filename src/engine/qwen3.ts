// Qwen3 as a graph over rows of tokens: every row is one token, whatever sequence it belongs to. What differs between training,
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
  silu,
  type Tensor,
} from "../graph/index.ts";
import type { Qwen3Config } from "./model-types.ts";

/** Where a model's parameters come from. */
export interface Qwen3Parameters {
  /** A weight used as it is: norms and the embedding. */
  weight(name: string, shape: readonly number[]): Tensor;
  /** Several linear layers applied to the same rows. */
  linear(x: Tensor, layers: readonly string[]): Tensor[];
}

/** Attention's operands for all rows, rotated to their positions: [rows, heads · headDim]. The query is not scaled. */
export interface Projections {
  query: Tensor;
  key: Tensor;
  value: Tensor;
}

export interface LayerContext {
  config: Qwen3Config;
  parameters: Qwen3Parameters;
  /** [rows], each token's place in its sequence. */
  positions: Tensor;
}

/** The rotary tables that `transformerLayer` reads, as graph inputs; at least as long as the largest position. */
export function ropeInputs(config: Qwen3Config): { cos: Tensor; sin: Tensor } {
  const shape = ["rope_positions", config.headDim / 2];
  return { cos: input("rope_cos", shape), sin: input("rope_sin", shape) };
}

export interface RopeTables {
  /** [position, half] */
  cos: Float32Array;
  sin: Float32Array;
  /** headDim / 2 */
  half: number;
}

/** Cosines and sines for positions 0 … `positions` - 1, from angles in float32 as transformers has them. */
export function ropeTables(config: Qwen3Config, positions: number): RopeTables {
  const half = config.headDim / 2;
  const angles = new Float32Array(positions * half);
  for (let i = 0; i < half; i++) {
    const frequency = Math.fround(1 / Math.fround(config.ropeTheta ** Math.fround((2 * i) / config.headDim)));
    for (let position = 0; position < positions; position++) angles[position * half + i] = position * frequency;
  }
  return { cos: angles.map(Math.cos), sin: angles.map(Math.sin), half };
}

export function embed({ config, parameters }: LayerContext, tokens: Tensor): Tensor {
  return gather(parameters.weight("model.embed_tokens.weight", [config.vocabSize, config.hiddenSize]), tokens);
}

/** One transformer layer on rows [rows, hidden]. `wanted`: the rows that matter afterwards; all attend, the others are left out. */
export function transformerLayer(
  context: LayerContext,
  index: number,
  x: Tensor,
  attend: (projections: Projections) => Tensor,
  wanted?: Tensor,
): Tensor {
  const { parameters } = context;
  const keep = (rows: Tensor): Tensor => (wanted ? gather(rows, wanted) : rows);
  const layer = `model.layers.${index}`;
  const normed = norm(context, x, `${layer}.input_layernorm`);
  const [query, key, value] = parameters.linear(
    normed,
    ["q", "k", "v"].map((name) => `${layer}.self_attn.${name}_proj`),
  );
  const attended = attend({
    query: rotated(context, query!, `${layer}.self_attn.q_norm`),
    key: rotated(context, key!, `${layer}.self_attn.k_norm`),
    value: value!,
  });
  const [mixed] = parameters.linear(keep(attended), [`${layer}.self_attn.o_proj`]);
  const middle = add(keep(x), mixed!);

  const inner = norm(context, middle, `${layer}.post_attention_layernorm`);
  const [gate, up] = parameters.linear(inner, [`${layer}.mlp.gate_proj`, `${layer}.mlp.up_proj`]);
  const [down] = parameters.linear(multiply(silu(gate!), up!), [`${layer}.mlp.down_proj`]);
  return add(middle, down!);
}

/** The rows as the head sees them. */
export function finalNorm(context: LayerContext, x: Tensor): Tensor {
  return norm(context, x, "model.norm");
}

function norm({ config, parameters }: LayerContext, x: Tensor, name: string): Tensor {
  return rmsNorm(x, parameters.weight(`${name}.weight`, [x.shape.at(-1) as number]), config.rmsNormEps);
}

/** Normalises every head, then turns it to its row's position. */
function rotated(context: LayerContext, x: Tensor, name: string): Tensor {
  const { config, positions } = context;
  const heads = reshape(x, [multiplyDims(x.shape[0]!, (x.shape[1] as number) / config.headDim), config.headDim]);
  const { cos, sin } = ropeInputs(config);
  return rope(reshape(norm(context, heads, name), x.shape), positions, cos, sin);
}
