// The losses of the protocol, each declared once: its inputs, its settings and their defaults. The server checks requests by this
// table, clients read dtypes from it, the training config takes its names, and the engine gives every row its formula.

export interface LossInput {
  dtype: "int64" | "float32";
  /** What every position has when the input is left out; absent: it must be given. */
  fill?: number;
}

export interface LossDeclaration {
  /** One number per position each (or per target, where soft targets are taken). */
  inputs: Readonly<Record<string, LossInput>>;
  /** Settings and their defaults. Clip thresholds are ratios, not distances from one. */
  config: Readonly<Record<string, number>>;
  /** True: targets and weights may have K columns, which are added up. */
  softTargets: boolean;
  /** True: a position's term depends on an advantage and on the sampler's log-probability. */
  policy: boolean;
  /** With lp the learner's log-probability of the target, q the sampler's, A the advantage, r = exp(lp - q); summed over positions. */
  formula: string;
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
    formula: "-weight·lp",
  },
  importance_sampling: { ...policy, config: {}, formula: "-r·A" },
  ppo: {
    ...policy,
    config: { clip_low_threshold: 0.8, clip_high_threshold: 1.2 },
    formula: "-min(r·A, clip(r, low, high)·A)",
  },
  cispo: {
    ...policy,
    config: { clip_low_threshold: 0, clip_high_threshold: 4 },
    formula: "-clip(r, low, high)·lp·A, no gradient through the ratio",
  },
  dro: { ...policy, config: { beta: 0.05 }, formula: "-(lp·A - beta/2·(lp - q)²)" },
  gspo: {
    ...policy,
    inputs: { ...policy.inputs, sequence_ratio_mask: { dtype: "float32" } },
    config: { clip_low_threshold: 0.8, clip_high_threshold: 1.2 },
    formula:
      "ppo's, with r of the whole sequence: exp(mean of lp - q where the mask is not 0), no gradient through the mean",
  },
} as const satisfies Readonly<Record<string, LossDeclaration>>;

/** A loss that servers know. */
export type LossName = keyof typeof lossTable;
export const lossNames = Object.keys(lossTable) as LossName[];
/** Those that train a policy: the choices of `./whet train loss_fn=`. */
export type PolicyLossName = {
  [Name in LossName]: (typeof lossTable)[Name]["policy"] extends true ? Name : never;
}[LossName];
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
