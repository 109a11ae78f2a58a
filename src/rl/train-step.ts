// One optimizer update: forward_backward and optim_step are both submitted before either is awaited, so that the server never idles
// between them.
import type { TrainingClient } from "../client/index.ts";
import type { AdamParams } from "../protocol/index.ts";
import type { TrainConfig } from "./config.ts";
import type { TrainingExample } from "./datums.ts";
import { PolicyDrift } from "./diagnostics.ts";

export interface TrainStepResult {
  /** The server's loss, summed over all substeps. */
  lossSum: number;
  /** Completion tokens trained on. */
  actionTokens: number;
  metrics: Record<string, number>;
}

export function adamParams(config: TrainConfig): AdamParams {
  return {
    learningRate: config.learning_rate,
    beta1: config.beta1,
    beta2: config.beta2,
    eps: config.eps,
    weightDecay: config.weight_decay,
    gradClipNorm: config.grad_clip_norm,
  };
}

/** Trains on the examples in `num_substeps` nearly equal parts; every part is submitted before the first result is awaited. */
export async function trainStep(
  training: TrainingClient,
  examples: readonly TrainingExample[],
  adam: AdamParams,
  config: Pick<TrainConfig, "loss_fn" | "loss_fn_config" | "num_substeps">,
): Promise<TrainStepResult> {
  const parts = split(examples, Math.min(config.num_substeps, examples.length));
  const submitted = parts.map((part) => ({
    part,
    update: training.forwardBackward(
      part.map(({ datum }) => datum),
      config.loss_fn,
      { lossFnConfig: config.loss_fn_config },
    ),
    optim: training.optimStep(adam),
  }));
  const results = await Promise.all(
    submitted.map(async ({ part, update, optim }) => {
      // Both are awaited together, so that neither can fail unobserved.
      const [output, step] = await Promise.all([update.result(), optim.result()]);
      return { part, output, step };
    }),
  );
  const drift = new PolicyDrift();
  const metrics: Record<string, number> = {};
  let lossSum = 0;
  for (const { part, output, step } of results) {
    lossSum += output.metrics["loss:sum"] ?? 0;
    for (const [name, value] of Object.entries(step.metrics ?? {}))
      metrics[name.includes("/") ? name : `optim/${name}`] = value;
    for (const [index, { datum, firstAction }] of part.entries()) {
      const trained = output.lossFnOutputs[index]?.["logprobs"]?.data;
      if (!(trained instanceof Float32Array)) continue;
      const sampled = datum.lossFnInputs["logprobs"]!.data as Float32Array;
      drift.add(sampled.subarray(firstAction), trained.subarray(firstAction));
    }
  }
  const actionTokens = examples.reduce(
    (sum, { datum, firstAction }) => sum + datum.lossFnInputs["target_tokens"]!.data.length - firstAction,
    0,
  );
  return { lossSum, actionTokens, metrics: { ...metrics, ...drift.metrics() } };
}

function split<Item>(items: readonly Item[], parts: number): Item[][] {
  return Array.from({ length: parts }, (_, index) =>
    items.slice(Math.floor((index * items.length) / parts), Math.floor(((index + 1) * items.length) / parts)),
  );
}
