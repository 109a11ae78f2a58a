// Evaluates a graph op by op in doubles. Slow and obvious on purpose: it says what a compiled graph must compute.
import { type Bindings, evaluateDim } from "../../src/graph/dims.ts";
import { bindDimensions, graphInputs, inputName } from "../../src/graph/inputs.ts";
import type { Node, Tensor, TensorType } from "../../src/graph/tensor.ts";
import { freeTensors, topologicalOrder, valueInputs } from "../../src/graph/traverse.ts";

/** A value: everything is a double, whatever its dtype. Row by row. */
export interface NdArray {
  shape: readonly number[];
  data: Float64Array;
}

export interface Feed {
  data: ArrayLike<number>;
  shape: readonly number[];
}

interface Call {
  // biome-ignore lint/suspicious/noExplicitAny: the attributes of any op
  attributes: any;
  /** The shapes of the results. */
  shapes: readonly (readonly number[])[];
  bindings: Bindings;
}

/** Evaluates outputs from the inputs fed by name. */
export function interpret<Name extends string>(
  outputs: Readonly<Record<Name, Tensor>>,
  feeds: Readonly<Record<string, Feed>>,
): Record<Name, NdArray> {
  const names = Object.keys(outputs) as Name[];
  const results = names.map((name) => outputs[name]);
  const inputs = graphInputs(results);
  const bindings = bindDimensions(inputs, feeds);
  const given = inputs.map((tensor): [Tensor, NdArray] => {
    const { shape, data } = feeds[inputName(tensor)]!;
    return [tensor, { shape, data: Float64Array.from(data) }];
  });
  const values = evaluate(results, new Map(given), bindings);
  return Object.fromEntries(names.map((name, i) => [name, values[i]!])) as Record<Name, NdArray>;
}

/** The values of `results`, given those of some tensors; nodes behind those are not evaluated. */
function evaluate(results: readonly Tensor[], given: ReadonlyMap<Tensor, NdArray>, bindings: Bindings): NdArray[] {
  const values = new Map(given);
  const compute = (node: Node): void => {
    const inputs = valueInputs(node).map((tensor) => values.get(tensor)!);
    const { op, attributes } = node;
    const shapes = node.outputs.map((type: TensorType) => type.shape.map((dim) => evaluateDim(dim, bindings)));
    const meaning = op.alias ? ([x]: readonly NdArray[]) => [x!] : meanings[op.name];
    if (!meaning) throw new Error(`What "${op.name}" computes is not written down here.`);
    for (const [i, value] of meaning(inputs, { attributes, shapes, bindings }).entries())
      values.set(node.outputs[i]!, value);
  };
  for (const node of topologicalOrder(results, valueInputs, new Set(given.keys()))) compute(node);
  return results.map((result) => values.get(result)!);
}

type Meaning = (inputs: readonly NdArray[], call: Call) => NdArray[];

const binary =
  (compute: (a: number, b: number) => number): Meaning =>
  ([a, b], { shapes: [shape] }) => [fill(shape!, (index) => compute(at(a!, index), at(b!, index)))];
const unary =
  (compute: (x: number) => number): Meaning =>
  ([x]) => [{ shape: x!.shape, data: x!.data.map(compute) }];
const part = (x: NdArray, shape: readonly number[], axis: number, from: number): NdArray =>
  fill(shape, (index) =>
    at(
      x,
      index.map((value, i) => (i === axis ? value + from : value)),
    ),
  );

