// Turns a forward/backward request from the wire into what an engine takes, and refuses everything an engine should never see:
// unknown losses and keys, wrong dtypes, shapes and lengths, token ids outside the vocabulary, NaN and infinity.

import { createHash, type Hash } from "node:crypto";
import { elementCount } from "../core/arrays.ts";
import { turnTaker } from "../core/turns.ts";
import type { EngineModelInfo, LossTensor, TrainingBatch, TrainingDatum } from "../engine/engine.ts";
import {
  type Datum,
  densify,
  type ForwardBackwardRequest,
  foreignLosses,
  type LossDeclaration,
  type LossFnConfig,
  type LossName,
  lossNames,
  lossTable,
  type Tensor,
  tensorProblem,
  textTokens,
} from "../protocol/index.ts";
import { badRequest } from "./errors.ts";

/** Soft targets multiply a sequence by K; this bounds what one tensor may unfold to. */
const maxTensorValues = 1 << 24;

/** Between two datums, other requests are answered this often. */
export const turnMs = 8;

/** Validates and converts, in slices that leave the event loop room. */
export async function toTrainingBatch(
  request: ForwardBackwardRequest,
  model: EngineModelInfo,
  takeTurns = turnTaker(turnMs),
): Promise<TrainingBatch> {
  const loss = lossOf(request.lossFn);
  const rules: LossDeclaration = lossTable[loss];
  if (request.data.length === 0)
    throw badRequest("server/no-data", "The request has no data. Send at least one datum.");
  const lossConfig = resolveConfig(loss, rules, request.lossFnConfig);
  const data: TrainingDatum[] = [];
  for (const [index, datum] of request.data.entries()) {
    data.push(toDatum(datum, index, loss, rules, model));
    await takeTurns();
  }
  return { data, loss, lossConfig, forwardOnly: request.forwardOnly };
}

/** What a request says, in short: the same for a repeat of it, whatever the order of its map entries, and for no other. */
export async function fingerprintOf(request: ForwardBackwardRequest, takeTurns = turnTaker(turnMs)): Promise<string> {
  const hash = createHash("sha256");
  const { lossFn, lossFnConfig, forwardOnly } = request;
  hash.update(JSON.stringify([lossFn, sorted(lossFnConfig), forwardOnly, request.data.length]));
  for (const { modelInput, lossFnInputs } of request.data) {
    for (const chunk of modelInput.chunks) {
      if (chunk.type === "encoded_text") updateArray(hash, chunk.tokens);
      else hash.update(JSON.stringify(chunk));
    }
    for (const [name, { dtype, shape, data, sparse }] of sorted(lossFnInputs)) {
      hash.update(`${name} ${dtype} ${shape}`);
      updateArray(hash, data);
      if (sparse) {
        updateArray(hash, sparse.crowIndices);
        updateArray(hash, sparse.colIndices);
      }
    }
    await takeTurns();
  }
  return `forward_backward ${hash.digest("base64")}`;
}

const sorted = <T>(record: Readonly<Record<string, T>>): [string, T][] =>
  Object.entries(record).sort(([a], [b]) => (a < b ? -1 : 1));

function updateArray(hash: Hash, array: Int32Array | Float32Array | BigInt64Array): void {
  hash.update(`${array.length} `);
  hash.update(new Uint8Array(array.buffer, array.byteOffset, array.byteLength));
}

function lossOf(name: string): LossName {
  if (Object.hasOwn(lossTable, name)) return name as LossName;
  const why = Object.hasOwn(foreignLosses, name)
    ? `This server has no loss "${name}": ${foreignLosses[name]}.`
    : undefined;
  throw badRequest(
    "server/unknown-loss",
    `${why ?? `There is no loss "${name.slice(0, 60)}".`} Use ${lossNames.join(", ")}.`,
  );
}

function resolveConfig(loss: LossName, rules: LossDeclaration, given: LossFnConfig): Record<string, number> {
  const resolved: Record<string, number> = { ...rules.config };
  for (const [key, value] of Object.entries(given)) {
    if (!Object.hasOwn(rules.config, key)) {
      const known = Object.keys(rules.config);
      throw badRequest(
        "server/loss-config",
        `${loss} has no setting "${key.slice(0, 60)}". ${known.length > 0 ? `It has ${known.join(", ")}.` : "It has none."}`,
      );
    }
    if (typeof value !== "number" || !Number.isFinite(value) || value < 0)
      throw badRequest(
        "server/loss-config",
        `${key}=${String(value).slice(0, 60)} is not a setting of ${loss}. Send a number of at least 0.`,
      );
    resolved[key] = value;
  }
  const { clip_low_threshold: low = 0, clip_high_threshold: high = 0 } = resolved;
  if (low > high)
    throw badRequest(
      "server/loss-config",
      `clip_low_threshold=${low} is above clip_high_threshold=${high}. Swap them.`,
    );
  return resolved;
}

