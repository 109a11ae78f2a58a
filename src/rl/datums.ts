// Completions become training data: tokens shifted by one, with the sampler's logprobs and the advantage on the completion alone.
import { WhetstoneError } from "../core/errors.ts";
import { type Datum, type LossName, lossTable, tensor, textInput } from "../protocol/index.ts";

/** A sample that cannot be turned into training data. */
export class RolloutError extends WhetstoneError {}

/** A datum, and which of its positions are the model's own tokens. */
export interface TrainingExample {
  datum: Datum;
  /** Positions before this one predict the prompt; from here on, the completion. */
  firstAction: number;
}

/** The datum with all that the loss takes: for one that looks at whole sequences, which positions are the model's own. */
export function lossDatum({ datum, firstAction }: TrainingExample, loss: string): Datum {
  if (!Object.hasOwn(lossTable, loss) || !("sequence_ratio_mask" in lossTable[loss as LossName].inputs)) return datum;
  const length = datum.lossFnInputs["target_tokens"]!.data.length;
  const mask = tensor(new Float32Array(length).fill(1, firstAction));
  return { ...datum, lossFnInputs: { ...datum.lossFnInputs, sequence_ratio_mask: mask } };
}

/**
 * Builds one datum. `tokens` is the prompt and then the completion, `observationLength` the prompt's length, `logprobs` one per completion
 * token. Position i predicts token i + 1, so the first completion token is predicted at observationLength − 1.
 */
export function makeDatum(
  tokens: ArrayLike<number>,
  logprobs: ArrayLike<number>,
  observationLength: number,
  advantage: number,
): TrainingExample {
  const completion = tokens.length - observationLength;
  if (observationLength < 1 || completion < 1) {
    throw new RolloutError(
      "rl/empty-sequence",
      `A datum needs a prompt and a completion, got ${observationLength} and ${completion} tokens. Leave such samples out of training.`,
    );
  }
  if (logprobs.length !== completion) {
    throw new RolloutError(
      "rl/logprob-count",
      `The sampler returned ${logprobs.length} logprobs for ${completion} tokens. The server's sampling is broken; update it.`,
    );
  }
  const length = tokens.length - 1;
  const firstAction = observationLength - 1;
  const all = Int32Array.from(tokens);
  const logprobsOfTargets = new Float32Array(length);
  logprobsOfTargets.set(logprobs, firstAction);
  return {
    datum: {
      modelInput: textInput(all.subarray(0, length)),
      lossFnInputs: {
        target_tokens: tensor(all.subarray(1)),
        logprobs: tensor(logprobsOfTargets),
        advantages: tensor(new Float32Array(length).fill(advantage, firstAction)),
      },
    },
    firstAction,
  };
}
