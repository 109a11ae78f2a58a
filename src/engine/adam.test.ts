// Adam against steps worked out by hand.
import { expect, test } from "vitest";
import { type AdamParameter, adamStep, clipFactor, gradientNorm } from "./adam.ts";
import type { AdamSettings } from "./engine.ts";

const settings: AdamSettings = {
  learningRate: 0.1,
  beta1: 0.9,
  beta2: 0.95,
  epsilon: 1e-12,
  weightDecay: 0,
  gradClipNorm: 0,
};

function parameter(value: number, gradient: number): AdamParameter {
  return {
    value: Float32Array.of(value),
    gradient: Float32Array.of(gradient),
    firstMoment: new Float32Array(1),
    secondMoment: new Float32Array(1),
  };
}

test("the first step moves by the learning rate against the gradient's sign", () => {
  const p = parameter(1, -0.003);
  adamStep([p], 1, 1, settings);
  expect(p.value[0]).toBeCloseTo(1.1, 6);
  expect(p.firstMoment[0]).toBeCloseTo(-0.0003, 9);
  expect(p.secondMoment[0]).toBeCloseTo(0.05 * 9e-6, 12);
});

test("the second step corrects the bias of both moments", () => {
  const p = parameter(1, 2);
  adamStep([p], 1, 1, settings);
  p.gradient[0] = -1;
  adamStep([p], 2, 1, settings);
  // m = 0.9·0.2 - 0.1 = 0.08, v = 0.95·0.2 + 0.05 = 0.24; m̂ = 0.08/0.19, v̂ = 0.24/0.0975.
  expect(p.value[0]).toBeCloseTo(0.9 - (0.1 * (0.08 / 0.19)) / Math.sqrt(0.24 / 0.0975), 6);
});

test("weight decay shrinks the value by itself, apart from the gradient", () => {
  const p = parameter(2, 0);
  adamStep([p], 1, 1, { ...settings, weightDecay: 0.5 });
  expect(p.value[0]).toBeCloseTo(1.9, 6);
});

test("epsilon is added to the root of the corrected second moment", () => {
  const p = parameter(0, 1);
  adamStep([p], 1, 1, { ...settings, epsilon: 1 });
  expect(p.value[0]).toBeCloseTo(-0.05, 6);
});

test("clipping scales the whole gradient to the limit, and only beyond it", () => {
  const parameters = [parameter(0, 3), parameter(0, -4)];
  expect(gradientNorm(parameters)).toBe(5);
  expect(clipFactor(5, 0)).toBe(1);
  expect(clipFactor(5, 6)).toBe(1);
  expect(clipFactor(5, 2.5)).toBe(0.5);
  adamStep(parameters, 1, 0.5, { ...settings, beta1: 0, beta2: 0, epsilon: 1 });
  expect(parameters[0]!.value[0]).toBeCloseTo((-0.1 * 1.5) / 2.5, 6);
  expect(parameters[1]!.value[0]).toBeCloseTo((0.1 * 2) / 3, 6);
});
