// The inputs of a graph, and what the names in their shapes stand for in one run.
import { evaluateDim, isName } from "./dims.ts";
import { GraphError } from "./errors.ts";
import { inputOp } from "./source-ops.ts";
import { describe, type Tensor } from "./tensor.ts";
import { topologicalOrder, valueInputs } from "./traverse.ts";

/** What the named dimensions of a graph's inputs are, given the shapes fed; refuses shapes that contradict each other. */
export function bindDimensions(
  inputs: readonly Tensor[],
  feeds: Readonly<Record<string, { shape: readonly number[] }>>,
): Map<string, number> {
  const bindings = new Map<string, number>();
  for (const tensor of inputs) {
    const feed = feeds[inputName(tensor)];
    for (const [axis, dim] of tensor.shape.entries()) {
      if (isName(dim) && !bindings.has(dim) && feed) bindings.set(dim, feed.shape[axis]!);
    }
  }
  for (const tensor of inputs) {
    const name = inputName(tensor);
    const feed = feeds[name];
    if (!feed) {
      throw new GraphError("graph/input", `Input "${name}" was given no value. Feed every input of the graph.`);
    }
    const fits =
      feed.shape.length === tensor.shape.length &&
      tensor.shape.every((dim, axis) => evaluateDim(dim, bindings) === feed.shape[axis]);
    if (!fits) {
      const bound = [...bindings].map(([dim, size]) => `${dim}=${size}`).join(", ");
      throw new GraphError(
        "graph/input",
        `Input "${name}" is declared [${tensor.shape.join(", ")}] and was fed [${feed.shape.join(", ")}], with ${bound || "no names"}.`,
      );
    }
  }
  return bindings;
}

export function inputName(tensor: Tensor): string {
  return (tensor.node.attributes as { name: string }).name;
}

/** The inputs that `outputs` use, by first use. */
export function graphInputs(outputs: readonly Tensor[]): Tensor[] {
  const inputs = new Map<string, Tensor>();
  for (const node of topologicalOrder(outputs, valueInputs)) {
    if (node.op !== inputOp) continue;
    const tensor = node.outputs[0]!;
    const twin = inputs.get(inputName(tensor));
    if (twin) {
      throw new GraphError(
        "graph/input",
        `"${inputName(tensor)}" is declared as ${describe(twin)} and as ${describe(tensor)}.`,
      );
    }
    inputs.set(inputName(tensor), tensor);
  }
  return [...inputs.values()];
}
