// What a GGUF file says of its model, as the config.json that the model would have on the Hugging Face hub.
import { badFile, GgufError } from "./errors.ts";
import type { GgufFile } from "./file.ts";
import { tensorOf } from "./names.ts";

/** By the architecture's name in the file. Others name or permute their weights in ways not known here. */
const architectures: Readonly<Record<string, string>> = {
  llama: "LlamaForCausalLM",
  mistral: "MistralForCausalLM",
  qwen2: "Qwen2ForCausalLM",
  qwen3: "Qwen3ForCausalLM",
};

export function configOf(file: GgufFile): Record<string, unknown> {
  const { metadata } = file;
  const architecture = String(metadata.get("general.architecture"));
  const name = architectures[architecture];
  if (name === undefined)
    throw new GgufError(
      "gguf/unsupported",
      `${file.path} holds a model of the architecture ${architecture}; ${Object.keys(architectures).join(", ")} can be read. Choose another model, or serve this one elsewhere and set base_url.`,
    );
  const field = (key: string) => metadata.get(`${architecture}.${key}`);
  const number = (key: string, fallback?: number): number => {
    const value = field(key) ?? fallback;
    if (typeof value !== "number") throw badFile(file.path, `has no number ${architecture}.${key}`);
    return value;
  };
  const hiddenSize = number("embedding_length");
  const heads = number("attention.head_count");
  const headDim = number("attention.key_length", number("rope.dimension_count", hiddenSize / heads));
  const theta = number("rope.freq_base", 10_000);
  return {
    architectures: [name],
    model_type: architecture,
    hidden_size: hiddenSize,
    intermediate_size: number("feed_forward_length"),
    num_hidden_layers: number("block_count"),
    num_attention_heads: heads,
    num_key_value_heads: number("attention.head_count_kv", heads),
    head_dim: headDim,
    vocab_size: tensorOf(file, "model.embed_tokens.weight")?.shape[0] ?? 0,
    max_position_embeddings: number("context_length"),
    rms_norm_eps: number("attention.layer_norm_rms_epsilon"),
    rope_theta: theta,
    rope_scaling: ropeScaling(file, field, theta, headDim),
    hidden_act: "silu",
    attention_bias: false,
    tie_word_embeddings: !tensorOf(file, "lm_head.weight"),
    dtype: "float32",
    bos_token_id: metadata.get("tokenizer.ggml.bos_token_id") ?? null,
    eos_token_id: metadata.get("tokenizer.ggml.eos_token_id") ?? null,
  };
}

function ropeScaling(
  file: GgufFile,
  field: (key: string) => unknown,
  theta: number,
  headDim: number,
): Record<string, unknown> | null {
  const factors = file.tensors.get("rope_freqs.weight");
  if (factors) return llama3Scaling(file, file.readFloat32(factors), theta, headDim);
  const kind = String(field("rope.scaling.type") ?? "none");
  if (kind === "none") return null;
  return { rope_type: kind, factor: field("rope.scaling.factor") };
}

/** llama.cpp keeps what came of Llama 3's scaling: a divisor of each frequency. The rule it came from has one number that differs. */
function llama3Scaling(file: GgufFile, divisors: Float32Array, theta: number, headDim: number) {
  const [factor, low, high, context] = [Math.max(...divisors), 1, 4, 8192];
  for (const [index, found] of divisors.entries()) {
    const turns = context / (2 * Math.PI * theta ** ((2 * index) / headDim));
    const smooth = Math.min(1, Math.max(0, (turns - low) / (high - low)));
    const expected = 1 / ((1 - smooth) / factor + smooth);
    if (Math.abs(found / expected - 1) > 1e-4)
      throw new GgufError(
        "gguf/unsupported",
        `${file.path} scales its positions by factors that are not Llama 3's (${found} where ${expected} is expected), which is not computed here. Use the model's safetensors.`,
      );
  }
  return {
    rope_type: "llama3",
    factor,
    low_freq_factor: low,
    high_freq_factor: high,
    original_max_position_embeddings: context,
  };
}
