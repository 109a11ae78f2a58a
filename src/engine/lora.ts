// LoRA adapters: which layers they sit on, how their parameters start, and how they enter a graph.
import { Random } from "../core/random.ts";
import { add, input, matmul, multiply, type Tensor, withGradient } from "../graph/index.ts";
import { type AdapterWeights, adaptedParts, type DecoderConfig, head, linearShapes, partName } from "./architecture.ts";
import type { LoraSpec } from "./engine.ts";

/** An adapter adds `(LORA_ALPHA / rank) · B · A` to a weight: 1 at rank 32, and a learning rate that suits every rank. */
export const LORA_ALPHA = 32;

export const loraScale = (rank: number): number => LORA_ALPHA / rank;

/** The kinds of layers an adapter sits on. */
export type LoraTargets = Pick<LoraSpec, "trainAttn" | "trainMlp" | "trainUnembed">;

export const targetsOf = ({ trainAttn, trainMlp, trainUnembed }: LoraTargets): LoraTargets => ({
  trainAttn,
  trainMlp,
  trainUnembed,
});

/** The layers an adapter sits on, in the model's order, with [out, in]. A tied model's head is adapted without its embedding. */
export function adaptedLayers(config: DecoderConfig, targets: LoraTargets): Map<string, [out: number, input: number]> {
  const parts = [
    ...(targets.trainAttn ? adaptedParts.trainAttn : []),
    ...(targets.trainMlp ? adaptedParts.trainMlp : []),
  ];
  const layers = Array.from({ length: config.numLayers }, (_, index) =>
    parts.map((part) => partName(config, index, part)),
  ).flat();
  if (targets.trainUnembed) layers.push(head);
  const shapeOf = linearShapes(config);
  return new Map(layers.map((layer) => [layer, shapeOf(layer)]));
}

/** The names and shapes of an adapter's parameters. */
export function adapterShapes(config: DecoderConfig, spec: LoraSpec): Map<string, number[]> {
  const shapes = new Map<string, number[]>();
  for (const [layer, [out, inner]] of adaptedLayers(config, spec)) {
    shapes.set(loraA(layer), [spec.rank, inner]);
    shapes.set(loraB(layer), [out, spec.rank]);
  }
  return shapes;
}
export const loraA = (layer: string): string => `${layer}.lora_A.weight`;
export const loraB = (layer: string): string => `${layer}.lora_B.weight`;

/**
 * A fresh adapter, as PEFT makes it: A uniform in ±1/√in (Kaiming's bound with a = √5), B zero, so that it changes nothing yet.
 * Each layer draws from a stream of its own: the same seed gives a layer the same start whatever else is trained.
 */
export function initialAdapter(config: DecoderConfig, spec: LoraSpec): AdapterWeights {
  const weights: AdapterWeights = new Map();
  for (const [layer, [out, inner]] of adaptedLayers(config, spec)) {
    const random = new Random(spec.seed ?? 0, layer);
    const bound = 1 / Math.sqrt(inner);
    const a = Float32Array.from({ length: spec.rank * inner }, () => (2 * random.float() - 1) * bound);
    weights.set(loraA(layer), { data: a, shape: [spec.rank, inner] });
    weights.set(loraB(layer), { data: new Float32Array(out * spec.rank), shape: [out, spec.rank] });
  }
  return weights;
}

/** An adapter's parameters for one layer, as graph inputs of any rank, and the factor alpha / rank. */
export interface LoraInputs {
  a: Tensor;
  b: Tensor;
  scale: Tensor;
}

export function loraInputs(layer: string, [out, inner]: readonly [number, number]): LoraInputs {
  return {
    a: input(loraA(layer), ["rank", inner]),
    b: input(loraB(layer), [out, "rank"]),
    scale: input("lora_scale", []),
  };
}

/** weight + scale · B · A. */
export function mergeLora(weight: Tensor, { a, b, scale }: LoraInputs): Tensor {
  return add(weight, multiply(matmul(b, a), scale));
}

/**
 * Rows times an adapted weight, with the adapter merged into the weight first: the rows then pay nothing for the adapter on the
 * way forward. The derived gradient would go through the full weight's gradient; this one stays at the adapter's rank.
 */
export function mergedLinear(x: Tensor, weight: Tensor, lora: LoraInputs): Tensor {
  const { a, b, scale } = lora;
  const merged = mergeLora(weight, lora);
  return withGradient(matmul(x, merged, { transB: true }), [x, a, b], (d) => {
    const dA = matmul(matmul(d, b), x, { transA: true });
    const dB = matmul(d, matmul(x, a, { transB: true }), { transA: true });
    return [matmul(d, merged), multiply(dA, scale), multiply(dB, scale)];
  });
}

/** The same product with the adapter beside the weight: no second copy of the weight, for models where that copy is too large. */
export function sideLinear(x: Tensor, weight: Tensor, { a, b, scale }: LoraInputs): Tensor {
  const beside = matmul(multiply(matmul(x, a, { transB: true }), scale), b, { transB: true });
  return add(matmul(x, weight, { transB: true }), beside);
}
