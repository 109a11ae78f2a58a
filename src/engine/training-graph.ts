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
import type { LossName } from "./engine.ts";
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
import { linearShapes, type Qwen3Config } from "./model-types.ts";
import { type BlockKind, packedAttention } from "./packed-attention.ts";
import { embed, finalNorm, type LayerContext, type Qwen3Parameters, transformerLayer } from "./qwen3.ts";

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

/** The weight a layer's product uses: a tied head is the embedding. */
export function weightName(config: Qwen3Config, layer: string): string {
  return layer === "lm_head" && config.tieWordEmbeddings ? "model.embed_tokens.weight" : `${layer}.weight`;
}

/**
 * Outputs `logprobs` and `losses` of the active positions, both [chunks, chunk, slots]; `idle_logprobs` of the idle ones; and
 * with a backward pass `grad.NAME` for every adapter parameter.
 */
export function trainingGraph(config: Qwen3Config, spec: TrainingGraphSpec): Record<string, Tensor> {
  const adapter = new Map<string, LoraInputs>();
  for (const [layer, shape] of adaptedLayers(config, spec.targets)) adapter.set(layer, loraInputs(layer, shape));
  const product = spec.merge ? mergedLinear : sideLinear;
  const shapes = linearShapes(config);
  const linear = (x: Tensor, layer: string): Tensor => {
    const weight = input(weightName(config, layer), shapes.get(layer)!);
    const lora = adapter.get(layer);
    return lora ? product(x, weight, lora) : matmul(x, weight, { transB: true });
  };
  const parameters: Qwen3Parameters = {
    weight: (name, shape) => input(name, shape),
    linear: (x, layers) => layers.map((layer) => linear(x, layer)),
  };
  const context: LayerContext = { config, parameters, positions: input("positions", ["rows"], "i32") };

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
  const final = finalNorm(context, x);
  const hidden = headRows(final, "active");
  const headLora = adapter.get("lm_head");
  const head = headAndLoss(spec, hidden, headLora, (rows) => linear(rows, "lm_head"));
  const outputs: Record<string, Tensor> = { logprobs: head.logprobs, losses: head.losses };
  if (spec.idle) outputs["idle_logprobs"] = idleHead(headRows(final, "idle"), (rows) => linear(rows, "lm_head"));
  if (!spec.backward) return outputs;

  const inner = [...adapter].filter(([layer]) => layer !== "lm_head");
  const sources = inner.flatMap(([, { a, b }]) => [a, b]);
  const pulled = pullBack([hidden], [head.hiddenGradient!], sources);
  for (const [i, [layer]] of inner.entries()) {
    outputs[`grad.${loraA(layer)}`] = pulled[2 * i]!;
    outputs[`grad.${loraB(layer)}`] = pulled[2 * i + 1]!;
  }
  if (headLora) {
    outputs[`grad.${loraA("lm_head")}`] = head.adapterGradients[0]!;
    outputs[`grad.${loraB("lm_head")}`] = head.adapterGradients[1]!;
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
