// The losses a Tinker client can ask for: what each one needs, how its inputs are checked, and its formula as a graph. Every
// loss is a sum over positions; gradients are derived from the formula. Notation: `lp` is the learner's log-probability of a
// target, `q` the sampler's, A the advantage, r = exp(lp - q).
import {
  add,
  exp,
  input,
  maximum,
  minimum,
  multiply,
  negate,
  type Shape,
  scalar,
  stopGradient,
  subtract,
  type Tensor,
} from "../graph/index.ts";
import type { LossName } from "./engine.ts";

export interface Loss {
  /** Float inputs beside `target_tokens`, one number per target. */
  inputs: readonly string[];
  /** Settings and their defaults. */
  config: Readonly<Record<string, number>>;
  /** True: two positions with the same target under the same history can be added up input by input. */
  linear: boolean;
  /** True where these inputs (in the order of `inputs`) put no gradient on a position. */
  vanishes(values: readonly number[]): boolean;
  /** The loss per target. */
  formula(lp: Tensor, inputs: Readonly<Record<string, Tensor>>, config: Readonly<Record<string, Tensor>>): Tensor;
}

const ratio = (lp: Tensor, q: Tensor): Tensor => exp(subtract(lp, q));
const clip = (x: Tensor, low: Tensor, high: Tensor): Tensor => minimum(maximum(x, low), high);
const offPolicy = { inputs: ["logprobs", "advantages"], linear: false } as const;
const noAdvantage = ([, advantage]: readonly number[]): boolean => advantage === 0;

export const losses: Readonly<Record<LossName, Loss>> = {
  /** Σ -w·lp, for weights of any sign. */
  cross_entropy: {
    inputs: ["weights"],
    config: {},
    linear: true,
    vanishes: ([weight]) => weight === 0,
    formula: (lp, { weights }) => negate(multiply(weights!, lp)),
  },
  /** -Σ r·A */
  importance_sampling: {
    ...offPolicy,
    config: {},
    vanishes: noAdvantage,
    formula: (lp, { logprobs, advantages }) => negate(multiply(ratio(lp, logprobs!), advantages!)),
  },
  /** -Σ min(r·A, clip(r, low, high)·A) */
  ppo: {
    ...offPolicy,
    config: { clip_low_threshold: 0.8, clip_high_threshold: 1.2 },
    vanishes: noAdvantage,
    formula: (lp, { logprobs, advantages }, { clip_low_threshold, clip_high_threshold }) => {
      const r = ratio(lp, logprobs!);
      const clipped = clip(r, clip_low_threshold!, clip_high_threshold!);
      return negate(minimum(multiply(r, advantages!), multiply(clipped, advantages!)));
    },
  },
  /** -Σ clip(r, low, high)·lp·A, with no gradient through the clipped ratio. */
  cispo: {
    ...offPolicy,
    config: { clip_low_threshold: 0, clip_high_threshold: 4 },
    vanishes: noAdvantage,
    formula: (lp, { logprobs, advantages }, { clip_low_threshold, clip_high_threshold }) => {
      const clipped = stopGradient(clip(ratio(lp, logprobs!), clip_low_threshold!, clip_high_threshold!));
      return negate(multiply(multiply(clipped, advantages!), lp));
    },
  },
  /** -Σ (lp·A - ½·beta·(lp - q)²). Positions without an advantage are still pulled towards the sampler. */
  dro: {
    ...offPolicy,
    config: { beta: 0.05 },
    vanishes: () => false,
    formula: (lp, { logprobs, advantages }, { beta }) => {
      const drift = subtract(lp, logprobs!);
      return add(negate(multiply(lp, advantages!)), multiply(multiply(beta!, scalar(0.5)), multiply(drift, drift)));
    },
  },
};

/** A loss's settings as graph inputs. */
export function configInputs(loss: Loss): Record<string, Tensor> {
  return Object.fromEntries(Object.keys(loss.config).map((name) => [name, input(`config.${name}`, [])]));
}

/** A loss's per-target inputs as graph inputs of the given shape. */
export function lossInputs(loss: Loss, shape: Shape): Tensor[] {
  return loss.inputs.map((name) => input(`loss.${name}`, shape));
}
