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
// has one.

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
  type SessionOptions,
  scalar,
  softmax,
  split,
  sum,
  type Tensor,
  transpose,
} from "../graph/index.ts";
import { adaptedLayers, type LoraTargets, loraInputs, sideLinear } from "./lora.ts";
import { linearShapes, type Qwen3Config } from "./model-types.ts";
import { embed, finalNorm, type LayerContext, type Projections, transformerLayer } from "./qwen3.ts";
import { fusedName } from "./weights.ts";

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
  config: Qwen3Config,
  kind: DecodeKind,
  side: LoraTargets | undefined,
  options: SessionOptions,
): Promise<Session> {
  const context = layerContext(config, side, input("positions", ["rows"], "i32"));
  const outputs: Record<string, Tensor> = {};
  let x = embed(context, input("tokens", ["rows"], "i32"));
  for (let index = 0; index < config.numLayers; index++) {
    x = transformerLayer(context, index, x, (projections) => {
      outputs[`key.${index}`] = projections.key;
      outputs[`value.${index}`] = projections.value;
      return decodeAttention(config, index, kind, projections);
    });
  }
  const logits = head(context, x);
  const probs = softmax(multiply(logits, input("inverse_temperatures", ["rows", 1])));
  return Session.compile({ ...outputs, logprobs: logSoftmax(logits), probs }, options);
}

/** Compiles the graph that computes one block of each of `prompts`, and the distributions after some of its tokens. */
export function compilePrefill(
  config: Qwen3Config,
  side: LoraTargets | undefined,
  options: SessionOptions,
): Promise<Session> {
  const flat = (name: string): Tensor => reshape(input(name, ["prompts", "block"], "i32"), ["block*prompts"]);
  const context = layerContext(config, side, flat("positions"));
  const mask = input("mask", ["prompts", 1, 1, "block", "block+past"]);
  const outputs: Record<string, Tensor> = {};
  let x = embed(context, flat("tokens"));
  for (let index = 0; index < config.numLayers; index++) {
    x = transformerLayer(context, index, x, (projections) => {
      const { keys, values, attended } = prefillAttention(config, index, { ...projections, mask });
      outputs[`key.${index}`] = keys;
      outputs[`value.${index}`] = values;
      return attended;
    });
  }
  const wanted = gather(x, input("wanted_rows", ["rows"], "i32"));
  return Session.compile({ ...outputs, logprobs: logSoftmax(head(context, wanted)) }, options);
}

function layerContext(config: Qwen3Config, side: LoraTargets | undefined, positions: Tensor): LayerContext {
  const shapes = linearShapes(config);
  const adapted = side ? adaptedLayers(config, side) : new Map<string, [number, number]>();
  const weight = (name: string, shape: readonly number[]): Tensor => input(name, shape);
  const linear = (x: Tensor, layers: readonly string[]): Tensor[] => {
    if (side) {
      return layers.map((layer) => {
        const base = weight(`${layer}.weight`, shapes.get(layer)!);
        if (!adapted.has(layer)) return matmul(x, base, { transB: true });
        return sideLinear(x, base, loraInputs(layer, shapes.get(layer)!));
      });
    }
    const widths = layers.map((layer) => shapes.get(layer)![0]);
    const width = widths.reduce((total, part) => total + part, 0);
    const fused = weight(`${fusedName(layers)}.weight`, [width, shapes.get(layers[0]!)![1]]);
    const y = matmul(x, fused, { transB: true });
    return layers.length === 1 ? [y] : split(y, 1, widths);
  };
  return { config, parameters: { weight, linear }, positions };
}

function head(context: LayerContext, x: Tensor): Tensor {
  return context.parameters.linear(finalNorm(context, x), ["lm_head"])[0]!;
}

