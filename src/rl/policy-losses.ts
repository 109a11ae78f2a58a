// The losses of policies over one answer's tokens, from log-probabilities that are known: what a server would answer, computed here.
// Formulas and defaults are those of src/protocol/losses.ts.
import { lossTable, type PolicyLossName } from "../protocol/losses.ts";

/** The tokens of one answer: the learner's and the sampler's log-probabilities, and the advantages. */
export interface AnswerTokens {
  trained: ArrayLike<number>;
  sampled: ArrayLike<number>;
  advantages: ArrayLike<number>;
}

type Settings = Readonly<Record<string, number>>;

const clip = (ratio: number, { clip_low_threshold: low = 0, clip_high_threshold: high = 0 }: Settings) =>
  Math.min(high, Math.max(low, ratio));
const clipped = (ratio: number, advantage: number, settings: Settings) =>
  -Math.min(ratio * advantage, clip(ratio, settings) * advantage);

/** A token's term, from its ratio, that of its answer, its advantage and the learner's log-probability. */
const terms: Partial<
  Record<
    PolicyLossName,
    (token: { ratio: number; answerRatio: number; advantage: number; logprob: number }, settings: Settings) => number
  >
> = {
  importance_sampling: ({ ratio, advantage }) => -ratio * advantage,
  ppo: ({ ratio, advantage }, settings) => clipped(ratio, advantage, settings),
  cispo: ({ ratio, advantage, logprob }, settings) => -clip(ratio, settings) * logprob * advantage,
  gspo: ({ answerRatio, advantage }, settings) => clipped(answerRatio, advantage, settings),
};

/** The loss summed over an answer; undefined for a loss that needs more than its tokens, or that is not known. */
export function answerLoss(name: string, config: Settings, answer: AnswerTokens): number | undefined {
  const term = Object.hasOwn(terms, name) ? terms[name as PolicyLossName] : undefined;
  if (!term) return undefined;
  const settings = { ...lossTable[name as PolicyLossName].config, ...config };
  const { trained, sampled, advantages } = answer;
  let drift = 0;
  for (let index = 0; index < trained.length; index++) drift += trained[index]! - sampled[index]!;
  const answerRatio = Math.exp(drift / Math.max(1, trained.length));
  let sum = 0;
  for (let index = 0; index < trained.length; index++) {
    const logprob = trained[index]!;
    const ratio = Math.exp(logprob - sampled[index]!);
    sum += term({ ratio, answerRatio, advantage: advantages[index]!, logprob }, settings);
  }
  return sum;
}
