// What the losses of the protocol's table compute. Each is a sum over positions, given twice: as a graph, whose gradient is derived,
// and in plain numbers with its derivative by lp. Notation: `lp` is the learner's log-probability of a target, `q` the sampler's, A
// the advantage, r = exp(lp - q).
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
import { type LossName, lossTable } from "../protocol/losses.ts";

/** The loss of one position and its derivative by lp. */
export interface LossTerm {
  value: number;
  slope: number;
}

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
  term(lp: number, inputs: readonly number[], config: Readonly<Record<string, number>>): LossTerm;
  /**
   * For a loss that looks at its whole sequence: turns the input of this name into what the formula takes, given the learner's
   * log-probabilities and all inputs. The log-probabilities cost a forward pass of their own.
   */
  sequence?: { input: string; derive(lp: Float32Array, inputs: Readonly<Record<string, Float32Array>>): Float32Array };
}

export interface Loss extends LossMath {
  /** Float inputs beside `target_tokens`, one number per target. */
  inputs: readonly string[];
  config: Readonly<Record<string, number>>;
}

const ratio = (lp: Tensor, q: Tensor): Tensor => exp(subtract(lp, q));
const clip = (x: Tensor, low: Tensor, high: Tensor): Tensor => minimum(maximum(x, low), high);
const clamp = (x: number, low = 0, high = 0): number => Math.min(Math.max(x, low), high);
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

function clippedTerm(r: number, advantage: number, config: Readonly<Record<string, number>>): LossTerm {
  const free = r * advantage;
  const bounded = clamp(r, config["clip_low_threshold"], config["clip_high_threshold"]) * advantage;
  return free <= bounded ? { value: -free, slope: -free } : { value: -bounded, slope: 0 };
}

const formulas: Readonly<Record<LossName, LossMath>> = {
  cross_entropy: {
    adds: 0,
    vanishes: ([weight]) => weight === 0,
    formula: (lp, { weights }) => negate(multiply(weights!, lp)),
    term: (lp, [weight]) => ({ value: -weight! * lp, slope: -weight! }),
  },
  importance_sampling: {
    adds: 1,
    vanishes: noAdvantage,
    formula: (lp, { logprobs, advantages }) => negate(multiply(ratio(lp, logprobs!), advantages!)),
    term: (lp, [q, advantage]) => ({ value: -Math.exp(lp - q!) * advantage!, slope: -Math.exp(lp - q!) * advantage! }),
  },
  ppo: {
    vanishes: noAdvantage,
    formula: (lp, { logprobs, advantages }, config) => clippedSurrogate(ratio(lp, logprobs!), advantages!, config),
    term: (lp, [q, advantage], config) => clippedTerm(Math.exp(lp - q!), advantage!, config),
  },
  cispo: {
    adds: 1,
    vanishes: noAdvantage,
    formula: (lp, { logprobs, advantages }, { clip_low_threshold, clip_high_threshold }) => {
      const clipped = stopGradient(clip(ratio(lp, logprobs!), clip_low_threshold!, clip_high_threshold!));
      return negate(multiply(multiply(clipped, advantages!), lp));
    },
    term(lp, [q, advantage], config) {
      const clipped = clamp(Math.exp(lp - q!), config["clip_low_threshold"], config["clip_high_threshold"]);
      return { value: -clipped * lp * advantage!, slope: -clipped * advantage! };
    },
  },
  dro: {
    // Positions without an advantage are still pulled towards the sampler.
    vanishes: () => false,
    formula: (lp, { logprobs, advantages }, { beta }) => {
      const drift = subtract(lp, logprobs!);
      return add(negate(multiply(lp, advantages!)), multiply(multiply(beta!, scalar(0.5)), multiply(drift, drift)));
    },
    term(lp, [q, advantage], { beta }) {
      const drift = lp - q!;
      return { value: -(lp * advantage! - 0.5 * beta! * drift * drift), slope: -(advantage! - beta! * drift) };
    },
  },
  gspo: {
    vanishes: noAdvantage,
    // The sequence's ratio, whose own gradient is that of this position's lp alone.
    formula: (lp, { advantages, sequence_ratio_mask: sequenceRatio }, config) =>
      clippedSurrogate(multiply(sequenceRatio!, exp(subtract(lp, stopGradient(lp)))), advantages!, config),
    term: (_lp, [, advantage, sequenceRatio], config) => clippedTerm(sequenceRatio!, advantage!, config),
    sequence: {
      input: "sequence_ratio_mask",
      derive(lp, { logprobs, sequence_ratio_mask: mask }) {
        let total = 0;
        let count = 0;
        for (let index = 0; index < lp.length; index++) {
          if (mask![index] === 0) continue;
          total += lp[index]! - logprobs![index]!;
          count++;
        }
        return new Float32Array(lp.length).fill(count === 0 ? 1 : Math.exp(total / count));
      },
    },
  },
};

const lossOf = (name: LossName): Loss => ({
  ...formulas[name],
  inputs: Object.keys(lossTable[name].inputs).filter((input) => input !== "target_tokens"),
  config: lossTable[name].config,
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
