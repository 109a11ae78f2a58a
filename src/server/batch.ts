// Turns a forward/backward request from the wire into what an engine takes, and refuses everything an engine should never see:
// unknown losses and keys, wrong dtypes, shapes and lengths, token ids outside the vocabulary, NaN and infinity.
import type { EngineModelInfo, LossName, LossTensor, TrainingBatch, TrainingDatum } from "../engine/engine.ts";
import {
  type Datum,
  densify,
  type ForwardBackwardRequest,
  type Tensor,
  tensorProblem,
  textTokens,
} from "../protocol/index.ts";
import { ServerError } from "./errors.ts";
import { Slices } from "./slices.ts";

interface LossRules {
  inputs: Readonly<Record<string, Tensor["dtype"]>>;
  /** Config keys and their defaults. */
  config: Readonly<Record<string, number>>;
}

const policyInputs = { target_tokens: "int64", logprobs: "float32", advantages: "float32" } as const;

/** Thresholds are ratios, not distances from one. */
export const lossRules: Readonly<Record<LossName, LossRules>> = {
  cross_entropy: { inputs: { target_tokens: "int64", weights: "float32" }, config: {} },
  importance_sampling: { inputs: policyInputs, config: {} },
  ppo: { inputs: policyInputs, config: { clip_low_threshold: 0.8, clip_high_threshold: 1.2 } },
  cispo: { inputs: policyInputs, config: { clip_low_threshold: 0, clip_high_threshold: 4 } },
  dro: { inputs: policyInputs, config: { beta: 0.05 } },
};

/** Soft targets multiply a sequence by K; this bounds what one tensor may unfold to. */
const maxTensorValues = 1 << 24;

/** Validates and converts, in slices that leave the event loop room. */
export async function toTrainingBatch(request: ForwardBackwardRequest, model: EngineModelInfo): Promise<TrainingBatch> {
  const loss = request.lossFn;
  if (!Object.hasOwn(lossRules, loss))
    throw refuse(
      "server/unknown-loss",
      `There is no loss "${loss.slice(0, 60)}". Use ${Object.keys(lossRules).join(", ")}.`,
    );
  const rules = lossRules[loss as LossName];
  if (request.data.length === 0) throw refuse("server/no-data", "The request has no data. Send at least one datum.");
  const lossConfig = resolveConfig(loss, rules, request.lossFnConfig);
  const slices = new Slices();
  const data: TrainingDatum[] = [];
  for (const [index, datum] of request.data.entries()) {
    data.push(toDatum(datum, index, loss as LossName, rules, model));
    await slices.pause();
  }
  return { data, loss: loss as LossName, lossConfig, forwardOnly: request.forwardOnly };
}

function resolveConfig(
  loss: string,
  rules: LossRules,
  given: Readonly<Record<string, number>>,
): Record<string, number> {
  for (const [key, value] of Object.entries(given)) {
    if (!Object.hasOwn(rules.config, key)) {
      const known = Object.keys(rules.config);
      throw refuse(
        "server/loss-config",
        `${loss} has no setting "${key.slice(0, 60)}". ${known.length > 0 ? `It has ${known.join(", ")}.` : "It has none."}`,
      );
    }
    if (!Number.isFinite(value) || value < 0)
      throw refuse("server/loss-config", `${key}=${value} is not a setting of ${loss}. Send a number of at least 0.`);
  }
  const resolved = { ...rules.config, ...given };
  const { clip_low_threshold: low = 0, clip_high_threshold: high = 0 } = resolved;
  if (low > high)
    throw refuse("server/loss-config", `clip_low_threshold=${low} is above clip_high_threshold=${high}. Swap them.`);
  return resolved;
}

