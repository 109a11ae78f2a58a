// Dimensions, errors, and what compilation leaves out.
import { expect, test } from "vitest";
import { interpret } from "../../test/support/graph-interpreter.ts";
import { addDims, evaluateDim, multiplyDims } from "./dims.ts";
import * as g from "./index.ts";

test("dimensions are equal exactly when they are the same polynomial", () => {
  expect(multiplyDims("length", multiplyDims("batch", 2))).toBe(multiplyDims(2, multiplyDims("batch", "length")));
  expect(addDims("b", addDims("a", "b"))).toBe("a+2*b");
  expect(multiplyDims(addDims("a", 1), addDims("a", 1))).toBe("1+2*a+a*a");
  expect(evaluateDim("1+2*a+a*a", new Map([["a", 4]]))).toBe(25);
});

test("operands that do not fit are refused where they are combined", () => {
  const x = g.input("x", ["n", 3]);
  expect(() => g.add(x, g.input("y", ["m", 3]))).toThrow("add cannot combine f32[n, 3] with f32[m, 3]");
  expect(() => g.matmul(x, x)).toThrow("matmul cannot multiply");
  expect(() => g.reshape(x, ["n", 4])).toThrow("cannot be reshaped");
});

test("feeds that contradict each other are refused, with the sizes seen", async () => {
  const sum = g.add(g.input("x", ["n"]), g.input("y", ["n"]));
  const session = await g.Session.compile({ sum }, 1);
  const three = g.value(new Float32Array(3), [3]);
  await expect(session.run({ x: three })).rejects.toThrow('Input "y" was given no value');
  await expect(session.run({ x: three, y: g.value(new Float32Array(4), [4]) })).rejects.toThrow(
    "was fed [4], with n=3",
  );
  await session.release();
});

test("equal nodes are computed once, unused ones never", () => {
  const x = g.input("x", ["n", "n"]);
  const once = g.toOnnx({ y: g.exp(g.matmul(x, x)) });
  const twice = g.toOnnx({ y: g.exp(g.matmul(x, x)), z: g.exp(g.matmul(x, x)) });
  g.sigmoid(x);
  expect(count(once, "Gemm")).toBe(count(twice, "Gemm"));
  expect(count(twice, "Sigmoid")).toBe(0);
});

test("a gradient through an op that has none is refused, unless it is stopped", () => {
  const x = g.input("x", ["blocks", 2]);
  const { stacked } = g.scan([], [x], (_, [block]) => ({ carried: [], stacked: [g.exp(block!)] }));
  expect(() => g.gradients(g.sum(stacked[0]!), [x])).toThrow('"scan" has no gradient');
  const stopped = g.add(g.sum(g.multiply(x, x)), g.sum(g.stopGradient(stacked[0]!)));
  const [gradient] = g.gradients(stopped, [x]);
  expect(interpret({ d: gradient! }, { x: { shape: [1, 2], data: [3, 4] } }).d.data).toEqual(Float64Array.of(6, 8));
});

function count(model: Uint8Array, text: string): number {
  return Buffer.from(model).toString("latin1").split(text).length - 1;
}
