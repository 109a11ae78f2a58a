// What was sampled becomes training data: tokens shifted by one, with the sampler's logprobs and the advantage on the model's own tokens.
import { WhetstoneError } from "../core/errors.ts";
import { type Datum, type LossName, lossTable, tensor, textInput } from "../protocol/index.ts";
import { type Mask, masked, maskedCount, type Stretch, spread } from "./mask.ts";

/** A sample that cannot be turned into training data. */
export class RolloutError extends WhetstoneError {}

/** A datum, and which of its positions are the model's own tokens. */
export interface TrainingExample {
  datum: Datum;
  mask: Mask;
  /** True: its answer was given and not sampled. */
  given?: boolean | undefined;
}

/** The datum with all that the loss takes: for one that looks at whole sequences, which positions are the model's own. */
export function lossDatum({ datum, mask }: TrainingExample, loss: string): Datum {
  if (loss === "cross_entropy") {
    const { target_tokens, advantages } = datum.lossFnInputs;
    return { ...datum, lossFnInputs: { target_tokens: target_tokens!, weights: advantages! } };
  }
  if (!Object.hasOwn(lossTable, loss) || !("sequence_ratio_mask" in lossTable[loss as LossName].inputs)) return datum;
  const { length } = datum.lossFnInputs["target_tokens"]!.data;
  return { ...datum, lossFnInputs: { ...datum.lossFnInputs, sequence_ratio_mask: tensor(spread(1, mask, length)) } };
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
  const sequence = joinTurns([{ context: prompt, tokens: completion, logprobs }]);
  return lossDatum(makeExample(sequence, advantagesOf(sequence, advantage)), loss);
}

/** What the model was given, and what it wrote then. */
export interface Turn {
  /** Tokens that the model read and did not write: the prompt, a tool's result. They are never trained on. */
  context: ArrayLike<number>;
  tokens: ArrayLike<number>;
  /** The sampler's log-probability of each of `tokens`. */
  logprobs: ArrayLike<number>;
}

/** A sampled sequence as training takes it: what an example is made of without a copy. */
export interface Sequence {
  /** All turns, end to end. */
  tokens: Int32Array;
  /** By position: the sampler's log-probability of the next token, 0 where that is context. */
  logprobs: Float32Array;
  /** The positions that predict the model's own tokens. */
  mask: Mask;
}

/** Puts turns one behind the other; an answer is one behind its prompt. */
export function joinTurns(turns: readonly Turn[]): Sequence {
  const length = turns.reduce((sum, { context, tokens }) => sum + context.length + tokens.length, 0);
  const all = new Int32Array(length);
  const sampled = new Float32Array(length);
  const mask: Stretch[] = [];
  let offset = 0;
  for (const { context, tokens, logprobs } of turns) {
    if (logprobs.length !== tokens.length)
      throw new RolloutError(
        "rl/logprob-count",
        `The sampler returned ${logprobs.length} logprobs for ${tokens.length} tokens. The server's sampling is broken; update it.`,
      );
    all.set(context, offset);
    offset += context.length;
    all.set(tokens, offset);
    sampled.set(logprobs, offset);
    if (tokens.length > 0) mask.push({ start: offset - 1, end: offset + tokens.length - 1 });
    offset += tokens.length;
  }
  return { tokens: all, logprobs: sampled.subarray(1), mask };
}

/** One advantage for all of the model's own tokens, by position. */
export const advantagesOf = ({ tokens, mask }: Pick<Sequence, "tokens" | "mask">, advantage: number): Float32Array =>
  spread(advantage, mask, Math.max(0, tokens.length - 1));

/** Builds one example. `advantages`, by position, may be longer than the sequence: answers to one prompt share theirs where they can. */
export function makeExample({ tokens, logprobs, mask }: Sequence, advantages: Float32Array): TrainingExample {
  if (mask.length === 0 || mask[0]!.start < 0) {
    const own = maskedCount(mask);
    throw new RolloutError(
      "rl/empty-sequence",
      `A datum needs a prompt and a completion, got ${tokens.length - own} and ${own} tokens. Leave such samples out of training.`,
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
    mask,
  };
}

/** What an example says of the model's own tokens, end to end. */
export const ownValues = ({ datum, mask }: TrainingExample, input: "logprobs" | "advantages"): Float32Array =>
  masked(datum.lossFnInputs[input]!.data as Float32Array, mask);
