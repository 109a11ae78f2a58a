// What the losses of the protocol's table compute, as graphs whose gradients are derived. Each is a sum over positions. Notation: `lp` is
// the learner's log-probability of a target, `q` the sampler's, A the advantage, r = exp(lp - q).
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
import { type LossDeclaration, type LossName, lossInputsOf, lossTable } from "../protocol/losses.ts";

interface LossMath {
  /**
   * The input (by its place in the table) that the loss is linear in: positions with the same target under the same history, alike in
   * all other inputs, are one position with the sum of theirs.
   */
  adds?: number;
  /** True where these inputs (in the order of the table) put no gradient on a position. */
  vanishes(values: readonly number[]): boolean;
  /** The loss per target. */
  formula(lp: Tensor, inputs: Readonly<Record<string, Tensor>>, config: Readonly<Record<string, Tensor>>): Tensor;
}

export interface Loss extends LossMath, Pick<LossDeclaration, "config" | "term" | "sequence"> {
  /** Float inputs beside `target_tokens`, one number per target. */
  inputs: readonly string[];
}

const ratio = (lp: Tensor, q: Tensor): Tensor => exp(subtract(lp, q));
const clip = (x: Tensor, low: Tensor, high: Tensor): Tensor => minimum(maximum(x, low), high);
const noAdvantage = ([, advantage]: readonly number[]): boolean => advantage === 0;
type Settings = Readonly<Record<string, Tensor>>;

/** -min(r·A, clip(r, low, high)·A) */
function clippedSurrogate(
  r: Tensor,
  advantages: Tensor,
  { clip_low_threshold, clip_high_threshold }: Settings,
): Tensor {
  const clipped = clip(r, clip_low_threshold!, clip_high_threshold!);
  return negate(minimum(multiply(r, advantages), multiply(clipped, advantages)));
}

const formulas: Readonly<Record<LossName, LossMath>> = {
  cross_entropy: {
    adds: 0,
    vanishes: ([weight]) => weight === 0,
    formula: (lp, { weights }) => negate(multiply(weights!, lp)),
  },
  importance_sampling: {
    adds: 1,
    vanishes: noAdvantage,
    formula: (lp, { logprobs, advantages }) => negate(multiply(ratio(lp, logprobs!), advantages!)),
  },
  ppo: {
    vanishes: noAdvantage,
    formula: (lp, { logprobs, advantages }, config) => clippedSurrogate(ratio(lp, logprobs!), advantages!, config),
  },
  cispo: {
    adds: 1,
    vanishes: noAdvantage,
    formula: (lp, { logprobs, advantages }, { clip_low_threshold, clip_high_threshold }) => {
      const clipped = stopGradient(clip(ratio(lp, logprobs!), clip_low_threshold!, clip_high_threshold!));
      return negate(multiply(multiply(clipped, advantages!), lp));
    },
  },
  dro: {
    // Positions without an advantage are still pulled towards the sampler.
    vanishes: () => false,
    formula: (lp, { logprobs, advantages }, { beta }) => {
      const drift = subtract(lp, logprobs!);
      return add(negate(multiply(lp, advantages!)), multiply(multiply(beta!, scalar(0.5)), multiply(drift, drift)));
    },
  },
  gspo: {
    vanishes: noAdvantage,
    // The sequence's ratio, whose own gradient is that of this position's lp alone.
    formula: (lp, { advantages, sequence_ratio_mask: sequenceRatio }, config) =>
      clippedSurrogate(multiply(sequenceRatio!, exp(subtract(lp, stopGradient(lp)))), advantages!, config),
  },
};

const lossOf = (name: LossName): Loss => ({
  ...(lossTable[name] as LossDeclaration),
  ...formulas[name],
  inputs: lossInputsOf(name),
});

export const losses = Object.fromEntries(
  (Object.keys(formulas) as LossName[]).map((name) => [name, lossOf(name)]),
) as Readonly<Record<LossName, Loss>>;

/** A loss's settings as graph inputs. */
export function configInputs(loss: Loss): Record<string, Tensor> {
  return Object.fromEntries(Object.keys(loss.config).map((name) => [name, input(`config.${name}`, [])]));
}

/** A loss's per-target inputs as graph inputs of the given shape. */
export function lossInputs(loss: Loss, shape: Shape): Tensor[] {
  return loss.inputs.map((name) => input(`loss.${name}`, shape));
}
