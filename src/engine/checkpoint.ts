// Checkpoint folders. Weights lie in PEFT's layout (adapter_config.json, adapter_model.safetensors), so that PEFT, vLLM and
// others load them; optimizer.safetensors and state.json beside them hold what training needs to go on bit for bit.
// A write is flushed to the disk before the call returns; one that fails removes what it wrote.
import { readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { syncFolder } from "../core/files.ts";
import { type AdapterWeights, type DecoderConfig, head, type Weight } from "./architecture.ts";
import type { LoraSpec, ModelSpec } from "./engine.ts";
import { EngineError } from "./errors.ts";
import { LORA_ALPHA } from "./lora.ts";
import { SafetensorsFile } from "./safetensors.ts";
import { writeSafetensors } from "./write-safetensors.ts";

const peftPrefix = "base_model.model.";
const files = {
  adapterConfig: "adapter_config.json",
  adapter: "adapter_model.safetensors",
  optimizer: "optimizer.safetensors",
  state: "state.json",
} as const;

/** Adam's two moments under the names of the parameters they belong to, and the number of steps taken. */
export interface OptimizerState {
  step: number;
  firstMoment: ReadonlyMap<string, Weight>;
  secondMoment: ReadonlyMap<string, Weight>;
}

/** All that training continues from. */
export interface AdapterState {
  weights: AdapterWeights;
  optimizer: OptimizerState;
}

/** Writes the weights alone: for sampling and for other programs. */
export function saveAdapter(dir: string, weights: AdapterWeights, spec: ModelSpec): void {
  guarded(dir, [files.adapter, files.adapterConfig], () => writeAdapter(dir, weights, spec));
}

/** Writes weights and optimizer state. */
export function saveTrainingState(dir: string, { weights, optimizer }: AdapterState, spec: ModelSpec): void {
  guarded(dir, Object.values(files), () => {
    writeAdapter(dir, weights, spec);
    const moments: AdapterWeights = new Map();
    for (const [name, weight] of optimizer.firstMoment) moments.set(`first.${name}`, weight);
    for (const [name, weight] of optimizer.secondMoment) moments.set(`second.${name}`, weight);
    writeSafetensors(join(dir, files.optimizer), moments);
    writeJson(join(dir, files.state), { format: 1, optimizer: "adam", step: optimizer.step, lora: spec.lora });
  });
}

/** Reads the weights of a checkpoint, which must be those of `expected`: the same names and shapes, no more and no fewer. */
export function loadAdapter(dir: string, expected: ReadonlyMap<string, readonly number[]>): AdapterWeights {
  const file = new SafetensorsFile(join(dir, files.adapter));
  try {
    for (const stored of file.entries.keys()) {
      if (!stored.startsWith(peftPrefix) || !expected.has(stored.slice(peftPrefix.length))) {
        throw mismatch(dir, `holds ${stored}, which this model's adapter does not have`);
      }
    }
    const weights: AdapterWeights = new Map();
    for (const [name, shape] of expected) {
      const entry = file.entries.get(peftPrefix + name);
      if (!entry) throw mismatch(dir, `lacks ${peftPrefix}${name}`);
      if (entry.shape.join() !== shape.join()) {
        throw mismatch(dir, `has ${name} with shape [${entry.shape}], where this model's adapter has [${shape}]`);
      }
      weights.set(name, { data: file.readFloat32(peftPrefix + name), shape: [...shape] });
    }
    return weights;
  } finally {
    file.close();
  }
}

/** Reads the optimizer state that belongs to an adapter of the `expected` names and shapes. */
export function loadOptimizer(dir: string, expected: ReadonlyMap<string, readonly number[]>): OptimizerState {
  const { step } = readJson(dir, files.state);
  if (!Number.isSafeInteger(step) || (step as number) < 0) {
    throw mismatch(dir, `has step=${JSON.stringify(step)} in ${files.state}`);
  }
  const file = new SafetensorsFile(join(dir, files.optimizer));
  try {
    const read = (moment: string) =>
      new Map(
        [...expected].map(([name, shape]): [string, Weight] => [
          name,
          { data: file.readFloat32(`${moment}.${name}`, shape), shape: [...shape] },
        ]),
      );
    return { step: step as number, firstMoment: read("first"), secondMoment: read("second") };
  } finally {
    file.close();
  }
}

/** The adapter a checkpoint holds: its rank, and which layers it sits on. */
export function readLora(dir: string, model: DecoderConfig): LoraSpec {
  const config = readJson(dir, files.adapterConfig);
  const { r: rank, lora_alpha: alpha, target_modules: modules } = config;
  if (!Number.isSafeInteger(rank) || (rank as number) < 1 || !Array.isArray(modules)) {
    throw mismatch(dir, `has r=${JSON.stringify(rank)} and target_modules=${JSON.stringify(modules)}`);
  }
  if (alpha !== LORA_ALPHA)
    throw mismatch(dir, `has lora_alpha=${JSON.stringify(alpha)}; this engine uses ${LORA_ALPHA}`);
  const { query, gate } = model.architecture.layer;
  return {
    rank: rank as number,
    trainAttn: modules.includes(moduleOf(query)),
    trainMlp: modules.includes(moduleOf(gate)),
    trainUnembed: modules.includes(head),
  };
}

function writeAdapter(dir: string, weights: AdapterWeights, { baseModel, lora }: ModelSpec): void {
  const tensors = new Map([...weights].map(([name, weight]) => [peftPrefix + name, weight]));
  writeSafetensors(join(dir, files.adapter), tensors);
  const layers = [...weights.keys()].map((name) => moduleOf(name.replace(/\.lora_[AB]\.weight$/, "")));
  const config = peftConfig(baseModel, { rank: lora.rank, alpha: LORA_ALPHA, modules: [...new Set(layers)] });
  writeJson(join(dir, files.adapterConfig), config);
}

/** What PEFT's adapter_config.json says of an adapter. */
export function peftConfig(
  baseModel: string,
  { rank, alpha, modules }: { rank: number; alpha: number; modules: readonly string[] },
): Record<string, unknown> {
  return {
    peft_type: "LORA",
    task_type: "CAUSAL_LM",
    base_model_name_or_path: baseModel,
    r: rank,
    lora_alpha: alpha,
    lora_dropout: 0,
    bias: "none",
    fan_in_fan_out: false,
    inference_mode: true,
    target_modules: modules,
  };
}

/** A layer's name as PEFT lists it: `q_proj`. */
const moduleOf = (layer: string): string => layer.slice(layer.lastIndexOf(".") + 1);

/** Runs `write`; when it fails, removes the files named and says why in one kind of error. */
function guarded(dir: string, written: readonly string[], write: () => void): void {
  try {
    write();
    syncFolder(dir);
  } catch (error) {
    for (const name of written) rmSync(join(dir, name), { force: true });
    const reason = (error as NodeJS.ErrnoException).code;
    if (reason === "ENOSPC" || reason === "EDQUOT" || reason === "EFBIG") {
      throw new EngineError(
        "engine/disk-full",
        `The disk is full (${reason}): no checkpoint was written to ${dir}. Free some space, then save again.`,
        { cause: error, fault: "server" },
      );
    }
    throw new EngineError(
      "engine/save-failed",
      `No checkpoint was written to ${dir}: ${String(error)}. Check the folder.`,
      {
        cause: error,
        fault: "server",
      },
    );
  }
}

function writeJson(path: string, value: unknown): void {
  writeFileSync(path, `${JSON.stringify(value, undefined, 1)}\n`, { flag: "wx", flush: true });
}

function readJson(dir: string, name: string): Record<string, unknown> {
  try {
    const value: unknown = JSON.parse(readFileSync(join(dir, name), "utf8"));
    if (typeof value === "object" && value !== null) return value as Record<string, unknown>;
  } catch (error) {
    throw new EngineError(
      "engine/bad-checkpoint",
      `${join(dir, name)} cannot be read: ${String(error)}. Choose a complete checkpoint.`,
      { cause: error },
    );
  }
  throw mismatch(dir, `has a ${name} that is not an object`);
}

function mismatch(dir: string, what: string): EngineError {
  return new EngineError(
    "engine/bad-checkpoint",
    `The checkpoint ${dir} ${what}. Load it into a model of the same base and LoRA settings.`,
  );
}
