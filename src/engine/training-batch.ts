// Brings a batch into the form that the trainer packs. What an engine gets was checked at the server's boundary.
import type { TrainingBatch } from "./engine.ts";
import { type Loss, losses } from "./losses.ts";

/** A training sequence with its inputs in the loss's order. */
export interface PreparedDatum {
  tokens: Int32Array;
  /** Targets per position; 1 unless soft targets were given. */
  slots: number;
  /** [position, slot] */
  targets: Int32Array;
  /** The shape that the log-probabilities are returned in. */
  shape: readonly number[];
  /** In the order of the loss's inputs, each [position, slot]. */
  inputs: Float32Array[];
}

export function prepareBatch(batch: TrainingBatch): PreparedDatum[] {
  const loss = losses[batch.loss];
  return batch.data.map(({ tokens, lossInputs }) => {
    const { data, shape } = lossInputs["target_tokens"]!;
    return {
      tokens,
      slots: shape[1] ?? 1,
      targets: data as Int32Array,
      shape,
      inputs: loss.inputs.map((name) => lossInputs[name]!.data as Float32Array),
    };
  });
}

/** The data of a loss that looks at whole sequences, its sequence input derived from the learner's log-probabilities. */
export function deriveSequenceInput(
  loss: Loss,
  data: readonly PreparedDatum[],
  logprobs: readonly Float32Array[],
): PreparedDatum[] {
  const { input, derive } = loss.sequence!;
  return data.map((datum, index) => {
    const named = Object.fromEntries(loss.inputs.map((name, i) => [name, datum.inputs[i]!]));
    const derived = derive(logprobs[index]!, named);
    return { ...datum, inputs: loss.inputs.map((name, i) => (name === input ? derived : datum.inputs[i]!)) };
  });
}
