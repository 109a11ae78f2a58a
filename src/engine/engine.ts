// The interface between the Tinker-compatible server and whatever trains and samples behind it. An engine takes token ids and
// typed arrays; it knows nothing of HTTP, JSON or text. Calls that concern one model are made one after another, in the order of
// the client's sequence numbers; calls for different models and samplers may overlap. What an engine is given has been checked by
// the server: shapes, ranges and settings are as these types say.
import type { LossName } from "../protocol/losses.ts";
import type { PromptAnswers, SampleQuestions, SequenceAnswers } from "../protocol/questions.ts";
import type { DrawSettings } from "../protocol/sampling.ts";

export interface EngineModelInfo {
  /** The name clients ask for, e.g. "Qwen/Qwen3-4B-Instruct-2507" or "nano-coder". */
  name: string;
  maxContextLength: number;
  vocabSize: number;
  /** What a client loads its tokenizer from: a Hugging Face id or a local folder. */
  tokenizerId?: string;
}

export interface LoraSpec {
  rank: number;
  seed?: number;
  trainAttn: boolean;
  trainMlp: boolean;
  trainUnembed: boolean;
}

export interface ModelSpec {
  baseModel: string;
  lora: LoraSpec;
}

/** One training sequence. Every array of `lossInputs` is aligned with `tokens` (or has rows of K values for soft targets). */
export interface TrainingDatum {
  tokens: Int32Array;
  lossInputs: Readonly<Record<string, LossTensor>>;
}

export interface LossTensor {
  /** Row-major. Integer tensors hold token ids, which fit a 32-bit integer. */
  data: Float32Array | Int32Array;
  shape: readonly number[];
}

export interface TrainingBatch {
  data: readonly TrainingDatum[];
  loss: LossName;
  lossConfig: Readonly<Record<string, number>>;
  /** True: no gradient is accumulated. */
  forwardOnly: boolean;
}

export interface TrainingOutput {
  /** Per datum, per position: the learner's log-probability of the target. */
  logprobs: readonly LossTensor[];
  /** Names are `name:reduction`; `loss:sum` is always there. */
  metrics: Readonly<Record<string, number>>;
}

export interface AdamSettings {
  learningRate: number;
  beta1: number;
  beta2: number;
  epsilon: number;
  weightDecay: number;
  /** 0: no clipping. */
  gradClipNorm: number;
}

export interface SampleSettings extends DrawSettings {
  maxTokens: number | undefined;
  seed: number | undefined;
  stopTokens: readonly number[];
  /** False: an end-of-sequence token that the engine itself knows does not end a sample either. */
  stopAtEnd?: boolean;
  /** The engine calls back with a sample's tokens so far; true ends that sample (stop strings live in the server, which has the tokenizer). */
  shouldStop?: (tokens: readonly number[]) => boolean;
}

export interface SampleRequest extends SampleQuestions {
  prompt: Int32Array;
  numSamples: number;
  settings: SampleSettings;
}

export interface SampledTokens extends SequenceAnswers {
  stopReason: "stop" | "length";
  /** The generated part only, the stop token included at its end. */
  tokens: Int32Array;
  logprobs: Float32Array;
}

export interface SampleOutput extends PromptAnswers {
  sequences: SampledTokens[];
  /** Tokens of the prompt that had been computed for an earlier one. */
  cachedTokens?: number | undefined;
}

/** Where a sampler's weights come from. */
export type SamplerSource =
  | { kind: "base"; baseModel: string }
  | { kind: "saved"; baseModel: string; dir: string }
  | { kind: "live"; modelId: string };

/** A checkpoint folder is complete when the call that writes it resolves; the server moves it into place atomically. */
export interface Engine {
  readonly models: readonly EngineModelInfo[];

  createModel(modelId: string, spec: ModelSpec): Promise<void>;
  unloadModel(modelId: string): Promise<void>;

  forwardBackward(modelId: string, batch: TrainingBatch): Promise<TrainingOutput>;
  /** Applies the accumulated gradient and clears it. Metric names are free. */
  optimStep(modelId: string, adam: AdamSettings): Promise<Readonly<Record<string, number>>>;

  /** Writes weights and optimizer state into `dir`, an existing empty folder. */
  saveState(modelId: string, dir: string): Promise<void>;
  loadState(modelId: string, dir: string, options: { optimizer: boolean }): Promise<void>;
  /** Writes the weights alone into `dir`, for sampling and download (PEFT's layout). */
  saveForSampler(modelId: string, dir: string): Promise<void>;

  /** Makes a frozen sampler: what is trained later never changes what it returns. */
  createSampler(samplerId: string, source: SamplerSource): Promise<void>;
  releaseSampler(samplerId: string): Promise<void>;
  sample(samplerId: string, request: SampleRequest, options?: { signal?: AbortSignal }): Promise<SampleOutput>;

  close(): Promise<void>;
}