/** Attention over [shared prompt | own tokens so far | the new token]. */
function decodeAttention(config: Qwen3Config, index: number, kind: DecodeKind, projections: Projections): Tensor {
  const { numHeads, numKvHeads: kv, headDim } = config;
  const { query, key, value } = projections;
  const repeat = numHeads / kv;
  const perHead = ["rows", kv, repeat, headDim];
  const alone = ["rows", kv, repeat, 1];
  const keys = input(`own_keys.${index}`, ["rows", kv, 1, headDim, "own"]);
  const values = input(`own_values.${index}`, ["rows", kv, 1, "own", headDim]);
  const scaled = reshape(multiply(query, scalar(headDim ** -0.5)), perHead);

  const ownScores = reshape(matmul(reshape(scaled, [...alone, headDim]), keys), ["rows", kv, repeat, "own"]);
  const newScore = sum(multiply(scaled, reshape(key, ["rows", kv, 1, headDim])), [-1], { keepDims: true });
  const prompt = kind === "shared" ? sharedPrompt(config, index) : undefined;
  const scores = concat([...(prompt ? [prompt.scores(scaled)] : []), ownScores, newScore], 3);
  const weights = softmax(add(scores, input("mask", ["rows", 1, 1, scores.shape[3]!])));

  const parts = split(weights, 3, [...(prompt ? ["prompt"] : []), "own", 1]);
  const [ownWeights, newWeight] = parts.slice(-2) as [Tensor, Tensor];
  const fromOwn = reshape(matmul(reshape(ownWeights, [...alone, "own"]), values), perHead);
  const fromNew = multiply(newWeight, reshape(value, ["rows", kv, 1, headDim]));
  const mixed = add(fromOwn, fromNew);
  return reshape(prompt ? add(prompt.mix(parts[0]!), mixed) : mixed, query.shape);
}

/** Products with the prompts that groups of rows share, group by group. */
function sharedPrompt({ numHeads, numKvHeads: kv, headDim }: Qwen3Config, index: number) {
  const repeat = numHeads / kv;
  const keys = input(`prompt_keys.${index}`, ["groups", kv, headDim, "prompt"]);
  const values = input(`prompt_values.${index}`, ["groups", kv, "prompt", headDim]);
  const groupRows = input("group_rows", ["groups", "width"], "i32");
  const rowSlots = input("row_slots", ["rows"], "i32");

  /** Per row [kv, repeat, size] → per group [kv, width · repeat, size], and back. */
  const toGroups = (x: Tensor, size: Dim): Tensor =>
    reshape(transpose(gather(x, groupRows), [0, 2, 1, 3, 4]), ["groups", kv, multiplyDims("width", repeat), size]);
  const toRows = (x: Tensor, size: Dim): Tensor => {
    const byMember = transpose(reshape(x, ["groups", kv, "width", repeat, size]), [0, 2, 1, 3, 4]);
    return gather(reshape(byMember, ["groups*width", kv, repeat, size]), rowSlots);
  };
  return {
    scores: (query: Tensor): Tensor => toRows(matmul(toGroups(query, headDim), keys), "prompt"),
    mix: (weights: Tensor): Tensor => toRows(matmul(toGroups(weights, "prompt"), values), headDim),
  };
}

/** Causal attention of a block over [past | block]; also the block's keys [kv, headDim, block] and values [kv, block, headDim]. */
function prefillAttention(
  { numHeads, numKvHeads: kv, headDim }: Qwen3Config,
  index: number,
  { query, key, value, mask }: Projections & { mask: Tensor },
): { keys: Tensor; values: Tensor; attended: Tensor } {
  const repeat = numHeads / kv;
  const rows = multiplyDims("block", repeat);
  const pastKeys = input(`past_keys.${index}`, ["prompts", kv, headDim, "past"]);
  const pastValues = input(`past_values.${index}`, ["prompts", kv, "past", headDim]);
  const keys = transpose(reshape(key, ["prompts", "block", kv, headDim]), [0, 2, 3, 1]);
  const values = transpose(reshape(value, ["prompts", "block", kv, headDim]), [0, 2, 1, 3]);

  const queries = reshape(transpose(reshape(query, ["prompts", "block", kv, repeat, headDim]), [0, 2, 3, 1, 4]), [
    "prompts",
    kv,
    rows,
    headDim,
  ]);
  const alpha = headDim ** -0.5;
  const scores = concat([matmul(queries, pastKeys, { alpha }), matmul(queries, keys, { alpha })], 3);
  const masked = add(reshape(scores, ["prompts", kv, repeat, "block", "block+past"]), mask);
  const weights = reshape(softmax(masked), scores.shape);
  const [toPast, toBlock] = split(weights, 3, ["past", "block"]) as [Tensor, Tensor];
  const mixed = reshape(add(matmul(toPast, pastValues), matmul(toBlock, values)), [
    "prompts",
    kv,
    repeat,
    "block",
    headDim,
  ]);
  return { keys, values, attended: reshape(transpose(mixed, [0, 3, 1, 2, 4]), query.shape) };
}
