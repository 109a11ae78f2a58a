// AdamW over an adapter's parameters (Loshchilov & Hutter 2019, algorithm 2, with decoupled weight decay), and clipping by the
// global norm. Arithmetic is in doubles; what is kept is float32, so that saved state continues bit for bit.
import type { AdamSettings } from "./engine.ts";
import { EngineError } from "./errors.ts";

/** One parameter tensor with its moments and its gradient, all of the same length. */
export interface AdamParameter {
  value: Float32Array;
  gradient: Float32Array;
  firstMoment: Float32Array;
  secondMoment: Float32Array;
}

/** Refuses settings that would put NaN into the weights. */
export function checkAdam(settings: AdamSettings): void {
  const { beta1, beta2, epsilon, weightDecay, learningRate, gradClipNorm } = settings;
  const wrong = (name: string, value: number, range: string): EngineError =>
    new EngineError("engine/adam-settings", `Adam's ${name} is ${value}. Give a number ${range}.`);
  const fromZero = { learning_rate: learningRate, weight_decay: weightDecay, grad_clip_norm: gradClipNorm };
  for (const [name, value] of Object.entries(fromZero)) {
    if (!(value >= 0 && Number.isFinite(value))) throw wrong(name, value, "from 0");
  }
  for (const [name, value] of Object.entries({ beta1, beta2 })) {
    if (!(value >= 0 && value < 1)) throw wrong(name, value, "from 0 up to, but not including, 1");
  }
  if (!(epsilon > 0 && Number.isFinite(epsilon))) throw wrong("eps", epsilon, "above 0");
}

/** The length of all gradients taken as one vector. */
export function gradientNorm(parameters: Iterable<Pick<AdamParameter, "gradient">>): number {
  let total = 0;
  for (const { gradient } of parameters) {
    let partial = 0;
    for (let i = 0; i < gradient.length; i++) partial += gradient[i]! * gradient[i]!;
    total += partial;
  }
  return Math.sqrt(total);
}

/** The factor that brings a gradient of this norm down to the limit. */
export function clipFactor(norm: number, gradClipNorm: number): number {
  return gradClipNorm > 0 && norm > gradClipNorm ? gradClipNorm / norm : 1;
}

/** Takes step number `step` (from 1), with every gradient multiplied by `factor`. */
export function adamStep(
  parameters: Iterable<AdamParameter>,
  step: number,
  factor: number,
  { learningRate, beta1, beta2, epsilon, weightDecay }: AdamSettings,
): void {
  const stepSize = learningRate / (1 - beta1 ** step);
  const secondCorrection = Math.sqrt(1 - beta2 ** step);
  const kept = 1 - learningRate * weightDecay;
  for (const { value, gradient, firstMoment, secondMoment } of parameters) {
    for (let i = 0; i < value.length; i++) {
      const g = gradient[i]! * factor;
      const m = beta1 * firstMoment[i]! + (1 - beta1) * g;
      const v = beta2 * secondMoment[i]! + (1 - beta2) * g * g;
      firstMoment[i] = m;
      secondMoment[i] = v;
      value[i] = kept * value[i]! - (stepSize * m) / (Math.sqrt(v) / secondCorrection + epsilon);
    }
  }
}
