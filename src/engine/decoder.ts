// The two graphs that sampling runs. `prefill` pushes blocks of prompt tokens through the model; `decode` pushes one token of
// every running sample. Neither returns a key/value cache: past keys and values are inputs, read in place from arrays that the
// caller owns, and only those of the new tokens come back.
//
// `decode` comes in two kinds. In the shared kind, the samples of one prompt form a group that shares one copy of the prompt's
// cache: its keys are multiplied with the queries of the whole group at once, so that the cache is read once per group instead of
// once per sample. In the lone kind, every row has its prompt in its own cache.
//
// Results do not depend on the company a row has: a row's sums run over the same elements in the same order whatever the number
// of rows, and what pads a cache is masked, which adds exact zeros to its sums. The exceptions are products with
// one row, for which ONNX Runtime has another kernel: callers keep at least two rows, and attention to a row's own cache always
// has as many as the model says.

import {
  add,
  concat,
  type Dim,
  gather,
  input,
  logSoftmax,
  matmul,
  multiply,
  multiplyDims,
  reshape,
  Session,
  scalar,
  softmax,
  split,
  sum,
  type Tensor,
  transpose,
} from "../graph/index.ts";
import { type DecoderConfig, head, linearShapes } from "./architecture.ts";
import { adaptedLayers, type LoraTargets, loraInputs, sideLinear } from "./lora.ts";
import { type DecoderContext, embed, headInput, type Projections, transformerLayer } from "./transformer.ts";
import { joinedName } from "./weights.ts";

/** Tokens of a prompt are computed in blocks that start at multiples of this. */
export const blockSize = 64;

/**
 * Caches are padded to multiples of this. Attention's weights are summed over [prompt | own | new] in as many partial sums as a
 * vector register has lanes (16 with AVX-512); a part that starts at a multiple of it meets the same ones whatever stands before it.
 */
const alignment = 32;

export const aligned = (length: number): number => Math.ceil(length / alignment) * alignment;

export type DecodeKind = "shared" | "lone";

/**
 * Compiles the graph that computes the next token's distribution for each of `rows` samples: log-probabilities at temperature 1,
 * and probabilities at each row's own temperature. `side`: the layers whose adapter enters beside the weights; otherwise adapters
 * are merged into the weights that are fed.
 */
export function compileDecode(
  config: DecoderConfig,
  kind: DecodeKind,
  side: LoraTargets | undefined,
  threads: number,
): Promise<Session> {
  const context = contextOf(config, side, input("positions", ["rows"], "i32"));
  const outputs: Record<string, Tensor> = {};
  let x = embed(context, input("tokens", ["rows"], "i32"));
  for (let index = 0; index < config.numLayers; index++) {
    x = transformerLayer(context, index, x, (projections) => {
      outputs[`key.${index}`] = projections.key;
      outputs[`value.${index}`] = projections.value;
      return (kind === "shared" ? sharedAttention : loneAttention)(config, index, projections);
    });
  }
  const logits = headLogits(context, x);
  const probs = softmax(multiply(logits, input("inverse_temperatures", ["rows", 1])));
  return Session.compile({ ...outputs, logprobs: logSoftmax(logits), probs }, threads);
}

/** Whether a block's distributions are asked for, or only its keys and values: then the last layer does not attend. */
export type PrefillKind = "inner" | "final";

/**
 * Compiles the graph that computes one block of each of `prompts`, all with the same number of tokens before it, and the
 * distributions after some of its tokens.
 */
