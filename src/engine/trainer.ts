// Trains one LoRA adapter on a base model: keeps its state, cuts batches into runs and adds up what the runs give. The runs of a
// call may be computed side by side; results are added in the order of the runs, so the sums do not depend on it.
import { type AdamParameter, adamStep, checkAdam, clipFactor, gradientNorm } from "./adam.ts";
import { type AdapterWeights, type DecoderConfig, parameterCount } from "./architecture.ts";
import type { AdapterState } from "./checkpoint.ts";
import type { AdamSettings, LoraSpec, LossTensor, TrainingBatch, TrainingOutput } from "./engine.ts";
import { EngineError } from "./errors.ts";
import { initialAdapter, loraScale, targetsOf } from "./lora.ts";
import { layOutSlots } from "./loss-slots.ts";
import { losses } from "./losses.ts";
import { type PackedRun, packBatch } from "./packing.ts";
import { deriveSequenceInput, type PreparedDatum, prepareBatch } from "./training-batch.ts";
import { packedFeeds, slotFeeds } from "./training-feeds.ts";
import { defaultMemoryLimit, needsRecompute, plannedTokens, type RunKind, runBytes } from "./training-memory.ts";
import type { PlainValue, RunOutputs, TrainingRunner } from "./training-runner.ts";

export interface TrainerOptions {
  /** About how many tokens one run of the graph takes; more need more memory. Chosen by the model's size when left out. */
  tokensPerRun?: number;
  /** Adapters merged into the weights while training: faster, and a second copy of the weights. Chosen by size when left out. */
  merge?: boolean;
  /** Layers computed again in the backward pass, to save memory. Chosen by a run's size when left out. */
  recompute?: boolean;
  /** The most bytes one run may take; a share of the machine's memory when left out. */
  memoryLimit?: number;
}

interface Parameter extends AdamParameter<Float32Array> {
  shape: readonly number[];
}

/** Weights of more floats than this are not copied. */
const maxMergedFloats = 64e6;
/** Logits of one chunk of the head take about this many floats. */
const chunkLogits = 2 ** 18;

export class Trainer {
  readonly #config: DecoderConfig;
  readonly #lora: LoraSpec;
  readonly #options: TrainerOptions;
  readonly #runner: TrainingRunner;
  readonly #parameters: ReadonlyMap<string, Parameter>;
  readonly #tokensPerRun: number;
  readonly #merge: boolean;
  /** Adam's steps so far. */
  #step = 0;

  /** Begins with a fresh adapter. */
  constructor(config: DecoderConfig, lora: LoraSpec, runner: TrainingRunner, options: TrainerOptions = {}) {
    this.#config = config;
    this.#lora = lora;
    this.#options = options;
    this.#runner = runner;
    this.#parameters = toParameters(initialAdapter(config, lora));
    this.#merge = options.merge ?? parameterCount(config) <= maxMergedFloats;
    this.#tokensPerRun = options.tokensPerRun ?? plannedTokens(config);
  }

