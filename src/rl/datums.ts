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

/** One sampled answer, and how much better it was than its siblings. */
export interface SampledAnswer {
  /** Token ids of the prompt. */
  prompt: ArrayLike<number>;
  /** Token ids of the answer. */
  completion: ArrayLike<number>;
  /** The sampler's log-probability of each token of the answer. */
  logprobs: ArrayLike<number>;
  /** Of the whole answer. */
  advantage: number;
}

/** An answer as `forwardBackward` takes it: tokens shifted by one, the advantage on the answer alone. `loss`: the one it is for. */
export function toDatum(
  { prompt, completion, logprobs, advantage }: SampledAnswer,
  loss = "importance_sampling",
): Datum {
  const sequence = joinSequence(prompt, completion, logprobs);
  const advantages = advantageArray(prompt.length, sequence.tokens.length, advantage);
  return lossDatum(makeDatum(sequence, prompt.length, advantages), loss);
}

/** A sampled sequence as training takes it: what a datum is made of without a copy. */
export interface Sequence {
  /** The prompt and then the completion. */
  tokens: Int32Array;
  /** The sampler's log-probability of each token but the first, 0 within the prompt. */
  logprobs: Float32Array;
}

/** Puts a completion behind its prompt. `logprobs` has one number per completion token. */
export function joinSequence(
  prompt: ArrayLike<number>,
  completion: ArrayLike<number>,
  logprobs: ArrayLike<number>,
): Sequence {
  if (logprobs.length !== completion.length) {
    throw new RolloutError(
      "rl/logprob-count",
      `The sampler returned ${logprobs.length} logprobs for ${completion.length} tokens. The server's sampling is broken; update it.`,
    );
  }
  const tokens = new Int32Array(prompt.length + completion.length);
  tokens.set(prompt);
  tokens.set(completion, prompt.length);
  const all = new Float32Array(tokens.length);
  all.set(logprobs, prompt.length);
  return { tokens, logprobs: all.subarray(1) };
}

/** An advantage for every position of a sequence as long as `tokens`: 0 where the prompt is predicted. */
export function advantageArray(promptLength: number, tokens: number, advantage: number): Float32Array {
  return new Float32Array(Math.max(0, tokens - 1)).fill(advantage, promptLength - 1);
}

/**
 * Builds one datum. Position i predicts token i + 1, so the first completion token is predicted at position promptLength − 1.
 * `advantages` may be longer than the sequence: completions of one prompt with the same advantage share theirs.
 */
export function makeDatum(
  { tokens, logprobs }: Sequence,
  promptLength: number,
  advantages: Float32Array,
): TrainingExample {
  if (promptLength < 1 || tokens.length <= promptLength) {
    throw new RolloutError(
      "rl/empty-sequence",
      `A datum needs a prompt and a completion, got ${promptLength} and ${tokens.length - promptLength} tokens. Leave such samples out of training.`,
    );
  }
  const length = tokens.length - 1;
  return {
    datum: {
      modelInput: textInput(tokens.subarray(0, length)),
      lossFnInputs: {
        target_tokens: tensor(tokens.subarray(1)),
        logprobs: tensor(logprobs),
        advantages: tensor(advantages.subarray(0, length)),
      },
    },
    firstAction: promptLength - 1,
  };
}
