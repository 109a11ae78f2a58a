// Every op, at random sizes and values: ONNX Runtime agrees with the interpreter, for the value and for the gradient; and the
// gradient agrees with finite differences of the interpreter.
import fc from "fast-check";
import { expect, test } from "vitest";
import { type Feed, interpret } from "../../test/support/graph-interpreter.ts";
import { evaluateDim } from "./dims.ts";
import * as g from "./index.ts";
import type { Tensor } from "./tensor.ts";

interface Case {
  /** Float inputs that are differentiated, with their shapes over the dimensions n and m. */
  inputs: Record<string, g.Shape>;
  build: (inputs: Record<string, Tensor>) => Tensor;
  /** Keeps values where the op is smooth. */
  domain?: (value: number) => number;
}

/** Away from the points where clamps and comparisons switch (multiples of 1/2). */
const offGrid = (value: number): number => Math.floor(value * 2) / 2 + 0.1 + 0.3 * (value * 2 - Math.floor(value * 2));
const integers = (name: string, shape: g.Shape): Tensor => g.input(name, shape, "i32");

const cases: Record<string, Case> = {
  add: { inputs: { a: ["n", "m"], b: ["m"] }, build: ({ a, b }) => g.add(a!, b!) },
  subtract: { inputs: { a: [1, "m"], b: ["n", "m"] }, build: ({ a, b }) => g.subtract(a!, b!) },
  multiply: { inputs: { a: ["n", 1, "m"], b: [3, 1] }, build: ({ a, b }) => g.multiply(a!, b!) },
  minimum: { inputs: { a: ["n", "m"] }, build: ({ a }) => g.minimum(a!, g.scalar(0.5)), domain: offGrid },
  maximum: { inputs: { a: ["n", "m"] }, build: ({ a }) => g.maximum(g.scalar(-0.5), a!), domain: offGrid },
  where: {
    inputs: { a: ["n", "m"], b: ["m"] },
    build: ({ a, b }) => g.where(g.less(a!, g.scalar(0)), g.multiply(a!, a!), b!),
    domain: offGrid,
  },
  greater: {
    inputs: { a: ["n", "m"], b: ["m"] },
    build: ({ a, b }) => g.where(g.greater(a!, g.scalar(0)), b!, a!),
    domain: offGrid,
  },
  negate: { inputs: { a: ["n"] }, build: ({ a }) => g.negate(a!) },
  exp: { inputs: { a: ["n", "m"] }, build: ({ a }) => g.exp(a!) },
  sigmoid: { inputs: { a: ["n", "m"] }, build: ({ a }) => g.sigmoid(a!) },
  silu: { inputs: { a: ["n", "m"] }, build: ({ a }) => g.silu(a!) },
  sum: { inputs: { a: ["n", 2, "m"] }, build: ({ a }) => g.sum(a!, [0, 2]) },
  "sum, keeping axes": { inputs: { a: ["n", 2, "m"] }, build: ({ a }) => g.sum(a!, [1], { keepDims: true }) },
  broadcastTo: { inputs: { a: ["n", 1] }, build: ({ a }) => g.broadcastTo(a!, [2, "n", 3]) },
  reshape: { inputs: { a: ["n", "m", 6] }, build: ({ a }) => g.reshape(a!, [2, "n", 3, "m"]) },
  transpose: { inputs: { a: ["n", "m", 3] }, build: ({ a }) => g.transpose(a!, [2, 0, 1]) },
  concat: { inputs: { a: ["n", 2], b: ["n", "m"] }, build: ({ a, b }) => g.concat([a!, b!, a!], 1) },
  split: {
    inputs: { a: ["n", "2+m"], b: ["m"] },
    build: ({ a, b }) => {
      const [first, second] = g.split(a!, 1, [2, "m"]);
      return g.concat([g.multiply(second!, b!), g.multiply(first!, first!)], 1);
    },
  },
  "split, one part unused": { inputs: { a: ["n", "m", 5] }, build: ({ a }) => g.split(a!, -1, [2, 3])[1]! },
  matmul: { inputs: { a: ["n", 3], b: [3, "m"] }, build: ({ a, b }) => g.matmul(a!, b!, { alpha: 0.5 }) },
  "matmul, a transposed": {
    inputs: { a: [3, "n"], b: [3, "m"] },
    build: ({ a, b }) => g.matmul(a!, b!, { transA: true }),
  },
  "matmul, b transposed": {
    inputs: { a: ["n", 3], b: ["m", 3] },
    build: ({ a, b }) => g.matmul(a!, b!, { transB: true }),
  },
  "matmul, both transposed": {
    inputs: { a: ["n", 3, 2], b: ["m", 3] },
    build: ({ a, b }) => g.matmul(a!, b!, { transA: true, transB: true, alpha: 2 }),
  },
  "matmul, batched": {
    inputs: { a: ["n", 2, "m", 3], b: ["n", 1, "m", 3] },
    build: ({ a, b }) => g.matmul(a!, b!, { transB: true, alpha: 0.25 }),
  },
  "matmul, batched and plain": { inputs: { a: ["n", 2, 3], b: ["n", 3, "m"] }, build: ({ a, b }) => g.matmul(a!, b!) },
  gather: { inputs: { a: ["m", 3] }, build: ({ a }) => g.gather(a!, integers("rows", ["n", 2])) },
  gatherOnce: {
    inputs: { a: ["n", 3] },
    build: ({ a }) => g.gatherOnce(a!, integers("order", ["n"]), integers("inverse", ["n"])),
  },
  "gather, inner axis": {
    inputs: { a: [2, "n", 3] },
    build: ({ a }) => g.gatherOnce(a!, integers("order", ["n"]), integers("inverse", ["n"]), 1),
  },
  scatterAddRows: {
    inputs: { a: ["n", 3], b: ["m", 3] },
    build: ({ a, b }) => g.add(g.scatterAddRows(integers("slots", ["n"]), a!, "m"), b!),
  },
  gatherElements: { inputs: { a: ["n", 4] }, build: ({ a }) => g.gatherElements(a!, integers("columns", ["n", 2])) },
  scatterAddElements: {
    inputs: { a: ["n", 4], b: ["n", 2] },
    build: ({ a, b }) => g.scatterAddElements(a!, integers("columns", ["n", 2]), b!),
  },
  softmax: { inputs: { a: ["n", "m"] }, build: ({ a }) => g.softmax(a!) },
  logSoftmax: { inputs: { a: ["n", "m"] }, build: ({ a }) => g.logSoftmax(a!) },
  targetLogprobs: { inputs: { a: ["n", 4] }, build: ({ a }) => g.targetLogprobs(a!, integers("columns", ["n", 2])) },
  rmsNorm: { inputs: { a: ["n", "m", 4], b: [4] }, build: ({ a, b }) => g.rmsNorm(a!, b!, 1e-6) },
  checkpoint: {
    inputs: { a: ["n", 3], b: [3, "m"], c: ["n", "m"] },
    build: ({ a, b, c }) => {
      const scale = g.exp(c!); // a parameter that is computed outside
      const inner = g.checkpoint(a!, [b!, scale], (x) => g.multiply(g.silu(g.matmul(g.multiply(x, x), b!)), scale));
      return g.add(inner, scale);
    },
  },
  rope: {
    inputs: { a: ["n", 8] },
    build: ({ a }) => {
      const angles = Array.from({ length: 32 }, (_, i) => Math.floor(i / 2) / 10 ** (i % 2));
      const table = (f: (x: number) => number): Tensor => g.constant(Float32Array.from(angles, f), [16, 2]);
      return g.rope(a!, integers("positions", ["n"]), table(Math.cos), table(Math.sin));
    },
  },
};

