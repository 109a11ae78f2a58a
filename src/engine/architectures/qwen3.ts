// Dense Qwen3: queries and keys are normalised head by head.
import { silu } from "../../graph/index.ts";
import type { Architecture } from "../architecture.ts";

export const qwen3: Architecture = {
  name: "Qwen3ForCausalLM",
  modelType: "qwen3",
  computed: { hidden_act: "silu", attention_bias: false, use_sliding_window: false },
  readSizes(file) {
    const numHeads = file.count("num_attention_heads");
    const headDim = file.count("head_dim", 128);
    return {
      hiddenSize: file.count("hidden_size"),
      intermediateSize: file.count("intermediate_size"),
      numLayers: file.count("num_hidden_layers"),
      numHeads,
      numKvHeads: file.count("num_key_value_heads", numHeads),
      headDim,
      vocabSize: file.count("vocab_size"),
      ropeFrequencies: file.plainRope(headDim),
      rmsNormEps: file.number("rms_norm_eps", 1e-6),
      tieWordEmbeddings: file.get("tie_word_embeddings") === true,
      maxPositions: file.count("max_position_embeddings"),
    };
  },
  layer: {
    attentionNorm: "input_layernorm",
    query: "self_attn.q_proj",
    key: "self_attn.k_proj",
    value: "self_attn.v_proj",
    output: "self_attn.o_proj",
    queryNorm: "self_attn.q_norm",
    keyNorm: "self_attn.k_norm",
    mlpNorm: "post_attention_layernorm",
    gate: "mlp.gate_proj",
    up: "mlp.up_proj",
    down: "mlp.down_proj",
  },
  activation: silu,
};
