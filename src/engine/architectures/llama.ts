// Llama 2 and 3, and models built like them: SmolLM2, TinyLlama, many others. The other architectures are described by their differences.
import { silu } from "../../graph/index.ts";
import type { Architecture } from "../architecture.ts";
import type { ConfigFile } from "../config-file.ts";

export const llama: Architecture = {
  name: "LlamaForCausalLM",
  modelType: "llama",
  computed: { hidden_act: "silu", attention_bias: false, mlp_bias: false },
  readSizes: (file) => sizesOf(file),
  layer: {
    attentionNorm: "input_layernorm",
    query: "self_attn.q_proj",
    key: "self_attn.k_proj",
    value: "self_attn.v_proj",
    output: "self_attn.o_proj",
    mlpNorm: "post_attention_layernorm",
    gate: "mlp.gate_proj",
    up: "mlp.up_proj",
    down: "mlp.down_proj",
  },
  biased: [],
  activation: silu,
};

/** The sizes that config.json gives; `headDim` where it does not say one. */
export function sizesOf(file: ConfigFile, headDim?: number): ReturnType<Architecture["readSizes"]> {
  const hiddenSize = file.count("hidden_size");
  const numHeads = file.count("num_attention_heads");
  const perHead = file.count("head_dim", headDim ?? hiddenSize / numHeads);
  return {
    hiddenSize,
    intermediateSize: file.count("intermediate_size"),
    numLayers: file.count("num_hidden_layers"),
    numHeads,
    numKvHeads: file.count("num_key_value_heads", numHeads),
    headDim: perHead,
    vocabSize: file.count("vocab_size"),
    ropeFrequencies: file.rope(perHead),
    rmsNormEps: file.number("rms_norm_eps", 1e-6),
    tieWordEmbeddings: file.get("tie_word_embeddings") === true,
    maxPositions: file.count("max_position_embeddings"),
  };
}
