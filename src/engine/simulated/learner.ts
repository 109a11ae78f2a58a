// One model of the simulated engine in training: its adapter, the gradient accumulated since the last step, Adam's moments. The
// losses are those of the Tinker API, sums over positions and data, with exact gradients.

import type { LossTerm } from "../../protocol/losses.ts";
import { adamStep, checkAdam, clipFactor, gradientNorm } from "../adam.ts";
import type { AdamSettings, LossTensor, TrainingBatch, TrainingOutput } from "../engine.ts";
import { losses } from "../losses.ts";
import { ClassBigram, classOf, contextClasses, contextOf, tokenClasses, weightCount } from "./class-bigram.ts";

export class Learner {
  readonly #base: Float64Array;
  readonly #vocabSize: number;
  readonly adapter = new Float64Array(weightCount);
  readonly firstMoment = new Float64Array(weightCount);
  readonly secondMoment = new Float64Array(weightCount);
  /** Optimizer steps since the moments were zero. */
  steps = 0;
  readonly #gradient = new Float64Array(weightCount);
  #model: ClassBigram;

  constructor(base: Float64Array, vocabSize: number) {
    this.#base = base;
    this.#vocabSize = vocabSize;
    this.#model = new ClassBigram(base, this.adapter, vocabSize);
  }

  /** The distribution of the weights as they are now; later training leaves it alone. */
  get model(): ClassBigram {
    return this.#model;
  }

  /** To be called after the adapter was replaced. */
  weightsChanged(): void {
    this.#model = new ClassBigram(this.#base, this.adapter, this.#vocabSize);
    this.#gradient.fill(0);
  }

  forwardBackward(batch: TrainingBatch): TrainingOutput {
    const model = this.#model;
    // dLoss/dlogp summed per (context class, token class); the softmax part of the gradient follows from the row sums.
    const direct = new Float64Array(weightCount);
    let loss = 0;
    const logprobs: LossTensor[] = [];
    for (const { tokens, lossInputs } of batch.data) {
      const targets = lossInputs["target_tokens"]!;
      const perPosition = targets.data.length / tokens.length;
      const values = new Float32Array(targets.data.length);
      const before = (index: number) => tokens[Math.floor(index / perPosition)]!;
      for (let index = 0; index < values.length; index++)
        values[index] = model.logprob(before(index), targets.data[index]!);
      const term = lossTerm(batch, lossInputs, values);
      for (let index = 0; index < values.length; index++) {
        const previous = before(index);
        const target = targets.data[index]!;
        const { value, slope } = term(index);
        loss += value;
        direct[contextOf(previous) * tokenClasses + classOf(target)]! += slope;
      }
      logprobs.push({ data: values, shape: targets.shape });
    }
    if (!batch.forwardOnly) this.#accumulate(direct);
    return { logprobs, metrics: { "loss:sum": loss } };
  }

  #accumulate(direct: Float64Array): void {
    for (let context = 0; context < contextClasses; context++) {
      const start = context * tokenClasses;
      let total = 0;
      for (let k = start; k < start + tokenClasses; k++) total += direct[k]!;
      if (total === 0 && direct.subarray(start, start + tokenClasses).every((slope) => slope === 0)) continue;
      for (let k = start; k < start + tokenClasses; k++)
        this.#gradient[k]! += direct[k]! - total * Math.exp(this.#model.classLogprobs[k]!);
    }
  }

  optimStep(adam: AdamSettings): Readonly<Record<string, number>> {
    checkAdam(adam);
    const { firstMoment, secondMoment } = this;
    const parameters = [{ value: this.adapter, gradient: this.#gradient, firstMoment, secondMoment }];
    const norm = gradientNorm(parameters);
    adamStep(parameters, ++this.steps, clipFactor(norm, adam.gradClipNorm), adam);
    this.weightsChanged();
    return { grad_norm: norm, learning_rate: adam.learningRate, step: this.steps };
  }
}

/** The loss of each position of a datum and its derivative by the learner's logprob. */
function lossTerm(
  batch: TrainingBatch,
  lossInputs: Readonly<Record<string, LossTensor>>,
  logprobs: Float32Array,
): (index: number) => LossTerm {
  const loss = losses[batch.loss];
  const config = { ...loss.config, ...batch.lossConfig };
  const inputs = Object.fromEntries(loss.inputs.map((name) => [name, lossInputs[name]!.data as Float32Array]));
  if (loss.sequence) inputs[loss.sequence.input] = loss.sequence.derive(logprobs, inputs);
  return (index) =>
    loss.term(
      logprobs[index]!,
      loss.inputs.map((name) => inputs[name]![index]!),
      config,
    );
}