  /** Computes losses and log-probabilities and, unless the batch is forward-only, adds to the adapter's gradient. */
  async forwardBackward(batch: TrainingBatch): Promise<TrainingOutput> {
    const loss = losses[batch.loss];
    let data = prepareBatch(batch);
    if (loss.sequence) {
      const { logprobs } = await this.#compute({ ...batch, forwardOnly: true }, data);
      data = deriveSequenceInput(loss, data, logprobs);
    }
    const { logprobs, gradients, total } = await this.#compute(batch, data);
    if (!Number.isFinite(total)) {
      throw new EngineError(
        "engine/non-finite-loss",
        `The loss is ${total}, so nothing was added to the gradient. A ratio exp(logprob - sampler's logprob) has overflowed: check that ` +
          "the sampler's log-probabilities belong to these tokens, and that advantages and weights are of ordinary size.",
      );
    }
    // Only now: a run that fails leaves the accumulated gradient as it was.
    for (const [name, gradient] of gradients) addTo(this.#parameters.get(name)!.gradient, gradient);
    return {
      logprobs: data.map(({ shape }, index): LossTensor => ({ data: logprobs[index]!, shape })),
      metrics: { "loss:sum": total },
    };
  }

  async #compute(batch: TrainingBatch, data: readonly PreparedDatum[]) {
    const loss = losses[batch.loss];
    const config = { ...loss.config, ...batch.lossConfig };
    const logprobs = data.map(({ targets }) => new Float32Array(targets.length));
    const gradients = new Map<string, Float32Array>();
    let total = 0;

    const shared = this.#adapterFeeds();
    for (const [name, setting] of Object.entries(config)) {
      shared[`config.${name}`] = { data: Float32Array.of(setting), shape: [] };
    }
    const targets = targetsOf(this.#lora);
    const maxChunk = Math.max(64, Math.floor(chunkLogits / this.#config.vocabSize));
    const planned = packBatch(
      data.map(({ tokens }) => tokens),
      this.#tokensPerRun,
    ).map((run) => ({ run, ...this.#runKind(run, !batch.forwardOnly), slots: layOutSlots(loss, data, run, maxChunk) }));
    const runs = planned.map(({ run, backward, recompute, bytes, slots }) => {
      const blocks = run.blocks.map(({ kind }) => kind);
      const idle = slots.idle !== undefined;
      return {
        graph: { targets, loss: batch.loss, backward, recompute, blocks, idle, merge: this.#merge },
        feeds: { ...packedFeeds(run), ...slotFeeds(slots, loss.inputs) },
        bytes,
      };
    });
    for (const [at, outputs] of (await this.#runner.run(shared, runs)).entries()) {
      const { run, slots } = planned[at]!;
      const values = outputs["logprobs"]!;
      const idleValues = outputs["idle_logprobs"] ?? values;
      for (const [i, { index }] of run.sequences.entries()) {
        const [target, places] = [logprobs[index]!, slots.places[i]!];
        for (let position = 0; position < places.length; position++) {
          const place = places[position]!;
          target[position] = place < values.length ? values[place]! : idleValues[place - values.length]!;
        }
      }
      for (const slotLoss of outputs["losses"]!) total += slotLoss;
      if (!batch.forwardOnly) collectGradients(gradients, outputs);
    }
    return { logprobs, gradients, total };
  }

  /** Takes one Adam step with the accumulated gradient and clears it. */
  optimStep(settings: AdamSettings): Record<string, number> {
    checkAdam(settings);
    const parameters = [...this.#parameters.values()];
    const norm = gradientNorm(parameters);
    if (!Number.isFinite(norm)) {
      for (const { gradient } of parameters) gradient.fill(0);
      throw new EngineError(
        "engine/non-finite-gradient",
        `The accumulated gradient has the norm ${norm}, so no step was taken and it was cleared. ` +
          "Check advantages, weights and the sampler's log-probabilities for extreme values.",
      );
    }
    const factor = clipFactor(norm, settings.gradClipNorm);
    adamStep(parameters, ++this.#step, factor, settings);
    for (const { gradient } of parameters) gradient.fill(0);
    return { grad_norm: norm, learning_rate: settings.learningRate, step: this.#step };
  }

  /** A copy of the adapter's weights: training on does not change it. */
  weights(): AdapterWeights {
    return this.#copies("value");
  }

  /** A copy of the gradient that the next step will take. */
  accumulatedGradient(): AdapterWeights {
    return this.#copies("gradient");
  }

  /** A copy of weights and optimizer state. A gradient that was accumulated and not applied is not part of it. */
  exportState(): AdapterState {
    const [firstMoment, secondMoment] = [this.#copies("firstMoment"), this.#copies("secondMoment")];
    return { weights: this.weights(), optimizer: { step: this.#step, firstMoment, secondMoment } };
  }

  /** Takes over the weights of such an adapter, and its optimizer's state (a fresh one when none is given). Clears the gradient. */
  importState({ weights, optimizer }: Pick<AdapterState, "weights"> & Partial<AdapterState>): void {
    for (const [name, parameter] of this.#parameters) {
      parameter.value.set(weights.get(name)!.data);
      parameter.gradient.fill(0);
      for (const moment of ["firstMoment", "secondMoment"] as const) {
        if (optimizer) parameter[moment].set(optimizer[moment].get(name)!.data);
        else parameter[moment].fill(0);
      }
    }
    this.#step = optimizer?.step ?? 0;
  }

  /** Refuses a run that does not fit into memory even when its layers are recomputed. */
  #runKind(run: PackedRun, backward: boolean): RunKind & { bytes: number } {
    const recompute = backward && (this.#options.recompute ?? needsRecompute(this.#config, run, backward));
    const limit = this.#options.memoryLimit ?? defaultMemoryLimit();
    const bytes = runBytes(this.#config, run, { backward, recompute });
    if (bytes <= limit) return { backward, recompute, bytes };
    const gib = (value: number): string => `${(value / 2 ** 30).toFixed(1)} GiB`;
    const { index, rows } = run.sequences[0]!;
    throw new EngineError(
      "engine/out-of-memory",
      `Datum ${index} with ${rows.length} tokens would take about ${gib(bytes)} to train on, and ${gib(limit)} are allowed. ` +
        "Shorten the sequences, or use a machine with more memory.",
    );
  }

  #adapterFeeds(): Record<string, PlainValue> {
    const feeds: Record<string, PlainValue> = {
      lora_scale: { data: Float32Array.of(loraScale(this.#lora.rank)), shape: [] },
    };
    for (const [name, { value, shape }] of this.#parameters) feeds[name] = { data: value, shape };
    return feeds;
  }

  #copies(field: keyof AdamParameter): AdapterWeights {
    return new Map(
      [...this.#parameters].map(([name, { shape, [field]: data }]) => [name, { data: data.slice(), shape }]),
    );
  }
}

function toParameters(weights: AdapterWeights): Map<string, Parameter> {
  const zeroed = (data: Float32Array): Float32Array => new Float32Array(data.length);
  return new Map(
    [...weights].map(([name, { data, shape }]) => [
      name,
      { shape, value: data, gradient: zeroed(data), firstMoment: zeroed(data), secondMoment: zeroed(data) },
    ]),
  );
}

function collectGradients(gradients: Map<string, Float32Array>, outputs: RunOutputs): void {
  for (const [output, result] of Object.entries(outputs)) {
    if (!output.startsWith("grad.")) continue;
    const name = output.slice("grad.".length);
    const total = gradients.get(name);
    if (total) addTo(total, result);
    else gradients.set(name, result);
  }
}

function addTo(total: Float32Array, values: Float32Array): void {
  for (let i = 0; i < total.length; i++) total[i]! += values[i]!;
}
