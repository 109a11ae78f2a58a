// Walking a graph: orders of nodes, and what a set of results needs from outside.
import type { Node, Tensor } from "./tensor.ts";

/** What a node's value is computed from (an alias's gradient-only inputs left out). */
export function valueInputs(node: Node): readonly Tensor[] {
  return node.op.alias ? node.inputs.slice(0, 1) : node.inputs;
}

/**
 * The nodes that `roots` reach, every node after those it uses. `inputsOf` says which edges count; the walk does not go past
 * the tensors in `stop`. Iterative: graphs are deeper than the call stack.
 */
export function topologicalOrder(
  roots: readonly Tensor[],
  inputsOf: (node: Node) => readonly Tensor[],
  stop: ReadonlySet<Tensor> = new Set(),
): Node[] {
  const order: Node[] = [];
  const seen = new Set<Node>();
  const stack: { node: Node; inputs: readonly Tensor[]; next: number }[] = [];
  const visit = (tensor: Tensor): void => {
    if (stop.has(tensor) || seen.has(tensor.node)) return;
    seen.add(tensor.node);
    stack.push({ node: tensor.node, inputs: inputsOf(tensor.node), next: 0 });
  };
  for (const root of roots) {
    visit(root);
    while (stack.length > 0) {
      const top = stack.at(-1)!;
      if (top.next < top.inputs.length) {
        visit(top.inputs[top.next++]!);
      } else {
        order.push(top.node);
        stack.pop();
      }
    }
  }
  return order;
}

/** The nodes of `order` whose value depends on one of `sources`. */
export function dependents(
  order: readonly Node[],
  inputsOf: (node: Node) => readonly Tensor[],
  sources: ReadonlySet<Tensor>,
): Set<Node> {
  const result = new Set<Node>();
  for (const node of order) {
    const depends = (tensor: Tensor): boolean => sources.has(tensor) || result.has(tensor.node);
    if (inputsOf(node).some(depends)) result.add(node);
  }
  return result;
}

/** The tensors from outside a loop's body that `results` use: those that depend on no parameter, as late as possible. */
export function freeTensors(results: readonly Tensor[], parameters: readonly Tensor[]): Tensor[] {
  const sources = new Set(parameters);
  const order = topologicalOrder(results, valueInputs, sources);
  const inside = dependents(order, valueInputs, sources);
  const free = new Set<Tensor>();
  for (const node of order) {
    if (!inside.has(node)) continue;
    for (const tensor of valueInputs(node)) {
      if (!inside.has(tensor.node) && !sources.has(tensor)) free.add(tensor);
    }
  }
  for (const result of results) if (!inside.has(result.node) && !sources.has(result)) free.add(result);
  return [...free];
}