/** Numbers from a seed, uniform in [-2, 2). */
function numbers(seed: number, count: number): number[] {
  let state = seed >>> 0;
  return Array.from({ length: count }, () => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return (state / 2 ** 32) * 4 - 2;
  });
}

function integerFeeds(n: number, m: number, seed: number): Record<string, Feed> {
  const below = (limit: number, count: number): number[] =>
    numbers(seed + limit, count).map((value) => Math.floor(((value + 2) / 4) * limit));
  const rotation = [...Array(n).keys()].map((i) => (i + 1) % n);
  return {
    rows: { shape: [n, 2], data: below(m, 2 * n) },
    slots: { shape: [n], data: below(m, n) },
    columns: { shape: [n, 2], data: below(4, 2 * n) },
    positions: { shape: [n], data: below(16, n) },
    order: { shape: [n], data: rotation },
    inverse: { shape: [n], data: rotation.map((_, i) => rotation.indexOf(i)) },
  };
}

function expectClose(actual: ArrayLike<number>, expected: ArrayLike<number>, tolerance: number): void {
  expect(actual.length).toBe(expected.length);
  for (let i = 0; i < expected.length; i++) {
    const allowed = tolerance * (1 + Math.abs(expected[i]!));
    if (!(Math.abs(actual[i]! - expected[i]!) <= allowed))
      expect.fail(`element ${i}: ${actual[i]} is not ${expected[i]}`);
  }
}