export function compilePrefill(
  config: DecoderConfig,
  kind: PrefillKind,
  side: LoraTargets | undefined,
  threads: number,
): Promise<Session> {
  const flat = (name: string): Tensor => reshape(input(name, ["prompts", "block"], "i32"), ["block*prompts"]);
  const context = contextOf(config, side, flat("positions"));
  const mask = input("mask", ["block", "block+past"]);
  const outputs: Record<string, Tensor> = {};
  let x = embed(context, flat("tokens"));
  for (let index = 0; index < config.numLayers; index++) {
    const attend = (projections: Projections): Tensor => {
      const { keys, values, attended } = prefillAttention(config, index, { ...projections, mask });
      outputs[`key.${index}`] = keys;
      outputs[`value.${index}`] = values;
      return attended;
    };
    // After the last layer only the rows matter whose distributions are asked for.
    const last = index === config.numLayers - 1;
    x = transformerLayer(context, index, x, attend, last ? input("wanted_rows", ["rows"], "i32") : undefined);
  }
  if (kind === "final") outputs["logprobs"] = logSoftmax(headLogits(context, x));
  return Session.compile(outputs, threads);
}

function contextOf(config: DecoderConfig, side: LoraTargets | undefined, positions: Tensor): DecoderContext {
  const shapeOf = linearShapes(config);
  const adapted = adaptedLayers(config, side ?? { trainAttn: false, trainMlp: false, trainUnembed: false });
  const linear = (x: Tensor, layer: string): Tensor => {
    const weight = input(`${layer}.weight`, shapeOf(layer));
    const lora = adapted.get(layer);
    return lora ? sideLinear(x, weight, loraInputs(layer, lora)) : matmul(x, weight, { transB: true });
  };
  const joined = (x: Tensor, layers: readonly string[]): Tensor[] => {
    if (side) return layers.map((layer) => linear(x, layer));
    const widths = layers.map((layer) => shapeOf(layer)[0]);
    const width = widths.reduce((total, part) => total + part, 0);
    const whole = input(joinedName(layers), [width, config.hiddenSize]);
    return split(matmul(x, whole, { transB: true }), 1, widths);
  };
  return { config, parameters: { weight: input, linear, joined }, positions };
}

function headLogits(context: DecoderContext, x: Tensor): Tensor {
  return context.parameters.linear(headInput(context, x), head);
}

/** Attention over [own tokens so far, prompt included | the new token]. */
function loneAttention(config: DecoderConfig, index: number, projections: Projections): Tensor {
  const { scores, mix } = ownProducts(config, index, "lone", projections);
  const masked = add(scores, input("mask", ["rows", 1, 1, scores.shape[3]!]));
  return reshape(mix(softmax(masked)), projections.query.shape);
}

/**
 * Attention over [shared prompt | own tokens so far | the new token]. Scores of a prompt come out group by group; those of the
 * rows' own tokens, which are fewer, are brought into the same order, and their weights back.
 */
function sharedAttention(config: DecoderConfig, index: number, projections: Projections): Tensor {
  const { numHeads, numKvHeads: kv, headDim } = config;
  const repeat = numHeads / kv;
  const { scaled, scores: ownScores, mix } = ownProducts(config, index, "shared", projections);
  const promptKeys = input(`prompt_keys.${index}`, ["groups", kv, "prompt", headDim]);
  const promptValues = input(`prompt_values.${index}`, ["groups", kv, "prompt", headDim]);
  const groupRows = input("group_rows", ["groups", "width"], "i32");
  const rowSlots = input("row_slots", ["rows"], "i32");

  /** Per row [kv, repeat, size] → per group [kv, width · repeat, size], and back. */
  const toGroups = (x: Tensor, size: Dim): Tensor =>
    reshape(transpose(gather(x, groupRows), [0, 2, 1, 3, 4]), ["groups", kv, multiplyDims("width", repeat), size]);
  const toRows = (x: Tensor, size: Dim): Tensor => {
    const byMember = transpose(reshape(x, ["groups", kv, "width", repeat, size]), [0, 2, 1, 3, 4]);
    return gather(reshape(byMember, ["groups*width", kv, repeat, size]), rowSlots);
  };

  const own = ownScores.shape[3]!;
  const scores = concat([matmul(toGroups(scaled, headDim), promptKeys, { transB: true }), toGroups(ownScores, own)], 3);
  const columns = scores.shape[3]!;
  const mask = input("mask", ["groups", 1, "width", 1, columns]);
  const weights = reshape(softmax(add(reshape(scores, ["groups", kv, "width", repeat, columns]), mask)), scores.shape);
  const [toPrompt, toOwn] = split(weights, 3, ["prompt", own]) as [Tensor, Tensor];
  const fromPrompt = toRows(matmul(toPrompt, promptValues), headDim);
  return reshape(add(fromPrompt, mix(toRows(toOwn, own))), projections.query.shape);
}