/** What each op computes, by its name. */
const meanings: Readonly<Record<string, Meaning>> = {
  add: binary((a, b) => a + b),
  subtract: binary((a, b) => a - b),
  multiply: binary((a, b) => a * b),
  minimum: binary(Math.min),
  maximum: binary(Math.max),
  less: binary((a, b) => Number(a < b)),
  greater: binary((a, b) => Number(a > b)),
  negate: unary((x) => -x),
  exp: unary(Math.exp),
  sigmoid: unary((x) => 1 / (1 + Math.exp(-x))),
  where: ([condition, a, b], { shapes: [shape] }) => [
    fill(shape!, (index) => (at(condition!, index) !== 0 ? at(a!, index) : at(b!, index))),
  ],
  constant: (_, { attributes }) => [{ shape: attributes.shape, data: Float64Array.from(attributes.data) }],
  zeros: (_, { shapes: [shape] }) => [fill(shape!, () => 0)],
  reshape: ([x], { shapes: [shape] }) => [{ shape: shape!, data: x!.data }],
  broadcast: ([x], { shapes: [shape] }) => [fill(shape!, (index) => at(x!, index))],
  transpose: ([x], { shapes: [shape], attributes: { order } }) => [
    fill(shape!, (index) =>
      at(
        x!,
        x!.shape.map((_, axis) => index[order.indexOf(axis)]!),
      ),
    ),
  ],
  concat: (inputs, { shapes: [shape], attributes: { axis } }) => [
    fill(shape!, (index) => {
      let position = index[axis]!;
      const source = inputs.find((array) => {
        if (position < array.shape[axis]!) return true;
        position -= array.shape[axis]!;
        return false;
      });
      return at(
        source!,
        index.map((value, i) => (i === axis ? position : value)),
      );
    }),
  ],
  split: ([x], { shapes, attributes: { axis } }) => {
    let start = 0;
    return shapes.map((shape) => {
      start += shape[axis]!;
      return part(x!, shape, axis, start - shape[axis]!);
    });
  },
  sum: ([x], { shapes: [shape] }) => {
    const total = fill(shape!, () => 0);
    fill(x!.shape, (index) => {
      let position = 0;
      for (const [axis, size] of total.shape.entries()) position = position * size + (size === 1 ? 0 : index[axis]!);
      total.data[position]! += at(x!, index);
      return 0;
    });
    return [total];
  },
  matmul: ([a, b], { shapes: [shape], attributes: { transA, transB, alpha } }) => {
    const inner = a!.shape.at(transA ? -2 : -1)!;
    return [
      fill(shape!, (index) => {
        const [batch, row, column] = [index.slice(0, -2), index.at(-2)!, index.at(-1)!];
        let total = 0;
        for (let k = 0; k < inner; k++) {
          const left = at(a!, [...batch, ...(transA ? [k, row] : [row, k])]);
          total += left * at(b!, [...batch, ...(transB ? [column, k] : [k, column])]);
        }
        return alpha * total;
      }),
    ];
  },
  gather: ([table, indices], { shapes: [shape], attributes: { axis } }) => [
    fill(shape!, (index) => {
      const end = axis + indices!.shape.length;
      return at(table!, [...index.slice(0, axis), at(indices!, index.slice(axis, end)), ...index.slice(end)]);
    }),
  ],
  scatterAddRows: ([indices, updates], { shapes: [shape] }) => {
    const result = fill(shape!, () => 0);
    const width = elementCount(result.shape.slice(1));
    for (const [position, row] of indices!.data.entries()) {
      for (let i = 0; i < width; i++) result.data[row * width + i]! += updates!.data[position * width + i]!;
    }
    return [result];
  },
  gatherElements: ([x, indices]) => [
    fill(indices!.shape, (index) => at(x!, [...index.slice(0, -1), at(indices!, index)])),
  ],
  scatterAddElements: ([base, indices, updates]) => {
    const [width, count] = [base!.shape.at(-1)!, indices!.shape.at(-1)!];
    const data = Float64Array.from(base!.data);
    for (const [position, column] of indices!.data.entries()) {
      data[Math.floor(position / count) * width + column]! += updates!.data[position]!;
    }
    return [{ shape: base!.shape, data }];
  },
  softmax: ([x]) => [mapRows(x!, (row) => logSoftmaxRow(row).map(Math.exp))],
  logSoftmax: ([x]) => [mapRows(x!, logSoftmaxRow)],
  rmsNorm: ([x, weight], { shapes: [, scalesShape], attributes: { epsilon } }) => {
    const inverse = (row: Float64Array): number =>
      1 / Math.sqrt(row.reduce((total, value) => total + value * value, 0) / row.length + epsilon);
    const rows = mapRows(x!, (row) => row.map((value, i) => value * inverse(row) * weight!.data[i]!));
    const scales = fill(scalesShape!, () => 0);
    const width = x!.shape.at(-1)!;
    for (let row = 0; row < scales.data.length; row++) {
      scales.data[row] = inverse(x!.data.subarray(row * width, (row + 1) * width));
    }
    return [rows, scales];
  },
  rope: ([x, positions, cos, sin]) => {
    const half = cos!.shape[1]!;
    return [
      fill(x!.shape, ([row, column]) => {
        const position = positions!.data[row!]!;
        const within = column! % (2 * half);
        const partner = within < half ? -at(x!, [row!, column! + half]) : at(x!, [row!, column! - half]);
        return (
          at(x!, [row!, column!]) * at(cos!, [position, within % half]) + partner * at(sin!, [position, within % half])
        );
      }),
    ];
  },
  scan: (inputs, { attributes, shapes, bindings }) => {
    const { parameters, carriedCount, slicedCount, results } = attributes;
    const free = freeTensors(results, parameters);
    const outside = new Map(free.map((tensor, i) => [tensor, inputs[carriedCount + slicedCount + i]!]));
    let carried = inputs.slice(0, carriedCount);
    const stacked = shapes.slice(carriedCount).map((shape) => fill(shape, () => 0));
    for (let block = 0; block < inputs[carriedCount]!.shape[0]!; block++) {
      const values = new Map(outside);
      for (const [i, parameter] of parameters.entries())
        values.set(parameter, i < carriedCount ? carried[i]! : blockOf(inputs[i]!, block));
      const produced = evaluate(results, values, bindings);
      carried = produced.slice(0, carriedCount);
      for (const [i, array] of produced.slice(carriedCount).entries())
        stacked[i]!.data.set(array.data, block * array.data.length);
    }
    return [...carried, ...stacked];
  },
};