test.each(Object.entries(cases))("%s: runtime, interpreter and finite differences agree", async (_, spec) => {
  const inputs = Object.fromEntries(Object.entries(spec.inputs).map(([name, shape]) => [name, g.input(name, shape)]));
  const output = spec.build(inputs);
  // A weighted sum with uneven weights, so that no part of the gradient cancels.
  const weights = g.input("weights", output.shape);
  const loss = g.sum(g.multiply(output, weights));
  const outputs: Record<string, Tensor> = { output, loss };
  for (const [i, gradient] of g.gradients(loss, Object.values(inputs)).entries()) {
    outputs[`d_${Object.keys(inputs)[i]}`] = gradient;
  }
  const session = await g.Session.compile(outputs, 1);
  try {
    const sizes = fc.record({ n: fc.integer({ min: 1, max: 4 }), m: fc.integer({ min: 1, max: 4 }), seed: fc.nat() });
    await fc.assert(
      fc.asyncProperty(sizes, async ({ n, m, seed }) => {
        const feeds: Record<string, Feed> = integerFeeds(n, m, seed);
        const size = (dim: g.Dim): number =>
          evaluateDim(
            dim,
            new Map([
              ["n", n],
              ["m", m],
            ]),
          );
        for (const [i, [name, symbolic]] of Object.entries(spec.inputs).entries()) {
          const shape = symbolic.map(size);
          const count = shape.reduce((product, dim) => product * dim, 1);
          feeds[name] = { shape, data: numbers(seed + 7 * i, count).map(spec.domain ?? ((value) => value)) };
        }
        const shape = interpret({ output }, feeds).output.shape;
        feeds["weights"] = {
          shape,
          data: numbers(
            seed + 99,
            shape.reduce((product, dim) => product * dim, 1),
          ),
        };

        const exact = interpret(outputs, feeds);
        const ran = await session.run(
          Object.fromEntries(Object.entries(feeds).map(([name, feed]) => [name, toValue(name, feed)])),
        );
        for (const name of Object.keys(outputs)) {
          expect(ran[name]!.dims).toEqual(exact[name]!.shape);
          expectClose(g.floats(ran[name]!), exact[name]!.data, 2e-5);
        }
        for (const name of Object.keys(inputs)) {
          expectClose(exact[`d_${name}`]!.data, finiteDifferences(loss, feeds, name), 1e-6);
        }
      }),
      { numRuns: 12, seed: 1 },
    );
  } finally {
    await session.release();
  }
});

function toValue(name: string, feed: Feed): g.Value {
  const integer = ["rows", "slots", "columns", "positions", "order", "inverse"].includes(name);
  return g.value(integer ? Int32Array.from(feed.data) : Float32Array.from(feed.data), feed.shape);
}

function finiteDifferences(loss: Tensor, feeds: Record<string, Feed>, name: string): number[] {
  const feed = feeds[name]!;
  const step = 1e-5;
  const lossAt = (position: number, delta: number): number => {
    const data = Float64Array.from(feed.data);
    data[position]! += delta;
    return interpret({ loss }, { ...feeds, [name]: { ...feed, data } }).loss.data[0]!;
  };
  return Array.from(feed.data, (_, i) => (lossAt(i, step) - lossAt(i, -step)) / (2 * step));
}

test("scan stacks what its body yields and carries sums, and differentiates inside the body", async () => {
  const rows = g.input("rows", ["blocks", "size", 3]);
  const weight = g.input("weight", [3]);
  const doubled = g.add(weight, weight); // from outside the body
  const { carried, stacked } = g.scan([g.zeros([3])], [rows], ([total], [block]) => {
    const loss = g.sum(g.multiply(g.multiply(block!, block!), doubled));
    return { carried: [g.add(total!, g.sum(block!, [0]))], stacked: [g.gradients(loss, [block!])[0]!, loss] };
  });
  const outputs = { total: carried[0]!, gradient: stacked[0]!, losses: stacked[1]! };
  const feeds = { rows: { shape: [4, 2, 3], data: numbers(5, 24) }, weight: { shape: [3], data: [1, 2, 3] } };
  const exact = interpret(outputs, feeds);
  expectClose(
    exact.gradient.data,
    feeds.rows.data.map((value, i) => 4 * value * ((i % 3) + 1)),
    1e-9,
  );
  const session = await g.Session.compile(outputs, 1);
  const ran = await session.run({ rows: toValue("", feeds.rows), weight: toValue("", feeds.weight) });
  await session.release();
  for (const name of ["total", "gradient", "losses"] as const)
    expectClose(g.floats(ran[name]!), exact[name].data, 1e-5);
});
