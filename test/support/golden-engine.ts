// Reads the vectors of test/golden/engine, which scripts/engine-reference.py made with PyTorch.
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import type { AdapterWeights, Weight } from "../../src/engine/architecture.ts";
import type { AdamSettings, LoraSpec } from "../../src/engine/engine.ts";
import { SafetensorsFile } from "../../src/engine/safetensors.ts";

/** The first three are Qwen3. */
export const goldenModels = [
  "grouped",
  "untied",
  "multiquery",
  "qwen2",
  "llama2",
  "llama3",
  "smollm2",
  "mistral",
] as const;

interface Facts {
  torch: string;
  transformers: string;
  rank: number;
  targets: string[];
  sequences: number[][];
  losses: Record<string, { config: Record<string, number>; loss_sum: number; float32?: number }>;
  adam: {
    steps: number;
    losses: string[];
    variants: Record<string, Record<string, number> & { grad_norms: number[] }>;
  };
  greedy: { prompt: number[]; tokens: number[]; smallest_margin: number };
  /** The file that a real model was read from; `float32` is how far PyTorch's own are then. */
  gguf?: string;
}

export interface Golden {
  dir: string;
  facts: Facts;
  lora: LoraSpec;
  adapter: AdapterWeights;
  /** A tensor of reference.safetensors. */
  tensor(name: string): Weight;
  has(name: string): boolean;
  adam(variant: string): AdamSettings;
}

const prefix = "base_model.model.";

/** By a name of goldenModels, or by the folder that scripts/engine-reference.py made of a real model. */
export function readGolden(name: string): Golden {
  const dir = name.includes("/") ? name : fileURLToPath(new URL(`../golden/engine/${name}`, import.meta.url));
  const facts = JSON.parse(readFileSync(join(dir, "reference.json"), "utf8")) as Facts;
  const tensors = readAll(join(dir, "reference.safetensors"));
  const adapter: AdapterWeights = new Map(
    [...readAll(join(dir, "adapter_model.safetensors"))].map(([key, weight]) => [key.slice(prefix.length), weight]),
  );
  return {
    dir,
    facts,
    lora: {
      rank: facts.rank,
      trainAttn: facts.targets.includes("attn"),
      trainMlp: facts.targets.includes("mlp"),
      trainUnembed: facts.targets.includes("unembed"),
    },
    adapter,
    has: (key) => tensors.has(key),
    tensor: (key) => {
      const tensor = tensors.get(key);
      if (!tensor) throw new Error(`${dir} has no tensor ${key}`);
      return tensor;
    },
    adam: (variant) => {
      const settings = facts.adam.variants[variant]!;
      return {
        learningRate: settings["learning_rate"]!,
        beta1: settings["beta1"]!,
        beta2: settings["beta2"]!,
        epsilon: settings["epsilon"]!,
        weightDecay: settings["weight_decay"]!,
        gradClipNorm: settings["grad_clip_norm"]!,
      };
    },
  };
}

function readAll(path: string): Map<string, Weight> {
  const file = new SafetensorsFile(path);
  try {
    return new Map(
      [...file.entries.values()].map(({ name, shape }) => [name, { data: file.readFloat32(name), shape }]),
    );
  } finally {
    file.close();
  }
}