function blockOf(array: NdArray, block: number): NdArray {
  const size = array.data.length / array.shape[0]!;
  return { shape: array.shape.slice(1), data: array.data.subarray(block * size, (block + 1) * size) };
}

function mapRows(x: NdArray, f: (row: Float64Array) => Float64Array): NdArray {
  const width = x.shape.at(-1)!;
  const data = new Float64Array(x.data.length);
  for (let start = 0; start < data.length; start += width) data.set(f(x.data.subarray(start, start + width)), start);
  return { shape: x.shape, data };
}

function logSoftmaxRow(row: Float64Array): Float64Array {
  const largest = row.reduce((a, b) => Math.max(a, b), Number.NEGATIVE_INFINITY);
  const total = row.reduce((partial, value) => partial + Math.exp(value - largest), 0);
  return row.map((value) => value - largest - Math.log(total));
}

function elementCount(shape: readonly number[]): number {
  return shape.reduce((product, dim) => product * dim, 1);
}

/** Fills an array by a function of the multi-index, which is reused between calls. */
function fill(shape: readonly number[], value: (index: readonly number[]) => number): NdArray {
  const data = new Float64Array(elementCount(shape));
  const index = new Array<number>(shape.length).fill(0);
  for (let position = 0; position < data.length; position++) {
    data[position] = value(index);
    for (let axis = shape.length - 1; axis >= 0; axis--) {
      if (++index[axis]! < shape[axis]!) break;
      index[axis] = 0;
    }
  }
  return { shape: [...shape], data };
}

/** Reads an element; leading axes that the array lacks are dropped and axes of size 1 repeat (broadcasting). */
function at(array: NdArray, index: readonly number[]): number {
  const skipped = index.length - array.shape.length;
  let position = 0;
  for (const [axis, size] of array.shape.entries())
    position = position * size + (size === 1 ? 0 : index[axis + skipped]!);
  return array.data[position]!;
}
