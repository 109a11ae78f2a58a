// The losses of the protocol, each declared once: its inputs, its settings and their defaults, and what it is in plain numbers. The server
// checks requests by this table, clients read dtypes from it, the training config takes its names, a replay computes with it, and the
// engine gives every row its formula as a graph.

export interface LossInput {
  dtype: "int64" | "float32";
  /** What every position has when the input is left out; absent: it must be given. */
  fill?: number;
}

/** The loss of one position and its derivative by the learner's log-probability. */
export interface LossTerm {
  value: number;
  slope: number;
}

type Settings = Readonly<Record<string, number>>;

export interface LossDeclaration {
  /** One number per position each (or per target, where soft targets are taken). */
  inputs: Readonly<Record<string, LossInput>>;
  /** Settings and their defaults. Clip thresholds are ratios, not distances from one. */
  config: Settings;
  /** True: targets and weights may have K columns, which are added up. */
  softTargets: boolean;
  /** True: a position's term depends on an advantage and on the sampler's log-probability. */
  policy: boolean;
  /** The loss of a position, from the learner's log-probability `lp` and the inputs beside the target, in their order (`q`: the sampler's). */
  term(lp: number, inputs: readonly number[], config: Settings): LossTerm;
  /**
   * For a loss that looks at its whole sequence: turns the input of this name into what the term takes, given the learner's
   * log-probabilities and all inputs. A server pays for those with a forward pass of its own.
   */
  sequence?: { input: string; derive(lp: Float32Array, inputs: Readonly<Record<string, Float32Array>>): Float32Array };
}

const clamp = (x: number, { clip_low_threshold: low = 0, clip_high_threshold: high = 0 }: Settings): number =>
  Math.min(Math.max(x, low), high);

/** -min(r·A, clip(r, low, high)·A), with no gradient where the clipped side is smaller. */
function clippedTerm(r: number, advantage: number, config: Settings): LossTerm {
  const free = r * advantage;
  const bounded = clamp(r, config) * advantage;
  return free <= bounded ? { value: -free, slope: -free } : { value: -bounded, slope: 0 };
}

const target = { target_tokens: { dtype: "int64" } } as const;
const policy = {
  inputs: { ...target, logprobs: { dtype: "float32" }, advantages: { dtype: "float32" } },
  softTargets: false,
  policy: true,
} as const;

export const lossTable = {
  cross_entropy: {
    inputs: { ...target, weights: { dtype: "float32", fill: 1 } },
    config: {},
    softTargets: true,
    policy: false,
    term: (lp, [weight]) => ({ value: -weight! * lp, slope: -weight! }),
  },
  importance_sampling: {
    ...policy,
    config: {},
    term: (lp, [q, advantage]) => ({ value: -Math.exp(lp - q!) * advantage!, slope: -Math.exp(lp - q!) * advantage! }),
  },
  ppo: {
    ...policy,
    config: { clip_low_threshold: 0.8, clip_high_threshold: 1.2 },
    term: (lp, [q, advantage], config) => clippedTerm(Math.exp(lp - q!), advantage!, config),
  },
  cispo: {
    ...policy,
    config: { clip_low_threshold: 0, clip_high_threshold: 4 },
    // No gradient goes through the ratio.
    term(lp, [q, advantage], config) {
      const clipped = clamp(Math.exp(lp - q!), config);
      return { value: -clipped * lp * advantage!, slope: -clipped * advantage! };
    },
  },
  dro: {
    ...policy,
    config: { beta: 0.05 },
    term(lp, [q, advantage], { beta }) {
      const drift = lp - q!;
      return { value: -(lp * advantage! - 0.5 * beta! * drift * drift), slope: -(advantage! - beta! * drift) };
    },
  },
  gspo: {
    ...policy,
    inputs: { ...policy.inputs, sequence_ratio_mask: { dtype: "float32" } },
    config: { clip_low_threshold: 0.8, clip_high_threshold: 1.2 },
    // As ppo with one ratio for the whole sequence, exp(mean of lp - q where the mask is not 0); no gradient goes through the mean.
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
} as const satisfies Readonly<Record<string, LossDeclaration>>;

/** A loss that servers know. */
export type LossName = keyof typeof lossTable;
export const lossNames = Object.keys(lossTable) as LossName[];
/** Those that train a policy: the choices of `./whet train loss_fn=`. */
export type PolicyLossName = {
  [Name in LossName]: (typeof lossTable)[Name]["policy"] extends true ? Name : never;
}[LossName];
/** The float inputs of a loss beside its targets, in their order. */
export const lossInputsOf = (name: LossName): string[] =>
  Object.keys(lossTable[name].inputs).filter((input) => input !== "target_tokens");
export const policyLossNames = lossNames.filter((name): name is PolicyLossName => lossTable[name].policy);

/** Names of losses that clients may ask for and that only another server has, and why not this one. */
export const foreignLosses: Readonly<Record<string, string>> = {
  stable_reinforce: "its definition is not public",
  custom: "custom losses run in the client; leave the server's flag custom_loss_server_side off",
};

/** The dtype of a plain list under one of the protocol's input names. */
export const inputDtypes: Readonly<Record<string, LossInput["dtype"]>> = {
  ...Object.fromEntries(
    lossNames.flatMap((name) =>
      Object.entries<LossInput>(lossTable[name].inputs).map(([input, { dtype }]) => [input, dtype] as const),
    ),
  ),
  // Taken per position by some servers.
  clip_low_threshold: "float32",
  clip_high_threshold: "float32",
};
