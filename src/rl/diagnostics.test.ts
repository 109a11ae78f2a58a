import { expect, test } from "vitest";
import { PolicyDrift } from "./diagnostics.ts";

test("drift between sampler and trainer, by hand", () => {
  const drift = new PolicyDrift();
  drift.add([-0.5, -1], [-0.6, -0.9]);
  drift.add([-2], [-2]);
  const metrics = drift.metrics();
  expect(metrics["optim/kl_sample_train_v1"]).toBeCloseTo(0, 12);
  expect(metrics["optim/kl_sample_train_v2"]).toBeCloseTo((0.5 * 0.02) / 3, 12);
  expect(metrics["optim/entropy"]).toBeCloseTo(3.5 / 3, 12);
  expect(metrics["optim/ratio_mean"]).toBeCloseTo((Math.exp(-0.1) + Math.exp(0.1) + 1) / 3, 12);
  expect(metrics["optim/kl_k3"]).toBeCloseTo(0.003336, 6);
  expect(metrics["optim/ratio_frac_outside_0.8_1.2"]).toBe(0);
  expect(metrics["optim/effective_sample_size"]).toBeLessThanOrEqual(1);
});

test("no tokens, no numbers", () => expect(new PolicyDrift().metrics()).toEqual({}));
