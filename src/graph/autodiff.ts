// Reverse-mode differentiation: from a graph, the graph of its gradient. Nothing is evaluated here.
import { add } from "./elementwise-ops.ts";
import { GraphError } from "./errors.ts";
import { zeros } from "./shape-ops.ts";
import { scalar } from "./source-ops.ts";
import { describe, requireShape, type Tensor } from "./tensor.ts";
import { dependents, topologicalOrder } from "./traverse.ts";

/**
 * Given the cotangents of `outputs` (what a loss's gradient with respect to each is), those of `sources`. A source the outputs
 * do not depend on gets zeros.
 */
export function pullBack(
  outputs: readonly Tensor[],
  outputCotangents: readonly Tensor[],
  sources: readonly Tensor[],
): Tensor[] {
  const wanted = new Set(sources);
  const order = topologicalOrder(outputs, (node) => node.inputs, wanted);
  const relevant = dependents(order, (node) => node.inputs, wanted);
  const needs = (tensor: Tensor): boolean => wanted.has(tensor) || relevant.has(tensor.node);

  const cotangents = new Map<Tensor, Tensor>();
  const accumulate = (tensor: Tensor, cotangent: Tensor): void => {
    requireShape(`The cotangent of ${describe(tensor)} made by "${tensor.node.op.name}"`, cotangent, tensor.shape);
    const earlier = cotangents.get(tensor);
    cotangents.set(tensor, earlier ? add(earlier, cotangent) : cotangent);
  };
  for (const [i, output] of outputs.entries()) if (needs(output)) accumulate(output, outputCotangents[i]!);

  for (const node of order.reverse()) {
    if (!relevant.has(node) || !node.outputs.some((output) => cotangents.has(output))) continue;
    if (!node.op.gradient) {
      if (node.outputs.every((output) => output.dtype !== "f32")) continue;
      throw new GraphError(
        "graph/gradient",
        `"${node.op.name}" has no gradient. Use stopGradient where none is meant.`,
      );
    }
    const parts = node.op.gradient({
      inputs: node.inputs,
      outputs: node.outputs,
      cotangents: node.outputs.map((output) => cotangents.get(output)),
      needed: node.inputs.map(needs),
      attributes: node.attributes,
    });
    for (const [i, part] of parts.entries()) if (part && needs(node.inputs[i]!)) accumulate(node.inputs[i]!, part);
  }
  return sources.map((source) => cotangents.get(source) ?? zeros(source.shape));
}

/** The gradient of a scalar with respect to each source. */
export function gradients(loss: Tensor, sources: readonly Tensor[]): Tensor[] {
  requireShape("The loss", loss, []);
  return pullBack([loss], [scalar(1)], sources);
}
