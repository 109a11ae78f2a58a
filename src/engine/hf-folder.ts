// Reads a model from a Hugging Face folder: config.json and one or several safetensors files. What the engine cannot compute
// faithfully is refused by name; nothing is guessed.
import { existsSync, readFileSync, statSync } from "node:fs";
import { basename, join } from "node:path";
import { EngineError } from "./errors.ts";
import type { Qwen3Config, Weight } from "./model-types.ts";
import { SafetensorsFile } from "./safetensors.ts";
import { allocateWeights } from "./weights.ts";

const architecture = "Qwen3ForCausalLM";

/** The configuration in `dir`/config.json. */
export function readConfig(dir: string): Qwen3Config {
  const path = join(dir, "config.json");
  const json = readJson(path);
  const architectures = Array.isArray(json["architectures"]) ? json["architectures"] : [];
  const seen = architectures.length > 0 ? architectures.join(", ") : String(json["model_type"]);
  if (!(architectures.includes(architecture) || (architectures.length === 0 && json["model_type"] === "qwen3"))) {
    throw new EngineError(
      "engine/unknown-architecture",
      `${path} names the architecture ${seen}; the embedded engine computes ${architecture} only. Choose a dense Qwen3 model, or serve this one elsewhere and set base_url.`,
    );
  }
  refuseVariants(path, json);

  const positive = (key: string, fallback?: number): number => {
    const value = json[key] ?? fallback;
    if (!Number.isSafeInteger(value) || (value as number) < 1) throw badConfig(path, key, value, "a positive integer");
    return value as number;
  };
  const positiveNumber = (key: string, value: unknown): number => {
    if (typeof value !== "number" || !(value > 0 && value < Number.POSITIVE_INFINITY)) {
      throw badConfig(path, key, value, "a positive number");
    }
    return value;
  };
  const numHeads = positive("num_attention_heads");
  const hiddenSize = positive("hidden_size");
  const config: Qwen3Config = {
    hiddenSize,
    intermediateSize: positive("intermediate_size"),
    numLayers: positive("num_hidden_layers"),
    numHeads,
    numKvHeads: positive("num_key_value_heads", numHeads),
    headDim: positive("head_dim", 128),
    vocabSize: positive("vocab_size"),
    ropeTheta: positiveNumber("rope_theta", json["rope_theta"] ?? ropeOf(json)["rope_theta"] ?? 10_000),
    rmsNormEps: positiveNumber("rms_norm_eps", json["rms_norm_eps"] ?? 1e-6),
    tieWordEmbeddings: json["tie_word_embeddings"] === true,
    maxPositions: positive("max_position_embeddings"),
  };
  if (config.numHeads % config.numKvHeads !== 0) {
    throw badConfig(path, "num_attention_heads", numHeads, `a multiple of num_key_value_heads=${config.numKvHeads}`);
  }
  if (config.headDim % 2 !== 0) throw badConfig(path, "head_dim", config.headDim, "an even number");
  return config;
}

/** Every weight of the model, widened to float32. */
export function readWeights(dir: string, config: Qwen3Config): Map<string, Weight> {
  const weights = allocateWeights(config);
  const fileOf = weightFiles(dir, [...weights.keys()]);
  const open = new Map<string, SafetensorsFile>();
  try {
    for (const [name, { data, shape }] of weights) {
      const path = fileOf(name);
      const file = open.get(path) ?? new SafetensorsFile(path);
      open.set(path, file);
      file.readFloat32(name, shape, data);
    }
    return weights;
  } finally {
    for (const file of open.values()) file.close();
  }
}

/** The file that holds each weight: `model.safetensors`, or what the index of a sharded model says. */
function weightFiles(dir: string, names: readonly string[]): (name: string) => string {
  const single = join(dir, "model.safetensors");
  const indexPath = join(dir, "model.safetensors.index.json");
  if (existsSync(single)) return () => single;
  if (!existsSync(indexPath)) {
    throw new EngineError(
      "engine/missing-file",
      `${dir} holds neither model.safetensors nor model.safetensors.index.json. Name the folder of a Hugging Face model.`,
    );
  }
  const map = readJson(indexPath)["weight_map"];
  const files = new Map<string, string>();
  for (const name of names) {
    const file = typeof map === "object" && map !== null ? (map as Record<string, unknown>)[name] : undefined;
    if (typeof file !== "string") {
      throw new EngineError(
        "engine/bad-config",
        `${indexPath} names no file for ${name}. Download the model's index again.`,
      );
    }
    // A shard lies beside its index, never elsewhere.
    if (basename(file) !== file) {
      throw new EngineError(
        "engine/bad-config",
        `${indexPath} puts ${name} into "${file}", outside the folder. Do not use this model.`,
      );
    }
    files.set(name, join(dir, file));
  }
  return (name) => files.get(name)!;
}

function ropeOf(json: Record<string, unknown>): Record<string, unknown> {
  const rope = json["rope_parameters"] ?? json["rope_scaling"];
  return typeof rope === "object" && rope !== null ? (rope as Record<string, unknown>) : {};
}

/** Options of the architecture that change the numbers and that the engine does not compute. */
function refuseVariants(path: string, json: Record<string, unknown>): void {
  const rope = ropeOf(json);
  const ropeType = rope["rope_type"] ?? rope["type"] ?? "default";
  const refused: [key: string, value: unknown, supported: boolean][] = [
    ["hidden_act", json["hidden_act"], (json["hidden_act"] ?? "silu") === "silu"],
    ["attention_bias", json["attention_bias"], !json["attention_bias"]],
    ["use_sliding_window", json["use_sliding_window"], !json["use_sliding_window"]],
    ["rope_type", ropeType, ropeType === "default"],
    ["quantization_config", "set", json["quantization_config"] === undefined || json["quantization_config"] === null],
  ];
  for (const [key, value, supported] of refused) {
    if (supported) continue;
    throw new EngineError(
      "engine/unsupported-model",
      `${path} has ${key}=${JSON.stringify(value)}, which the embedded engine does not compute. Choose a plain dense Qwen3 model, or serve this one elsewhere and set base_url.`,
    );
  }
}

function readJson(path: string): Record<string, unknown> {
  let text: string;
  try {
    if (!statSync(path).isFile()) throw new Error("it is not a file");
    text = readFileSync(path, "utf8");
  } catch (error) {
    throw new EngineError("engine/missing-file", `${path} cannot be read. Name the folder of a Hugging Face model.`, {
      cause: error,
    });
  }
  try {
    const value: unknown = JSON.parse(text);
    if (typeof value === "object" && value !== null && !Array.isArray(value)) return value as Record<string, unknown>;
  } catch {}
  throw new EngineError("engine/bad-config", `${path} is not a JSON object. Download the file again.`);
}

function badConfig(path: string, key: string, value: unknown, wanted: string): EngineError {
  return new EngineError(
    "engine/bad-config",
    `${path} has ${key}=${JSON.stringify(value)}, where ${wanted} is needed. Correct it or download the file again.`,
  );
}
