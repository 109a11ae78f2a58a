// Qwen2, Qwen2.5 and Qwen2.5-Coder: queries, keys and values have a bias.
import type { Architecture } from "../architecture.ts";
import { llama } from "./llama.ts";

export const qwen2: Architecture = {
  ...llama,
  name: "Qwen2ForCausalLM",
  modelType: "qwen2",
  computed: { hidden_act: "silu", use_sliding_window: false },
  biased: ["query", "key", "value"],
};
