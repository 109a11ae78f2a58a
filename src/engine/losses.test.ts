// Each loss against numbers worked out by hand, value and derivative.
import { describe, expect, test } from "vitest";
import { interpret } from "../../test/support/graph-interpreter.ts";
import { Random } from "../core/random.ts";
import { gradients, input, sum } from "../graph/index.ts";
import type { LossName } from "../protocol/losses.ts";
import { configInputs, losses } from "./losses.ts";

/** The loss of one position and its derivative by the log-probability. */
function evaluate(
  name: LossName,
  lp: number,
  values: number[],
  settings: Record<string, number> = {},
): [number, number] {
  const loss = losses[name];
  const logprob = input("lp", [1]);
  const inputs = Object.fromEntries(loss.inputs.map((key) => [key, input(key, [1])]));
  const total = sum(loss.formula(logprob, inputs, configInputs(loss)));
  const feeds: Record<string, { shape: number[]; data: number[] }> = { lp: { shape: [1], data: [lp] } };
  for (const [i, key] of loss.inputs.entries()) feeds[key] = { shape: [1], data: [values[i]!] };
  for (const [key, value] of Object.entries({ ...loss.config, ...settings }))
    feeds[`config.${key}`] = { shape: [], data: [value] };
  const result = interpret({ loss: total, slope: gradients(total, [logprob])[0]! }, feeds);
  return [result.loss.data[0]!, result.slope.data[0]!];
}

function expectPair(actual: [number, number], loss: number, slope: number): void {
  expect(actual[0]).toBeCloseTo(loss, 6);
  expect(actual[1]).toBeCloseTo(slope, 6);
}

describe("losses", () => {
  // r = exp(lp - q): exp(-1 - -1.5) = 1.6487212707, exp(-2 - -1.5) = 0.6065306597.
  test("cross_entropy is -w·lp, for weights of any sign", () => {
    expectPair(evaluate("cross_entropy", -1.25, [2]), 2.5, -2);
    expectPair(evaluate("cross_entropy", -1.25, [-2]), -2.5, 2);
  });

  test("importance_sampling is -r·A", () => {
    expectPair(evaluate("importance_sampling", -1, [-1.5, 2]), -3.2974425414, -3.2974425414);
    expectPair(evaluate("importance_sampling", -2, [-1.5, -1]), 0.6065306597, 0.6065306597);
  });

  test("ppo stops the gradient where the ratio left the interval in the advantage's direction", () => {
    expectPair(evaluate("ppo", -1, [-1.5, 2]), -2.4, 0);
    expectPair(evaluate("ppo", -2, [-1.5, -1]), 0.8, 0);
    expectPair(evaluate("ppo", -2, [-1.5, 1]), -0.6065306597, -0.6065306597);
    expectPair(evaluate("ppo", -1, [-1.5, -1]), 1.6487212707, 1.6487212707);
    expectPair(evaluate("ppo", -1.5, [-1.5, 3]), -3, -3);
    expectPair(evaluate("ppo", -1, [-1.5, 2], { clip_high_threshold: 1.5 }), -3, 0);
  });

  test("cispo clips the ratio and sends no gradient through it", () => {
    expectPair(evaluate("cispo", -1, [-1.5, 2]), 3.2974425414, -3.2974425414);
    expectPair(evaluate("cispo", -1, [-1.5, 2], { clip_high_threshold: 1.5 }), 3, -3);
    expectPair(evaluate("cispo", -2, [-1.5, 2], { clip_low_threshold: 0.8 }), 3.2, -1.6);
  });

  test("dro adds the squared drift, also where the advantage is zero", () => {
    expectPair(evaluate("dro", -1, [-1.5, 2], { beta: 0.1 }), 2.0125, -1.95);
    expectPair(evaluate("dro", -1, [-1.5, 0], { beta: 0.1 }), 0.0125, 0.05);
  });

  test("gspo weighs every position by its sequence's ratio, and clips that", () => {
    const { derive } = losses.gspo.sequence!;
    const logprobs = Float32Array.of(-0.5, -1);
    const ratios = derive(Float32Array.of(-1, -0.5), { logprobs, sequence_ratio_mask: Float32Array.of(0, 1) });
    expect([...ratios].map((value) => value.toFixed(5))).toEqual(["1.64872", "1.64872"]);
    // A = 1: clipped at 1.2, no gradient. A = -1: the ratio counts in full.
    expectPair(evaluate("gspo", -1, [-0.5, 1, ratios[0]!]), -1.2, 0);
    expectPair(evaluate("gspo", -0.5, [-1, -1, ratios[1]!]), 1.6487212181, 1.6487212181);
  });

  test.each(Object.keys(losses) as LossName[])("%s in plain numbers is its graph", (name) => {
    const random = new Random("losses", name);
    const loss = losses[name];
    for (let round = 0; round < 50; round++) {
      const lp = -2 * random.float();
      const values = loss.inputs.map((input) => (input === "logprobs" ? -2 * random.float() : random.normal()));
      if (name === "gspo") values[2] = Math.exp(random.normal());
      const { value, slope } = loss.term(lp, values, loss.config);
      const [graphValue, graphSlope] = evaluate(name, lp, values);
      expect(graphValue).toBeCloseTo(value, 5);
      expect(graphSlope).toBeCloseTo(slope, 5);
    }
  });
});
