// Losses computed by the caller. The server only has to know cross-entropy, L = Σ −w·logp: with w = −∂C/∂logp its gradient is that of
// the caller's loss C.
import type { ForwardBackwardOutput } from "../protocol/index.ts";
import type { DatumInput } from "./data.ts";
import { InvalidInputError } from "./errors.ts";

/** What a loss of one's own gives back. */
export interface CustomLossResult {
  /** The loss of the whole batch. */
  loss: number;
  /** ∂loss/∂logprob: one array per datum, one number per position. */
  gradients: readonly Float32Array[];
  /** Merged into the result's metrics. */
  metrics?: Readonly<Record<string, number>> | undefined;
}

/** Gets the data as they were passed and, per datum, the learner's log-probabilities of the targets. */
export type CustomLoss<Input extends DatumInput = DatumInput> = (
  data: readonly Input[],
  logprobs: readonly Float32Array[],
) => CustomLossResult | Promise<CustomLossResult>;

/** The data of the forward pass: targets, and weights of zero where there are none. Other inputs stay with the caller. */
export function customForwardData(data: readonly DatumInput[]): DatumInput[] {
  return data.map((datum, index) => {
    const targets = datum.lossFnInputs["target_tokens"];
    if (!targets)
      throw new InvalidInputError(
        `data[${index}].lossFnInputs has ${Object.keys(datum.lossFnInputs).join(", ") || "nothing"}; a custom loss needs target_tokens.`,
      );
    const weights = datum.lossFnInputs["weights"] ?? new Float32Array(lengthOf(targets));
    return { modelInput: datum.modelInput, lossFnInputs: { target_tokens: targets, weights } };
  });
}

const lengthOf = (value: DatumInput["lossFnInputs"][string]) => ("dtype" in value ? value.shape[0]! : value.length);

/** Calls the loss and turns its gradient into the data of the backward pass. */
export async function customBackwardData<Input extends DatumInput>(
  data: readonly Input[],
  output: ForwardBackwardOutput,
  loss: CustomLoss<Input>,
): Promise<{ backward: DatumInput[]; metrics: Record<string, number> }> {
  const logprobs = output.lossFnOutputs.map((record, index) => {
    const values = record["logprobs"]?.data;
    if (values instanceof Float32Array) return values;
    throw new InvalidInputError(
      `The server's forward pass returned no logprobs for data[${index}], which a custom loss needs. Use a server that returns them.`,
    );
  });
  const { loss: value, gradients, metrics = {} } = await loss(data, logprobs);
  const backward = data.map((datum, index): DatumInput => {
    const gradient = gradients[index];
    const length = logprobs[index]?.length;
    if (gradient?.length !== length)
      throw new InvalidInputError(
        `The custom loss returned ${gradient?.length ?? "no"} gradients for data[${index}], which has ${length} positions. Return one Float32Array per datum, one number per position.`,
      );
    const weights = gradient!.map((slope) => -slope);
    return {
      modelInput: datum.modelInput,
      lossFnInputs: { target_tokens: datum.lossFnInputs["target_tokens"]!, weights },
    };
  });
  return { backward, metrics: { "loss:sum": value, ...metrics } };
}
