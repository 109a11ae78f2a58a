// How a model's weights lie in memory: those that are multiplied with the same input follow each other in one array, so that the
// sampler multiplies them as one matrix and the trainer one by one, without a copy.
import { type Qwen3Config, type Weight, type Weights, weightShapes } from "./model-types.ts";

/**
 * The name of a whole, and its parts in the order of their rows. An MLP's gate and up are wide: two products take no longer than
 * one whose result is then cut in two.
 */
const fusedParts: Readonly<Record<string, readonly string[]>> = {
  "self_attn.qkv_proj": ["self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj"],
};

/** The layers that a possibly fused layer stands for. */
export function partsOf(layer: string): string[] {
  for (const [fused, parts] of Object.entries(fusedParts)) {
    if (layer.endsWith(fused)) return parts.map((part) => layer.slice(0, -fused.length) + part);
  }
  return [layer];
}

/** The name of several layers that are multiplied as one; undefined where they are not. */
export function fusedName(layers: readonly string[]): string | undefined {
  for (const [fused, parts] of Object.entries(fusedParts)) {
    const prefix = layers[0]!.slice(0, -parts[0]!.length);
    if (layers.join() === parts.map((part) => prefix + part).join()) return prefix + fused;
  }
  return undefined;
}

/** The linear layers as the sampler multiplies them, the head last. */
export function fusedLayers(config: Qwen3Config): string[] {
  const ofLayer = ["self_attn.qkv_proj", "self_attn.o_proj", "mlp.gate_proj", "mlp.up_proj", "mlp.down_proj"];
  const layers = Array.from({ length: config.numLayers }, (_, index) => index).flatMap((index) =>
    ofLayer.map((name) => `model.layers.${index}.${name}`),
  );
  return [...layers, "lm_head"];
}

/** Zeroed arrays for every weight of the model. */
export function allocateWeights(config: Qwen3Config): Map<string, Weight> {
  const shapes = weightShapes(config);
  const weights = new Map<string, Weight>();
  for (const layer of fusedLayers(config)) {
    const names = partsOf(layer).map((part) => `${part}.weight`);
    if (!names.every((name) => shapes.has(name))) continue;
    const whole = new Float32Array(names.reduce((total, name) => total + count(shapes.get(name)!), 0));
    let start = 0;
    for (const name of names) {
      const shape = shapes.get(name)!;
      weights.set(name, { data: whole.subarray(start, start + count(shape)), shape });
      start += count(shape);
    }
  }
  for (const [name, shape] of shapes) {
    if (!weights.has(name)) weights.set(name, { data: new Float32Array(count(shape)), shape });
  }
  return weights;
}

/** The weight of a possibly fused layer. A tied head is the embedding. */
export function layerWeight(weights: Weights, layer: string): Weight {
  const parts = partsOf(layer).map(
    (part) => weights.get(`${part}.weight`) ?? weights.get("model.embed_tokens.weight")!,
  );
  const [first] = parts as [Weight];
  if (parts.length === 1) return first;
  const shape = [parts.reduce((rows, part) => rows + part.shape[0]!, 0), first.shape[1]!];
  return { data: new Float32Array(first.data.buffer, first.data.byteOffset, count(shape)), shape };
}

export const count = (shape: readonly number[]): number => shape.reduce((product, size) => product * size, 1);
