// One optimizer update: forward_backward and optim_step are both submitted before either is awaited, so that the server never idles
// between them.
import type { ForwardBackwardOutput, TrainingClient } from "../client/index.ts";
import type { UpdateRule } from "../runs/events.ts";
import type { TrainConfig } from "./config.ts";
import { lossDatum, type TrainingExample } from "./datums.ts";
import { masked, maskedCount } from "./mask.ts";
import { correctMismatch } from "./mismatch.ts";
import { referencesOf } from "./references.ts";

export interface TrainStepResult {
  /** The server's loss, summed over all substeps; undefined where it says nothing of it. */
  lossSum: number | undefined;
  /** What else the server says of the update. */
  server: Record<string, number>;
  /** The trainer's log-probability of every completion token, example after example; undefined where the server gives none. */
  logprobs: Float32Array | undefined;
}

/** The rule that the config asks for. */
export function updateRule(config: TrainConfig): UpdateRule {
  const isSupervised = config.method === "sft";
  return {
    advantage: isSupervised ? "none" : config.advantage,
    lossScale: config.loss_scale,
    maxTokens: config.max_tokens,
    maskTruncated: config.mask_truncated,
    adam: {
      learningRate: config.learning_rate,
      beta1: config.beta1,
      beta2: config.beta2,
      eps: config.eps,
      weightDecay: config.weight_decay,
      gradClipNorm: config.grad_clip_norm,
    },
    lossFn: isSupervised ? "cross_entropy" : config.loss_fn,
    lossFnConfig: isSupervised ? {} : config.loss_fn_config,
    substeps: config.num_substeps,
    mismatch: config.mismatch,
    mismatchCap: config.mismatch_cap,
    references: referencesOf(config),
    rewarded: config.teacher === "" || config.teacher_mode === "added",
  };
}

/** Trains on the examples in nearly equal substeps; every part is submitted before the first result is awaited. */
export async function trainStep(
  training: TrainingClient,
  examples: readonly TrainingExample[],
  rule: UpdateRule,
  signal?: AbortSignal,
): Promise<TrainStepResult> {
  const corrected = rule.mismatch === "none" ? undefined : await correctMismatch(training, examples, rule, signal);
  const parts = split(corrected?.examples ?? examples, Math.min(rule.substeps, examples.length));
  const submitted = parts.map((part) => ({
    part,
    update: training.forwardBackward(
      part.map((example) => lossDatum(example, rule.lossFn)),
      rule.lossFn,
      { lossFnConfig: rule.lossFnConfig, signal },
    ),
    optim: training.optimStep(rule.adam, { signal }),
  }));
  const results = await Promise.all(
    submitted.map(async ({ part, update, optim }) => {
      // Both are awaited together, so that neither can fail unobserved.
      const [output, step] = await Promise.all([update.result(), optim.result()]);
      return { part, output, step };
    }),
  );
  const server: Record<string, number> = { ...corrected?.figures };
  const logprobs = new Float32Array(actionTokens(examples));
  let written = 0;
  let lossSum: number | undefined = 0;
  for (const { part, output, step } of results) {
    const loss = lossOf(output);
    lossSum = lossSum === undefined || loss === undefined ? undefined : lossSum + loss;
    for (const [name, value] of Object.entries(step.metrics ?? {}))
      server[name.includes("/") ? name : `optim/${name}`] = value;
    for (const [index, { mask }] of part.entries()) {
      const trained = output.lossFnOutputs[index]?.["logprobs"]?.data;
      if (!(trained instanceof Float32Array)) continue;
      const own = masked(trained, mask);
      logprobs.set(own, written);
      written += own.length;
    }
  }
  return { lossSum, server, logprobs: written === logprobs.length ? logprobs : undefined };
}

/** The loss of a pass: as the server sums it, else from its losses of the tokens (SkyRL's). */
function lossOf({ metrics, lossFnOutputs }: ForwardBackwardOutput): number | undefined {
  const summed = metrics["loss:sum"];
  if (summed !== undefined) return summed;
  let sum = 0;
  for (const { elementwise_loss: losses } of lossFnOutputs) {
    if (!(losses?.data instanceof Float32Array)) return undefined;
    sum = losses.data.reduce((all, loss) => all + loss, sum);
  }
  return sum;
}

/** The model's own tokens in the examples. */
export const actionTokens = (examples: readonly TrainingExample[]): number =>
  examples.reduce((sum, { mask }) => sum + maskedCount(mask), 0);

/** Tokens that the server reads of the examples, prompts included. */
export function inputTokens(examples: readonly TrainingExample[]): number {
  return examples.reduce((sum, { datum }) => sum + datum.lossFnInputs["target_tokens"]!.data.length, 0);
}

function split<Item>(items: readonly Item[], parts: number): Item[][] {
  return Array.from({ length: parts }, (_, index) =>
    items.slice(Math.floor((index * items.length) / parts), Math.floor(((index + 1) * items.length) / parts)),
  );
}
