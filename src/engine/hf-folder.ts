// Reads a model from a Hugging Face folder: config.json and one or several safetensors files, or the GGUF file it was made of.
import { existsSync, readFileSync, statSync } from "node:fs";
import { basename, join } from "node:path";
import { isRecord, jsonObject } from "../core/json.ts";
import { GgufFile, readWeight, tensorOf, weightsLink } from "../gguf/index.ts";
import type { DecoderConfig, Weight } from "./architecture.ts";
import { architectures } from "./architectures/index.ts";
import { ConfigFile } from "./config-file.ts";
import { EngineError } from "./errors.ts";
import { SafetensorsFile } from "./safetensors.ts";
import { allocateWeights } from "./weights.ts";

/** The configuration in `dir`/config.json. */
export function readConfig(dir: string): DecoderConfig {
  const path = join(dir, "config.json");
  const json = readJson(path);
  const named = Array.isArray(json["architectures"]) ? (json["architectures"] as unknown[]) : [];
  const architecture = architectures.find(({ name, modelType }) =>
    named.length > 0 ? named.includes(name) : json["model_type"] === modelType,
  );
  if (!architecture) {
    const seen = named.length > 0 ? named.join(", ") : String(json["model_type"]);
    const computed = architectures.map(({ name }) => name).join(", ");
    throw new EngineError(
      "engine/unknown-architecture",
      `${path} names the architecture ${seen}; the embedded engine computes ${computed} only. Choose such a model, or serve this one elsewhere and set base_url.`,
    );
  }
  const file = new ConfigFile(path, json);
  for (const [key, value] of Object.entries(architecture.computed)) file.mustBe(key, file.get(key), value);
  file.mustBe("quantization_config", file.get("quantization_config"), undefined);
  const config = { architecture, ...architecture.readSizes(file) };
  if (config.numHeads % config.numKvHeads !== 0)
    throw file.wrong("num_attention_heads", `a multiple of num_key_value_heads=${config.numKvHeads}`);
  if (config.headDim % 2 !== 0) throw file.wrong("head_dim", "an even number");
  return config;
}

/** Every weight of the model, widened to float32. */
export function readWeights(dir: string, config: DecoderConfig): Map<string, Weight> {
  const weights = allocateWeights(config);
  if (existsSync(join(dir, weightsLink))) return fillFromGguf(join(dir, weightsLink), weights);
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

function fillFromGguf(path: string, weights: Map<string, Weight>): Map<string, Weight> {
  const file = new GgufFile(path);
  try {
    for (const [name, { data, shape }] of weights) {
      const found = tensorOf(file, name)?.shape;
      if (found?.join() !== shape.join())
        throw new EngineError(
          "engine/bad-config",
          `${path} has ${name} ${found ? `with shape [${found}]` : "not at all"}, where the model needs [${shape}]. Copy or download the file again.`,
        );
      readWeight(file, name, data);
    }
    return weights;
  } finally {
    file.close();
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
    const file = isRecord(map) ? map[name] : undefined;
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
  const value = jsonObject(text);
  if (value) return value;
  throw new EngineError("engine/bad-config", `${path} is not a JSON object. Download the file again.`);
}
