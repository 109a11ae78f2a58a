// A loop over blocks: the body runs once per slice of the leading axis, with one block's memory. Sums are carried from block to
// block; everything else the body yields is stacked. The body may use any tensor of the surrounding graph. A scan carries
// no gradient: differentiate inside the body instead.
import type { Shape } from "./dims.ts";
import { GraphError } from "./errors.ts";
import { emitBody } from "./onnx-graph.ts";
import { privateInput } from "./source-ops.ts";
import { apply, describe, type Op, type Tensor } from "./tensor.ts";
import { freeTensors } from "./traverse.ts";

interface ScanAttributes {
  /** Stand-ins inside the body, in the order carried, sliced. */
  parameters: readonly Tensor[];
  carriedCount: number;
  slicedCount: number;
  /** The carried sums' next values, then the stacked outputs. */
  results: readonly Tensor[];
}

/** Inputs: initial carried values, sliced tensors, then whatever the body uses from outside. */
const scanOp: Op<ScanAttributes> = {
  name: "scan",
  infer: (inputs, { carriedCount, results }) => {
    const blocks = inputs[carriedCount]!.shape[0]!;
    return results.map((result, i) => ({
      dtype: result.dtype,
      shape: i < carriedCount ? result.shape : [blocks, ...result.shape],
    }));
  },
  emit: (emitter, { inputs, outputs, attributes }) => {
    const { parameters, carriedCount, slicedCount, results } = attributes;
    const captured = new Map(
      freeTensors(results, parameters).map((tensor, i) => [tensor, inputs[carriedCount + slicedCount + i]!]),
    );
    const body = emitBody(emitter, parameters, results, captured);
    emitter.node("Scan", inputs.slice(0, carriedCount + slicedCount), outputs, { num_scan_inputs: slicedCount, body });
  },
};

let nextScan = 0;

/**
 * Runs `body` for every index of the leading axis of `sliced`. `carried` are initial values of sums; the body receives their
 * current values and returns the next ones.
 */
export function scan(
  carried: readonly Tensor[],
  sliced: readonly Tensor[],
  body: (
    carried: readonly Tensor[],
    slices: readonly Tensor[],
  ) => { carried: readonly Tensor[]; stacked: readonly Tensor[] },
): { carried: Tensor[]; stacked: Tensor[] } {
  const prefix = `scan${nextScan++}`;
  const parameter = (tensor: Tensor, i: number, shape: Shape): Tensor =>
    privateInput(`${prefix}.${i}`, shape, tensor.dtype);
  const carriedIn = carried.map((tensor, i) => parameter(tensor, i, tensor.shape));
  const slices = sliced.map((tensor, i) => parameter(tensor, carried.length + i, tensor.shape.slice(1)));
  const produced = body(carriedIn, slices);
  for (const [i, next] of produced.carried.entries()) {
    if (describe(next) !== describe(carried[i]!)) {
      throw new GraphError(
        "graph/shape",
        `A scan carries ${describe(carried[i]!)} in and ${describe(next)} out; they must agree.`,
      );
    }
  }
  const parameters = [...carriedIn, ...slices];
  const results = [...produced.carried, ...produced.stacked];
  const outputs = apply(scanOp, [...carried, ...sliced, ...freeTensors(results, parameters)], {
    parameters,
    carriedCount: carried.length,
    slicedCount: sliced.length,
    results,
  });
  return { carried: outputs.slice(0, carried.length), stacked: outputs.slice(carried.length) };
}
