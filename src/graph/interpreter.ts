// Evaluates a graph op by op in doubles. Slow and obvious on purpose: it says what a compiled graph must compute.
import { type Bindings, evaluateDim, isName } from "./dims.ts";
import { GraphError } from "./errors.ts";
import { inputOp } from "./source-ops.ts";
import { describe, type NdArray, type Node, type Tensor } from "./tensor.ts";
import { topologicalOrder, valueInputs } from "./traverse.ts";

export interface Feed {
  data: ArrayLike<number>;
  shape: readonly number[];
}

/** What the named dimensions of a graph's inputs are, given the shapes fed; refuses shapes that contradict each other. */
export function bindDimensions(
  inputs: readonly Tensor[],
  feeds: Readonly<Record<string, Pick<Feed, "shape">>>,
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

/** Evaluates `results`, given the values of some tensors; nodes behind those are not evaluated. */
export function interpretWith(
  results: readonly Tensor[],
  given: ReadonlyMap<Tensor, NdArray>,
  bindings: Bindings,
): NdArray[] {
  const values = new Map(given);
  const evaluate = (node: Node): void => {
    const inputs = valueInputs(node).map((tensor) => values.get(tensor)!);
    const call = { attributes: node.attributes, outputTypes: node.outputs, bindings };
    for (const [i, value] of node.op.interpret(inputs, call).entries()) values.set(node.outputs[i]!, value);
  };
  for (const node of topologicalOrder(results, valueInputs, new Set(given.keys()))) evaluate(node);
  return results.map((result) => values.get(result)!);
}

/** Evaluates outputs from the inputs fed by name. */
export function interpret<Name extends string>(
  outputs: Readonly<Record<Name, Tensor>>,
  feeds: Readonly<Record<string, Feed>>,
): Record<Name, NdArray> {
  const names = Object.keys(outputs) as Name[];
  const results = names.map((name) => outputs[name]);
  const inputs = graphInputs(results);
  const given = new Map<Tensor, NdArray>();
  const bindings = bindDimensions(inputs, feeds);
  for (const tensor of inputs) {
    const feed = feeds[inputName(tensor)]!;
    given.set(tensor, { shape: feed.shape, data: Float64Array.from(feed.data) });
  }
  const values = interpretWith(results, given, bindings);
  return Object.fromEntries(names.map((name, i) => [name, values[i]!])) as Record<Name, NdArray>;
}
