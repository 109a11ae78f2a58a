// Makes, once and small, the calls that a training run makes: an adapter, a sampler of it, a sample with a seed, a forward and backward
// pass. What a run would trip over in its first minute shows here; no optimizer step is taken.
import type { ServiceClient, TrainingClient } from "../client/index.ts";
import { Random } from "../core/random.ts";
import type { TrainConfig } from "./config.ts";
import { advantagesOf, joinTurns, lossDatum, makeExample } from "./datums.ts";
import { masked } from "./mask.ts";

interface ProbeSettings extends Pick<TrainConfig, "model_name" | "lora_rank" | "seed" | "loss_fn" | "loss_fn_config"> {
  prompt: readonly number[] | Int32Array;
  maxTokens: number;
  stop: string[] | number[];
  /** The adapter, where it was made before. */
  made?: TrainingClient | undefined;
  /** As the run will: see `fixedSeeds` of train.ts. */
  fixedSeeds: boolean;
  signal: AbortSignal;
}

export interface ProbedSample {
  training: TrainingClient;
  tokens: Int32Array;
  logprobs: Float32Array;
  /** Of the sample itself, on a sampler that is ready. */
  seconds: number;
}

/** A short sample that takes longer than this waited for something else than itself. */
const compilingSeconds = 5;

/** Two short samples, as one request of the run's kind; the first of them is returned. */
export async function probeSample(service: ServiceClient, settings: ProbeSettings): Promise<ProbedSample> {
  const { signal, prompt, stop, fixedSeeds } = settings;
  const { model_name: baseModel, lora_rank: rank, seed: first } = settings;
  const training = settings.made ?? (await service.createLoraTrainingClient({ baseModel, rank, seed: first, signal }));
  const sampler = await training.saveWeightsAndGetSamplingClient({ signal });
  const seed = fixedSeeds ? new Random("probe", settings.seed).uint32() : undefined;
  const samplingParams = { maxTokens: settings.maxTokens, temperature: 1, seed, stop };
  const timed = async () => {
    const started = performance.now();
    const { sequences } = await sampler.sample({ prompt: [...prompt], numSamples: 2, samplingParams, signal });
    return { ...sequences[0]!, seconds: (performance.now() - started) / 1000 };
  };
  const cold = await timed();
  // A server that compiles does so at a first request only.
  const { tokens, logprobs = new Float32Array(), seconds } = cold.seconds < compilingSeconds ? cold : await timed();
  return { training, tokens, logprobs, seconds };
}

/** The loss of that sample, with its gradient; resolves to how far the trainer's log-probabilities are from the sampler's, at most. */
export async function probeTraining(
  { training, tokens, logprobs }: ProbedSample,
  settings: ProbeSettings,
): Promise<number> {
  const { prompt, loss_fn: lossFn, loss_fn_config: lossFnConfig, signal } = settings;
  const sequence = joinTurns([{ context: prompt, tokens, logprobs }]);
  const example = makeExample(sequence, advantagesOf(sequence, 1));
  const output = await training.forwardBackward([lossDatum(example, lossFn)], lossFn, { lossFnConfig, signal });
  const trained = output.lossFnOutputs[0]?.["logprobs"]?.data;
  if (!(trained instanceof Float32Array)) return Number.NaN;
  return masked(trained, sequence.mask).reduce(
    (most, logprob, index) => Math.max(most, Math.abs(logprob - logprobs[index]!)),
    0,
  );
}
