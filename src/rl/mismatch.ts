// Corrects for a sampler that is not the trainer: servers that sample with other kernels, other precision or a quantised copy give tokens
// other log-probabilities than the weights they train. A forward pass before the update says which; the loss then goes by the trainer's,
// and each token, or answer, weighs as the trainer would have sampled it (truncated importance sampling; sequences masked).
import type { TrainingClient } from "../client/index.ts";
import { tensor } from "../protocol/index.ts";
import type { UpdateRule } from "../runs/events.ts";
import { lossDatum, ownValues, RolloutError, type TrainingExample } from "./datums.ts";
import { eachMasked, masked } from "./mask.ts";

type Rule = Pick<UpdateRule, "mismatch" | "mismatchCap" | "lossFn">;

/** The weight of each of an answer's tokens: its own ratio of trainer and sampler, capped; or that of the whole answer, 0 where it is beyond the cap. */
function mismatchWeights(
  trainer: Float32Array,
  sampler: Float32Array,
  { mismatch, mismatchCap: cap }: Rule,
): Float32Array {
  if (mismatch === "token_cap")
    return trainer.map((logprob, place) => Math.min(cap, Math.exp(logprob - sampler[place]!)));
  const ratio = Math.exp(trainer.reduce((sum, logprob, place) => sum + logprob - sampler[place]!, 0));
  return new Float32Array(trainer.length).fill(ratio <= cap ? ratio : 0);
}

/** The examples as the trainer sees them, and how much of them the correction touched. */
export async function correctMismatch(
  training: TrainingClient,
  examples: readonly TrainingExample[],
  rule: Rule,
  signal?: AbortSignal,
): Promise<{ examples: TrainingExample[]; figures: Record<string, number> }> {
  const datums = examples.map((example) => lossDatum(example, rule.lossFn));
  const { lossFnOutputs } = await training.forward(datums, rule.lossFn, { signal });
  let tokens = 0;
  let touched = 0;
  const corrected = examples.map((example, index) => {
    const whole = lossFnOutputs[index]?.["logprobs"]?.data;
    if (!(whole instanceof Float32Array))
      throw new RolloutError(
        "rl/no-trainer-logprobs",
        `The server gives no log-probabilities in a forward pass, so mismatch=${rule.mismatch} has nothing to go by. Set mismatch=none.`,
      );
    const trainer = masked(whole, example.mask);
    const weights = mismatchWeights(trainer, ownValues(example, "logprobs"), rule);
    const { datum, mask } = example;
    const logprobs = Float32Array.from(datum.lossFnInputs["logprobs"]!.data as Float32Array);
    const advantages = Float32Array.from(datum.lossFnInputs["advantages"]!.data as Float32Array);
    eachMasked(mask, (position, place) => {
      logprobs[position] = trainer[place]!;
      advantages[position]! *= weights[place]!;
      if (weights[place] === 0 || weights[place] === rule.mismatchCap) touched++;
    });
    tokens += trainer.length;
    const inputs = { ...datum.lossFnInputs, logprobs: tensor(logprobs), advantages: tensor(advantages) };
    return { mask, datum: { ...datum, lossFnInputs: inputs } };
  });
  return { examples: corrected, figures: { "optim/mismatch_frac": touched / Math.max(1, tokens) } };
}
