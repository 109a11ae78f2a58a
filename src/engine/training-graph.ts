// The graph of one training run: packed tokens through the model, log-probabilities and losses at the head, and the gradients
// of the adapter's parameters, all in one graph, so that no activation ever leaves it.
//
// The head works on chunks of rows. Each chunk computes its logits, its losses and their gradient with respect to the chunk's
// hidden rows at once, so that no more than one chunk of logits exists at a time. That gradient then goes back through the layers.
import {
  add,
  checkpoint,
  type Dim,
  gather,
  gradients,
  input,
  matmul,
  multiply,
  pullBack,
  scan,
  sum,
  type Tensor,
  targetLogprobs,
  zeros,
} from "../graph/index.ts";
import type { LossName } from "../protocol/losses.ts";
import { type DecoderConfig, head as headLayer, linearShapes, weightName } from "./architecture.ts";
import {
  adaptedLayers,
  type LoraInputs,
  type LoraTargets,
  loraA,
  loraB,
  loraInputs,
  mergedLinear,
  sideLinear,
} from "./lora.ts";
import { configInputs, losses, lossInputs } from "./losses.ts";
import { type BlockKind, packedAttention } from "./packed-attention.ts";
import { type DecoderContext, embed, headInput, transformerLayer } from "./transformer.ts";

export interface TrainingGraphSpec {
  targets: LoraTargets;
  loss: LossName;
  /** False: log-probabilities and losses only. */
  backward: boolean;
  blocks: readonly BlockKind[];
  /** True: some positions need a log-probability and no gradient. */
  idle: boolean;
  /** True: layers keep their input alone and are computed again in the backward pass, which takes time and saves memory. */
  recompute: boolean;
  /** Adapters are merged into the weights inside the graph: faster, for the memory of a second copy of them. */
  merge: boolean;
}

/**
 * Outputs `logprobs` and `losses` of the active positions, both [chunks, chunk, slots]; `idle_logprobs` of the idle ones; and
 * with a backward pass `grad.NAME` for every adapter parameter.
 */
export function trainingGraph(config: DecoderConfig, spec: TrainingGraphSpec): Record<string, Tensor> {
  const adapter = new Map<string, LoraInputs>();
  for (const [layer, shape] of adaptedLayers(config, spec.targets)) adapter.set(layer, loraInputs(layer, shape));
  const product = spec.merge ? mergedLinear : sideLinear;
  const shapeOf = linearShapes(config);
  const linear = (x: Tensor, layer: string): Tensor => {
    const weight = input(weightName(config, layer), shapeOf(layer));
    const lora = adapter.get(layer);
    return lora ? product(x, weight, lora) : matmul(x, weight, { transB: true });
  };
  const joined = (x: Tensor, layers: readonly string[]): Tensor[] => layers.map((layer) => linear(x, layer));
  const parameters = { weight: input, linear, joined };
  const context: DecoderContext = { config, parameters, positions: input("positions", ["rows"], "i32") };

  let x = embed(context, input("tokens", ["rows"], "i32"));
  for (let index = 0; index < config.numLayers; index++) {
    const layer = (rows: Tensor): Tensor =>
      transformerLayer(context, index, rows, (projections) => packedAttention(config, spec.blocks, projections));
    const trained = [...adapter].filter(([name]) => name.startsWith(`model.layers.${index}.`));
    x = spec.recompute
      ? checkpoint(
          x,
          trained.flatMap(([, { a, b }]) => [a, b]),
          layer,
        )
      : layer(x);
  }
  const final = headInput(context, x);
  const hidden = headRows(final, "active");
  const logits = (rows: Tensor): Tensor => linear(rows, headLayer);
  const head = headAndLoss(spec, hidden, adapter.get(headLayer), logits);
  const outputs: Record<string, Tensor> = { logprobs: head.logprobs, losses: head.losses };
  if (spec.idle) outputs["idle_logprobs"] = idleHead(headRows(final, "idle"), logits);
  if (!spec.backward) return outputs;

  const inner = [...adapter].filter(([layer]) => layer !== headLayer);
  const sources = inner.flatMap(([, { a, b }]) => [a, b]);
  // The head's layer is the last of an adapter.
  const pulled = [...pullBack([hidden], [head.hiddenGradient!], sources), ...head.adapterGradients];
  for (const [i, layer] of [...adapter.keys()].entries()) {
    outputs[`grad.${loraA(layer)}`] = pulled[2 * i]!;
    outputs[`grad.${loraB(layer)}`] = pulled[2 * i + 1]!;
  }
  return outputs;
}

/** The hidden rows a part of the head works on: [chunks, chunk, hidden]. */
function headRows(final: Tensor, part: "active" | "idle"): Tensor {
  return gather(final, input(`${part}.rows`, [`${part}_chunks`, `${part}_chunk`], "i32"));
}

/** Log-probabilities alone. */
function idleHead(hidden: Tensor, logits: (rows: Tensor) => Tensor): Tensor {
  const targets = input("idle.targets", ["idle_chunks", "idle_chunk", "slots"], "i32");
  const { stacked } = scan([], [hidden, targets], (_, [rows, wanted]) => ({
    carried: [],
    stacked: [targetLogprobs(logits(rows!), wanted!)],
  }));
  return stacked[0]!;
}

interface Head {
  logprobs: Tensor;
  losses: Tensor;
  hiddenGradient?: Tensor;
  adapterGradients: Tensor[];
}

function headAndLoss(
  spec: TrainingGraphSpec,
  hidden: Tensor,
  lora: LoraInputs | undefined,
  logits: (rows: Tensor) => Tensor,
): Head {
  const loss = losses[spec.loss];
  const config = configInputs(loss);
  const shape: Dim[] = ["active_chunks", "active_chunk", "slots"];
  const sliced = [
    hidden,
    input("active.targets", shape, "i32"),
    input("active.mask", shape),
    ...lossInputs(loss, shape),
  ];
  const trained = spec.backward && lora ? [lora.a, lora.b] : [];
  const { carried, stacked } = scan(
    trained.map((parameter) => zeros(parameter.shape)),
    sliced,
    (sums, [rows, targets, mask, ...values]) => {
      const logprobs = targetLogprobs(logits(rows!), targets!);
      const inputs = Object.fromEntries(loss.inputs.map((name, i) => [name, values[i]!]));
      const perTarget = multiply(loss.formula(logprobs, inputs, config), mask!);
      if (!spec.backward) return { carried: [], stacked: [logprobs, perTarget] };
      const [toRows, ...toAdapter] = gradients(sum(perTarget), [rows!, ...trained]);
      return {
        carried: sums.map((total, i) => add(total, toAdapter[i]!)),
        stacked: [logprobs, perTarget, toRows!],
      };
    },
  );
  const [logprobs, perTarget, hiddenGradient] = stacked;
  return {
    logprobs: logprobs!,
    losses: perTarget!,
    ...(hiddenGradient ? { hiddenGradient } : {}),
    adapterGradients: carried,
  };
}
