// How a model's weights lie in memory: those of queries, keys and values follow each other in one array, so that the sampler
// multiplies them as one matrix and the trainer one by one, without a copy. An MLP's gate and up are apart: they are wide, and two
// products take no longer than one whose result is then cut in two.
import { elementCount } from "../core/arrays.ts";
import {
  adaptedParts,
  type DecoderConfig,
  head,
  partName,
  type Weight,
  type Weights,
  weightName,
  weightShapes,
} from "./architecture.ts";

/** A matrix that the sampler multiplies with: the weight of one linear layer, or of several that follow each other. */
export interface Product {
  /** The graph input's. */
  name: string;
  layers: readonly string[];
}

export const joinedName = (layers: readonly string[]): string => layers.join("+");

/** The model's products, the head last. */
export function productsOf(config: DecoderConfig): Product[] {
  const products: Product[] = [];
  for (let index = 0; index < config.numLayers; index++) {
    const [query, key, value, output] = adaptedParts.trainAttn.map((part) => partName(config, index, part));
    const joined = [query!, key!, value!];
    products.push({ name: joinedName(joined), layers: joined });
    const apart = [output!, ...adaptedParts.trainMlp.map((part) => partName(config, index, part))];
    products.push(...apart.map((layer) => ({ name: `${layer}.weight`, layers: [layer] })));
  }
  return [...products, { name: `${head}.weight`, layers: [head] }];
}

/** Zeroed arrays for every weight of the model. */
export function allocateWeights(config: DecoderConfig): Map<string, Weight> {
  const shapes = weightShapes(config);
  const weights = new Map<string, Weight>();
  const allocate = (names: readonly string[]): void => {
    const whole = new Float32Array(names.reduce((total, name) => total + elementCount(shapes.get(name)!), 0));
    let start = 0;
    for (const name of names) {
      const shape = shapes.get(name)!;
      weights.set(name, { data: whole.subarray(start, start + elementCount(shape)), shape });
      start += elementCount(shape);
    }
  };
  for (const { layers } of productsOf(config)) allocate(layers.map((layer) => weightName(config, layer)));
  for (const name of shapes.keys()) if (!weights.has(name)) allocate([name]);
  return weights;
}

/** The matrix of a product, in place. */
export function productWeight(config: DecoderConfig, weights: Weights, { layers }: Product): Weight {
  const parts = layers.map((layer) => weights.get(weightName(config, layer))!);
  const { data, shape } = parts[0]!;
  const rows = parts.reduce((total, part) => total + part.shape[0]!, 0);
  return {
    data: new Float32Array(data.buffer, data.byteOffset, rows * shape[1]!),
    shape: [rows, shape[1]!],
  };
}