function toDatum(
  datum: Datum,
  index: number,
  loss: LossName,
  rules: LossDeclaration,
  model: EngineModelInfo,
): TrainingDatum {
  const tokens = textTokens(datum.modelInput);
  if (!tokens)
    throw badRequest(
      "server/unsupported-input",
      `Datum ${index} holds an image or audio chunk, and ${model.name} reads text only. Send encoded_text chunks.`,
    );
  checkTokens(tokens, model, `Datum ${index}`);
  if (tokens.length > model.maxContextLength)
    throw badRequest(
      "server/context-length",
      `Datum ${index} has ${tokens.length} tokens, and ${model.name} takes ${model.maxContextLength}. Shorten it.`,
    );
  for (const name of Object.keys(datum.lossFnInputs))
    if (!Object.hasOwn(rules.inputs, name))
      throw badRequest(
        "server/loss-inputs",
        `Datum ${index} has the input "${name.slice(0, 60)}", which ${loss} does not take. Send ${Object.keys(rules.inputs).join(", ")}.`,
      );
  const lossInputs: Record<string, LossTensor> = {};
  for (const [name, { dtype, fill }] of Object.entries(rules.inputs)) {
    const value = Object.hasOwn(datum.lossFnInputs, name) ? datum.lossFnInputs[name] : undefined;
    if (value)
      lossInputs[name] = toLossTensor(value, dtype, `"${name}" of datum ${index}`, tokens.length, rules, model);
    else if (fill !== undefined) {
      // The targets come first in every row of the table.
      const { data, shape } = lossInputs["target_tokens"]!;
      lossInputs[name] = { data: new Float32Array(data.length).fill(fill), shape };
    } else
      throw badRequest(
        "server/loss-inputs",
        `Datum ${index} lacks "${name}". ${loss} takes ${Object.keys(rules.inputs).join(", ")}.`,
      );
  }
  const mask = lossInputs["sequence_ratio_mask"];
  if (mask && !mask.data.some((value) => value !== 0))
    throw badRequest(
      "server/loss-inputs",
      `"sequence_ratio_mask" of datum ${index} is 0 everywhere, so its ratio is the mean of nothing. Mark at least one position.`,
    );
  const [first, ...others] = Object.entries(lossInputs);
  for (const [name, { shape }] of others)
    if (shape.length !== first![1].shape.length || shape.at(-1) !== first![1].shape.at(-1))
      throw badRequest(
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
  rules: LossDeclaration,
  model: EngineModelInfo,
): LossTensor {
  if (value.dtype !== dtype)
    throw badRequest("server/tensor", `${what} has dtype ${value.dtype}. Send it as ${dtype}.`);
  const { shape } = value;
  const dimensions = rules.softTargets ? 2 : 1;
  if (shape.length < 1 || shape.length > dimensions || shape[0] !== length || shape[1] === 0)
    throw badRequest(
      "server/tensor",
      `${what} has shape [${shape}] for ${length} input tokens. Send [${length}]${dimensions === 2 ? ` or [${length}, K]` : ""}: one value per position.`,
    );
  // Checked before a sparse tensor is unfolded: its shape is only a claim.
  if (elementCount(shape) > maxTensorValues)
    throw badRequest(
      "server/tensor",
      `${what} has shape [${shape}], more than ${maxTensorValues} values. Split the datum.`,
    );
  const problem = tensorProblem(value);
  if (problem) throw badRequest("server/tensor", `${what}: ${problem}. Send values, shape and indices that agree.`);
  const { data } = densify(value);
  if (data instanceof Float32Array) {
    const bad = data.findIndex((number) => !Number.isFinite(number));
    if (bad >= 0)
      throw badRequest("server/non-finite", `${what} holds ${data[bad]} at index ${bad}. Send finite numbers only.`);
    return { data, shape };
  }
  if (data instanceof BigInt64Array)
    throw badRequest("server/token-range", `${what} holds ids beyond 32 bits. ${vocabularyHint(model)}`);
  checkTokens(data, model, what);
  return { data, shape };
}

/** Refuses an empty sequence and ids that the model has no token for. */
export function checkTokens(tokens: Int32Array, model: EngineModelInfo, what: string): void {
  if (tokens.length === 0) throw badRequest("server/no-tokens", `${what} has no tokens. Send at least one.`);
  for (let index = 0; index < tokens.length; index++) {
    const token = tokens[index]!;
    if (token < 0 || token >= model.vocabSize)
      throw badRequest(
        "server/token-range",
        `${what} has token id ${token} at index ${index}. ${vocabularyHint(model)}`,
      );
  }
}

const vocabularyHint = (model: EngineModelInfo) =>
  `${model.name} has ids 0 to ${model.vocabSize - 1}; encode with its tokenizer.`;
