// Writes a random model as a complete Hugging Face folder: config.json, model.safetensors and a byte-level tokenizer that both
// this project and Hugging Face's libraries load. The same options write the same bytes.
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { Random } from "../../src/core/random.ts";
import { type DecoderConfig, type Weight, weightShapes } from "../../src/engine/architecture.ts";
import { qwen3 } from "../../src/engine/architectures/qwen3.ts";
import { ropeFrequencies } from "../../src/engine/config-file.ts";
import { writeSafetensors } from "../../src/engine/write-safetensors.ts";

export interface TinyModelOptions extends Partial<DecoderConfig> {
  seed?: number;
}

const ropeTheta = 10_000;

const tokens = ["<|endoftext|>", "<|im_start|>", "<|im_end|>"];

/** Token ids: a byte is its own position in this order; the control tokens follow. */
export const tinyTokens = { endOfText: 256, imStart: 257, imEnd: 258 } as const;

export const tinyConfig: DecoderConfig = {
  architecture: qwen3,
  hiddenSize: 32,
  intermediateSize: 64,
  numLayers: 2,
  numHeads: 4,
  numKvHeads: 2,
  headDim: 16,
  vocabSize: 264,
  ropeFrequencies: ropeFrequencies(ropeTheta, 16),
  rmsNormEps: 1e-6,
  tieWordEmbeddings: true,
  maxPositions: 512,
};

/** Random weights: norms near 1, linear layers scaled to keep variance. */
export function randomWeights(config: DecoderConfig, seed: number): Map<string, Weight> {
  const weights = new Map<string, Weight>();
  for (const [name, shape] of weightShapes(config)) {
    const random = new Random("weights", seed, name);
    const isBias = name.endsWith(".bias");
    const isNorm = shape.length === 1 && !isBias;
    const deviation = isNorm || isBias ? 0.1 : name.includes("embed_tokens") ? 0.3 : 1 / Math.sqrt(shape[1]!);
    const data = new Float32Array(shape.reduce((product, size) => product * size, 1));
    for (let index = 0; index < data.length; index++) data[index] = (isNorm ? 1 : 0) + deviation * random.normal();
    weights.set(name, { data, shape });
  }
  return weights;
}

/** Writes the model into `dir` (made if missing) and returns its configuration. */
export function writeTinyModel(dir: string, options: TinyModelOptions = {}): DecoderConfig {
  const { seed = 0, ...overrides } = options;
  const config = { ...tinyConfig, ...overrides };
  mkdirSync(dir, { recursive: true });
  writeConfig(dir, config);
  writeSafetensors(join(dir, "model.safetensors"), randomWeights(config, seed));
  writeTokenizer(dir);
  return config;
}

export function writeConfig(dir: string, config: DecoderConfig): void {
  writeJson(dir, "config.json", {
    architectures: [config.architecture.name],
    model_type: config.architecture.modelType,
    hidden_size: config.hiddenSize,
    intermediate_size: config.intermediateSize,
    num_hidden_layers: config.numLayers,
    num_attention_heads: config.numHeads,
    num_key_value_heads: config.numKvHeads,
    head_dim: config.headDim,
    vocab_size: config.vocabSize,
    rope_theta: ropeTheta,
    rms_norm_eps: config.rmsNormEps,
    tie_word_embeddings: config.tieWordEmbeddings,
    max_position_embeddings: config.maxPositions,
    hidden_act: "silu",
    attention_bias: false,
    torch_dtype: "float32",
    bos_token_id: tinyTokens.endOfText,
    eos_token_id: tinyTokens.imEnd,
  });
}

/** One token per byte, and ChatML's control tokens. */
export function writeTokenizer(dir: string): void {
  const vocab: Record<string, number> = {};
  let next = 0x100;
  for (let byte = 0; byte < 256; byte++) {
    const printable = (byte >= 0x21 && byte <= 0x7e) || (byte >= 0xa1 && byte <= 0xac) || byte >= 0xae;
    vocab[String.fromCharCode(printable ? byte : next++)] = byte;
  }
  writeJson(dir, "tokenizer.json", {
    version: "1.0",
    added_tokens: tokens.map((content, index) => ({
      id: 256 + index,
      content,
      single_word: false,
      lstrip: false,
      rstrip: false,
      normalized: false,
      special: true,
    })),
    normalizer: null,
    pre_tokenizer: { type: "ByteLevel", add_prefix_space: false, trim_offsets: false, use_regex: false },
    post_processor: null,
    decoder: { type: "ByteLevel", add_prefix_space: false, trim_offsets: false, use_regex: false },
    model: { type: "BPE", vocab, merges: [] },
  });
  writeJson(dir, "tokenizer_config.json", {
    tokenizer_class: "PreTrainedTokenizerFast",
    eos_token: "<|im_end|>",
    pad_token: "<|endoftext|>",
    clean_up_tokenization_spaces: false,
  });
}

const writeJson = (dir: string, name: string, value: unknown) =>
  writeFileSync(join(dir, name), `${JSON.stringify(value, undefined, 1)}\n`);
