// Dense Qwen3: queries and keys are normalised head by head.
import type { Architecture } from "../architecture.ts";
import { llama, sizesOf } from "./llama.ts";

export const qwen3: Architecture = {
  ...llama,
  name: "Qwen3ForCausalLM",
  modelType: "qwen3",
  computed: { hidden_act: "silu", attention_bias: false, use_sliding_window: false },
  readSizes: (file) => sizesOf(file, 128),
  layer: { ...llama.layer, queryNorm: "self_attn.q_norm", keyNorm: "self_attn.k_norm" },
};
