// Mistral. Attention over a sliding window is computed up to the window's length, where it is attention over everything: a model
// with one has that context.
import type { Architecture } from "../architecture.ts";
import { llama, sizesOf } from "./llama.ts";

export const mistral: Architecture = {
  ...llama,
  name: "MistralForCausalLM",
  modelType: "mistral",
  computed: { hidden_act: "silu" },
  readSizes(file) {
    const sizes = sizesOf(file);
    const window = file.get("sliding_window") === undefined ? sizes.maxPositions : file.count("sliding_window");
    return { ...sizes, maxPositions: Math.min(sizes.maxPositions, window) };
  },
};