function toDatum(datum: Datum, index: number, loss: LossName, rules: LossRules, model: EngineModelInfo): TrainingDatum {
  const tokens = textTokens(datum.modelInput);
  if (!tokens)
    throw refuse(
      "server/unsupported-input",
      `Datum ${index} holds an image or audio chunk, and ${model.name} reads text only. Send encoded_text chunks.`,
    );
  checkTokens(tokens, model, `Datum ${index}`);
  if (tokens.length > model.maxContextLength)
    throw refuse(
      "server/context-length",
      `Datum ${index} has ${tokens.length} tokens, and ${model.name} takes ${model.maxContextLength}. Shorten it.`,
    );
  for (const name of Object.keys(datum.lossFnInputs))
    if (!Object.hasOwn(rules.inputs, name))
      throw refuse(
        "server/loss-inputs",
        `Datum ${index} has the input "${name.slice(0, 60)}", which ${loss} does not take. Send ${Object.keys(rules.inputs).join(", ")}.`,
      );
  const lossInputs: Record<string, LossTensor> = {};
  for (const [name, dtype] of Object.entries(rules.inputs)) {
    const value = Object.hasOwn(datum.lossFnInputs, name) ? datum.lossFnInputs[name] : undefined;
    if (!value)
      throw refuse(
        "server/loss-inputs",
        `Datum ${index} lacks "${name}". ${loss} takes ${Object.keys(rules.inputs).join(", ")}.`,
      );
    lossInputs[name] = toLossTensor(value, dtype, `"${name}" of datum ${index}`, tokens.length, loss, model);
  }
  const [first, ...others] = Object.entries(lossInputs);
  for (const [name, { shape }] of others)
    if (shape.length !== first![1].shape.length || shape.at(-1) !== first![1].shape.at(-1))
      throw refuse(
        "server/tensor",
        `Datum ${index}: "${name}" has shape [${shape}], "${first![0]}" has [${first![1].shape}]. Give them the same.`,
      );
  return { tokens, lossInputs };
}

function toLossTensor(
  value: Tensor,
  dtype: Tensor["dtype"],
  what: string,
  length: number,
  loss: LossName,
  model: EngineModelInfo,
): LossTensor {
  if (value.dtype !== dtype) throw refuse("server/tensor", `${what} has dtype ${value.dtype}. Send it as ${dtype}.`);
  const { shape } = value;
  const dimensions = loss === "cross_entropy" ? 2 : 1;
  if (shape.length < 1 || shape.length > dimensions || shape[0] !== length || shape[1] === 0)
    throw refuse(
      "server/tensor",
      `${what} has shape [${shape}] for ${length} input tokens. Send [${length}]${dimensions === 2 ? ` or [${length}, K]` : ""}: one value per position.`,
    );
  // Checked before a sparse tensor is unfolded: its shape is only a claim.
  if (shape.reduce((product, size) => product * size, 1) > maxTensorValues)
    throw refuse(
      "server/tensor",
      `${what} has shape [${shape}], more than ${maxTensorValues} values. Split the datum.`,
    );
  const problem = tensorProblem(value);
  if (problem) throw refuse("server/tensor", `${what}: ${problem}. Send values, shape and indices that agree.`);
  const { data } = densify(value);
  if (data instanceof Float32Array) {
    const bad = data.findIndex((number) => !Number.isFinite(number));
    if (bad >= 0)
      throw refuse("server/non-finite", `${what} holds ${data[bad]} at index ${bad}. Send finite numbers only.`);
    return { data, shape };
  }
  if (data instanceof BigInt64Array)
    throw refuse("server/token-range", `${what} holds ids beyond 32 bits. ${vocabularyHint(model)}`);
  checkTokens(data, model, what);
  return { data, shape };
}

/** Refuses an empty sequence and ids that the model has no token for. */
export function checkTokens(tokens: Int32Array, model: EngineModelInfo, what: string): void {
  if (tokens.length === 0) throw refuse("server/no-tokens", `${what} has no tokens. Send at least one.`);
  for (let index = 0; index < tokens.length; index++) {
    const token = tokens[index]!;
    if (token < 0 || token >= model.vocabSize)
      throw refuse("server/token-range", `${what} has token id ${token} at index ${index}. ${vocabularyHint(model)}`);
  }
}

const vocabularyHint = (model: EngineModelInfo) =>
  `${model.name} has ids 0 to ${model.vocabSize - 1}; encode with its tokenizer.`;

const refuse = (code: string, message: string) => new ServerError(400, code, message);
