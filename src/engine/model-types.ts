// What the loader, the trainer and the sampler agree on: the configuration of a Qwen3 model, how its weights are named, and
// how the parameters of a LoRA adapter are named and scaled. Names are Hugging Face's and PEFT's, so that nothing is ever renamed.

export interface Qwen3Config {
  hiddenSize: number;
  intermediateSize: number;
  numLayers: number;
  numHeads: number;
  numKvHeads: number;
  headDim: number;
  vocabSize: number;
  ropeTheta: number;
  rmsNormEps: number;
  /** True: the output head is the embedding matrix, and there is no `lm_head.weight`. */
  tieWordEmbeddings: boolean;
  maxPositions: number;
}

export interface Weight {
  /** Row-major. */
  data: Float32Array;
  shape: readonly number[];
}

/**
 * Weights under Hugging Face names. A linear layer's weight is [out, in]:
 * `model.embed_tokens.weight`, `model.norm.weight`, `lm_head.weight` (untied only), and for each layer
 * `model.layers.N.{input_layernorm,post_attention_layernorm}.weight`, `model.layers.N.self_attn.{q,k,v,o}_proj.weight`,
 * `model.layers.N.self_attn.{q,k}_norm.weight`, `model.layers.N.mlp.{gate,up,down}_proj.weight`.
 */
export type Weights = ReadonlyMap<string, Weight>;

/**
 * Adapter parameters under PEFT's names without their `base_model.model.` prefix: for a linear layer `X` (such as
 * `model.layers.0.self_attn.q_proj` or `lm_head`), `X.lora_A.weight` is [rank, in] and `X.lora_B.weight` is [out, rank].
 */
export type AdapterWeights = Map<string, Weight>;

/** An adapter adds `(LORA_ALPHA / rank) · B · A` to a weight: 1 at rank 32, and a learning rate that suits every rank. */
export const LORA_ALPHA = 32;

export function loraScale(rank: number): number {
  return LORA_ALPHA / rank;
}

/** Every weight a model of this configuration has, with its shape. */
export function weightShapes(config: Qwen3Config): Map<string, number[]> {
  const { hiddenSize, intermediateSize, headDim } = config;
  const shapes = new Map<string, number[]>([
    ["model.embed_tokens.weight", [config.vocabSize, hiddenSize]],
    ["model.norm.weight", [hiddenSize]],
  ]);
  if (!config.tieWordEmbeddings) shapes.set("lm_head.weight", [config.vocabSize, hiddenSize]);
  for (let index = 0; index < config.numLayers; index++) {
    const layer = `model.layers.${index}`;
    shapes.set(`${layer}.input_layernorm.weight`, [hiddenSize]);
    shapes.set(`${layer}.post_attention_layernorm.weight`, [hiddenSize]);
    shapes.set(`${layer}.self_attn.q_proj.weight`, [config.numHeads * headDim, hiddenSize]);
    shapes.set(`${layer}.self_attn.k_proj.weight`, [config.numKvHeads * headDim, hiddenSize]);
    shapes.set(`${layer}.self_attn.v_proj.weight`, [config.numKvHeads * headDim, hiddenSize]);
    shapes.set(`${layer}.self_attn.o_proj.weight`, [hiddenSize, config.numHeads * headDim]);
    shapes.set(`${layer}.self_attn.q_norm.weight`, [headDim]);
    shapes.set(`${layer}.self_attn.k_norm.weight`, [headDim]);
    shapes.set(`${layer}.mlp.gate_proj.weight`, [intermediateSize, hiddenSize]);
    shapes.set(`${layer}.mlp.up_proj.weight`, [intermediateSize, hiddenSize]);
    shapes.set(`${layer}.mlp.down_proj.weight`, [hiddenSize, intermediateSize]);
  }
  return shapes;
}

/** The linear layers an adapter can sit on, with [out, in]. `lm_head` is listed for tied models too: there it adapts the head only. */
export function linearShapes(config: Qwen3Config): Map<string, [out: number, input: number]> {
  const shapes = new Map<string, [number, number]>();
  for (const [name, shape] of weightShapes(config)) {
    if (name.includes("_proj.")) shapes.set(name.slice(0, -".weight".length), [shape[0]!, shape[1]!]);
  }
  shapes.set("lm_head", [config.vocabSize, config.hiddenSize]);
  return shapes;
}