/** Products with a row's own cache and its new token: scores [rows, kv, repeat, own + 1], and the values mixed by such weights. */
function ownProducts(
  { numHeads, numKvHeads: kv, headDim }: DecoderConfig,
  index: number,
  kind: DecodeKind,
  { query, key, value }: Projections,
): { scaled: Tensor; scores: Tensor; mix(weights: Tensor): Tensor } {
  const repeat = numHeads / kv;
  const perHead = ["rows", kv, repeat, headDim];
  // One product per key head pays for short caches, one per query head for long ones.
  const apart = kind === "lone";
  const between = apart ? [1] : [];
  const operand = (x: Tensor, size: Dim): Tensor => (apart ? reshape(x, ["rows", kv, repeat, 1, size]) : x);
  const keys = input(`own_keys.${index}`, ["rows", kv, ...between, "own", headDim]);
  const values = input(`own_values.${index}`, ["rows", kv, ...between, "own", headDim]);
  const scaled = reshape(multiply(query, scalar(headDim ** -0.5)), perHead);
  const ownScores = reshape(matmul(operand(scaled, headDim), keys, { transB: true }), ["rows", kv, repeat, "own"]);
  const newScore = sum(multiply(scaled, reshape(key, ["rows", kv, 1, headDim])), [-1], { keepDims: true });
  return {
    scaled,
    scores: concat([ownScores, newScore], 3),
    mix(weights) {
      const [ownWeights, newWeight] = split(weights, 3, ["own", 1]) as [Tensor, Tensor];
      const fromOwn = reshape(matmul(operand(ownWeights, "own"), values), perHead);
      return add(fromOwn, multiply(newWeight, reshape(value, ["rows", kv, 1, headDim])));
    },
  };
}

/** Causal attention of a block over [past | block]; also the block's keys and values [kv, block, headDim]. */
function prefillAttention(
  { numHeads, numKvHeads: kv, headDim }: DecoderConfig,
  index: number,
  { query, key, value, mask }: Projections & { mask: Tensor },
): { keys: Tensor; values: Tensor; attended: Tensor } {
  const repeat = numHeads / kv;
  const rows = multiplyDims("block", repeat);
  const pastKeys = input(`past_keys.${index}`, ["prompts", kv, "past", headDim]);
  const pastValues = input(`past_values.${index}`, ["prompts", kv, "past", headDim]);
  const keys = transpose(reshape(key, ["prompts", "block", kv, headDim]), [0, 2, 1, 3]);
  const values = transpose(reshape(value, ["prompts", "block", kv, headDim]), [0, 2, 1, 3]);

  const queries = reshape(transpose(reshape(query, ["prompts", "block", kv, repeat, headDim]), [0, 2, 3, 1, 4]), [
    "prompts",
    kv,
    rows,
    headDim,
  ]);
  // Keys and values are far smaller than scores: those are joined, and there is one product each.
  const [allKeys, allValues] = [concat([pastKeys, keys], 2), concat([pastValues, values], 2)];
  const scores = matmul(queries, allKeys, { transB: true, alpha: headDim ** -0.5 });
  const masked = add(reshape(scores, ["prompts", kv, repeat, "block", "block+past"]), mask);
  const weights = reshape(softmax(masked), scores.shape);
  const mixed = reshape(matmul(weights, allValues), ["prompts", kv, repeat, "block", headDim]);
  return { keys, values, attended: reshape(transpose(mixed, [0, 3, 1, 2, 4]), query.shape) };
}
