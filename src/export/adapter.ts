// A LoRA adapter as engines and servers keep it, read with suspicion, and written as PEFT, vLLM and llama.cpp expect it: their names,
// their shapes, and no key in its config that they would not know.
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { messageOf } from "../core/errors.ts";
import { peftConfig } from "../engine/checkpoint.ts";
import { SafetensorsFile, type TensorEntry } from "../engine/safetensors.ts";
import { SafetensorsWriter } from "../engine/write-safetensors.ts";
import { ExportError } from "./errors.ts";

export const adapterFiles = { config: "adapter_config.json", weights: "adapter_model.safetensors" } as const;

const prefix = "base_model.model.";
/** Bytes copied at once. */
const pieceBytes = 1 << 22;

/** What an adapter adds to one linear layer. */
export interface AdapterLayer {
  /** [rank, in] */
  a: TensorEntry;
  /** [out, rank] */
  b: TensorEntry;
}

/** In the order of a transformer block; modules that are not here follow by name. */
const usualModules = ["q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj", "lm_head"];

export class Adapter {
  readonly rank: number;
  readonly alpha: number;
  /** By the layer's name in the model, such as `model.layers.0.self_attn.q_proj` or `lm_head`. */
  readonly layers: ReadonlyMap<string, AdapterLayer>;
  readonly file: SafetensorsFile;

  /** Reads the adapter in a folder; it must be closed. */
  constructor(dir: string) {
    const { rank, alpha } = readAdapterConfig(join(dir, adapterFiles.config));
    this.rank = rank;
    this.alpha = alpha;
    this.file = new SafetensorsFile(join(dir, adapterFiles.weights));
    try {
      this.layers = layersOf(this.file, rank);
    } catch (error) {
      this.file.close();
      throw error;
    }
  }

  /** What B · A is multiplied by. */
  get scale(): number {
    return this.alpha / this.rank;
  }

  /** The last parts of the layers' names. */
  get modules(): string[] {
    const found = new Set([...this.layers.keys()].map((layer) => layer.slice(layer.lastIndexOf(".") + 1)));
    const others = [...found].filter((module) => !usualModules.includes(module)).sort();
    return [...usualModules.filter((module) => found.has(module)), ...others];
  }

  close(): void {
    this.file.close();
  }

  /** Writes the PEFT folder's two files. */
  write(dir: string, baseModel: string): void {
    const named = [...this.layers].flatMap(([layer, { a, b }]) => [
      { entry: a, name: `${prefix}${layer}.lora_A.weight` },
      { entry: b, name: `${prefix}${layer}.lora_B.weight` },
    ]);
    named.sort((first, second) => first.entry.start - second.entry.start);
    const specs = named.map(({ name, entry: { dtype, shape } }) => ({ name, dtype, shape }));
    const writer = new SafetensorsWriter(join(dir, adapterFiles.weights), specs);
    try {
      for (const { entry } of named)
        for (let at = entry.start; at < entry.end; at += pieceBytes)
          writer.append(this.file.readBytes(at, Math.min(pieceBytes, entry.end - at)));
      writer.finish();
    } finally {
      writer.close();
    }
    const config = { ...peftConfig(baseModel, this), init_lora_weights: true, modules_to_save: null };
    writeFileSync(join(dir, adapterFiles.config), `${JSON.stringify(config, null, 2)}\n`, { flag: "wx" });
  }
}

/** Variants of LoRA that other numbers would come out of. */
const refusedVariants = ["use_dora", "use_rslora", "modules_to_save", "layers_to_transform", "fan_in_fan_out"] as const;

function readAdapterConfig(path: string): { rank: number; alpha: number } {
  let config: Record<string, unknown>;
  try {
    config = JSON.parse(readFileSync(path, "utf8")) as Record<string, unknown>;
  } catch (error) {
    throw unusable(`${path} cannot be read (${messageOf(error)})`, error);
  }
  const { r: rank, lora_alpha: alpha, peft_type: type = "LORA", bias = "none" } = config ?? {};
  if (!Number.isSafeInteger(rank) || (rank as number) < 1 || typeof alpha !== "number" || !Number.isFinite(alpha))
    throw unusable(`${path} has r=${JSON.stringify(rank)} and lora_alpha=${JSON.stringify(alpha)}`);
  if (type !== "LORA" || bias !== "none")
    throw unusable(
      `${path} has peft_type=${JSON.stringify(type)} and bias=${JSON.stringify(bias)}; only plain LoRA is known`,
    );
  for (const key of refusedVariants) {
    const value = config[key];
    const isSet = Array.isArray(value) ? value.length > 0 : Boolean(value);
    if (isSet) throw unusable(`${path} has ${key}=${JSON.stringify(value)}; only plain LoRA is known`);
  }
  return { rank: rank as number, alpha };
}

function layersOf(file: SafetensorsFile, rank: number): Map<string, AdapterLayer> {
  const halves = new Map<string, Partial<AdapterLayer>>();
  for (const [name, entry] of file.entries) {
    const [, written, half] = /^(?:base_model\.model\.)?(.+)\.lora_(A|B)\.weight$/.exec(name) ?? [];
    if (written === undefined) throw unusable(`${file.path} holds "${name}", which is no part of a LoRA adapter`);
    if (entry.shape.length !== 2)
      throw unusable(
        `${file.path} holds "${name}" of shape [${entry.shape}]: adapters of experts are not converted here. ` +
          "tinker_cookbook.weights.build_lora_adapter does that",
      );
    // Hosted Tinker's name for the head.
    const layer = written === "model.unembed_tokens" ? "lm_head" : written;
    const known = halves.get(layer) ?? {};
    const key = half === "A" ? "a" : "b";
    if (known[key]) throw unusable(`${file.path} has two tensors for ${layer}`);
    halves.set(layer, { ...known, [key]: entry });
  }
  if (halves.size === 0) throw unusable(`${file.path} is empty`);
  const layers = new Map<string, AdapterLayer>();
  for (const [layer, { a, b }] of halves) {
    if (!a || !b) throw unusable(`${file.path} has only one of the two tensors of ${layer}`);
    if (a.shape[0] !== rank || b.shape[1] !== rank)
      throw unusable(
        `${file.path} has ${layer} with shapes [${a.shape}] and [${b.shape}], where rank ${rank} is stated`,
      );
    layers.set(layer, { a, b });
  }
  return layers;
}

function unusable(what: string, cause?: unknown): ExportError {
  return new ExportError(
    "export/bad-adapter",
    `The adapter cannot be used: ${what}. Export another checkpoint, or fetch it again.`,
    { cause },
  );
}
