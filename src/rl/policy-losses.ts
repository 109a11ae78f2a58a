// The loss of one answer from log-probabilities that are known: what a server would answer, computed here.
import { type LossDeclaration, lossInputsOf, lossTable, policyLossNames } from "../protocol/losses.ts";

/** The tokens of one answer: the learner's and the sampler's log-probabilities, and the advantages. */
interface AnswerTokens {
  trained: Float32Array;
  sampled: Float32Array;
  advantages: Float32Array;
}

/** The loss summed over an answer; undefined for a loss that is not known, or that counts tokens of the prompt too. */
export function answerLoss(
  name: string,
  settings: Readonly<Record<string, number>>,
  { trained, sampled, advantages }: AnswerTokens,
): number | undefined {
  const known = policyLossNames.find((policyLoss) => policyLoss === name && name !== "dro");
  if (known === undefined) return undefined;
  const loss: LossDeclaration = lossTable[known];
  const config = { ...loss.config, ...settings };
  // Every token of an answer counts towards its ratio.
  const inputs: Record<string, Float32Array> = {
    logprobs: sampled,
    advantages,
    sequence_ratio_mask: new Float32Array(trained.length).fill(1),
  };
  if (loss.sequence) inputs[loss.sequence.input] = loss.sequence.derive(trained, inputs);
  const columns = lossInputsOf(known).map((input) => inputs[input]!);
  return trained.reduce(
    (sum, lp, index) =>
      sum +
      loss.term(
        lp,
        columns.map((column) => column[index]!),
        config,
      ).value,
    0,
  );
}
