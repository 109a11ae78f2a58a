// From tensors to an ONNX graph: unused nodes never get in, aliases vanish, and equal nodes are emitted once.
import { isName } from "./dims.ts";
import { graphInputs, inputName } from "./inputs.ts";
import { Emitter, encodeModel, type Subgraph } from "./onnx.ts";
import { constantOp, inputOp } from "./source-ops.ts";
import type { Node, Tensor } from "./tensor.ts";
import { topologicalOrder, valueInputs } from "./traverse.ts";

/** Serialises the graph of named outputs as an ONNX model. */
export function toOnnx(outputs: Readonly<Record<string, Tensor>>): Uint8Array {
  const tensors = Object.values(outputs);
  const inputs = graphInputs(tensors);
  const dimensions = new Map<string, { input: string; axis: number }>();
  for (const tensor of inputs) {
    for (const [axis, dim] of tensor.shape.entries()) {
      if (isName(dim) && !dimensions.has(dim)) dimensions.set(dim, { input: inputName(tensor), axis });
    }
  }
  const emitter = new Emitter(dimensions);
  const names = new Map(inputs.map((tensor) => [tensor, inputName(tensor)]));
  emitNodes(emitter, Object.entries(outputs), names);
  const signature = (entries: Iterable<readonly [string, Tensor]>): { name: string; type: Tensor }[] =>
    [...entries].map(([name, type]) => ({ name, type }));
  return encodeModel(
    emitter.finish(
      "graph",
      // An input may be asked for in several places of the code; it is one input.
      signature(new Map(inputs.map((tensor) => [inputName(tensor), tensor]))),
      signature(Object.entries(outputs)),
    ),
  );
}

/** A loop's body as a subgraph; `captured` names the values it uses from outside. */
export function emitBody(
  parent: Emitter,
  parameters: readonly Tensor[],
  results: readonly Tensor[],
  captured: ReadonlyMap<Tensor, string>,
): Subgraph {
  const emitter = parent.child();
  const names = new Map(captured);
  for (const parameter of parameters) names.set(parameter, inputName(parameter));
  const outputs = results.map((tensor): [string, Tensor] => [parent.fresh("yield"), tensor]);
  emitNodes(emitter, outputs, names);
  return {
    graph: emitter.finish(
      "body",
      parameters.map((tensor) => ({ name: inputName(tensor), type: tensor })),
      outputs.map(([name, type]) => ({ name, type })),
    ),
  };
}

/** Emits what `outputs` need, beyond the tensors that have a name already. */
function emitNodes(
  emitter: Emitter,
  outputs: readonly (readonly [name: string, tensor: Tensor])[],
  given: ReadonlyMap<Tensor, string>,
): void {
  const names = new Map(given);
  const resolvedOutputs = outputs.map(([name, tensor]) => [name, resolveUpTo(tensor, given)] as const);
  const order = topologicalOrder(
    resolvedOutputs.map(([, tensor]) => tensor),
    (node) => valueInputs(node).map((tensor) => resolveUpTo(tensor, given)),
    new Set(given.keys()),
  );
  const wanted = new Map<Tensor, string>();
  for (const [name, tensor] of resolvedOutputs) if (!wanted.has(tensor)) wanted.set(tensor, name);

  const emitted = new Map<string, Node>();
  for (const node of order) {
    if (node.op === inputOp || node.op.alias) continue;
    const inputs = node.inputs.map((tensor) => names.get(resolveUpTo(tensor, given))!);
    const key = valueKey(node, inputs);
    const twin = emitted.get(key);
    if (twin) {
      for (const [i, tensor] of node.outputs.entries()) names.set(tensor, names.get(twin.outputs[i]!)!);
      continue;
    }
    emitted.set(key, node);
    for (const tensor of node.outputs) names.set(tensor, wanted.get(tensor) ?? emitter.fresh(node.op.name));
    node.op.emit(emitter, {
      inputs,
      outputs: node.outputs.map((tensor) => names.get(tensor)!),
      inputTypes: node.inputs,
      outputTypes: node.outputs,
      attributes: node.attributes,
    });
  }
  for (const [name, tensor] of resolvedOutputs) {
    if (names.get(tensor) !== name) emitter.node("Identity", [names.get(tensor)!], [name]);
  }
}

/** Follows aliases, but not past a tensor that is given by name. */
function resolveUpTo(tensor: Tensor, given: ReadonlyMap<Tensor, string>): Tensor {
  let current = tensor;
  while (!given.has(current) && current.node.op.alias) current = current.node.inputs[0]!;
  return current;
}

/** Equal keys: equal values. Large constants and loops are only equal to themselves. */
function valueKey(node: Node, inputs: readonly string[]): string {
  if (node.op.name === "scan") return `#${node.id}`;
  if (node.op === constantOp) {
    const { data, shape, dtype } = node.attributes as { data: Float32Array; shape: readonly number[]; dtype: string };
    return data.length > 16 ? `#${node.id}` : `${dtype}[${shape.join(",")}]${data.join(",")}`;
  }
  return `${node.op.name}(${inputs.join(",")})${JSON.stringify(node.attributes ?? null)}`;
}
