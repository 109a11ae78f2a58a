// AdamW over an adapter's parameters (Loshchilov & Hutter 2019, algorithm 2, with decoupled weight decay), and clipping by the
// global norm. Arithmetic is in doubles; what is kept is float32 (the simulated engine's is not), so that saved state continues bit for bit.
import type { AdamSettings } from "./engine.ts";
import { EngineError } from "./errors.ts";

/** One parameter tensor with its moments and its gradient, all of the same length. */
export interface AdamParameter<Numbers = Float32Array | Float64Array> {
  value: Numbers;
  gradient: Numbers;
  firstMoment: Numbers;
  secondMoment: Numbers;
}

/** Refuses settings that would make every weight NaN. */
export function checkAdam(settings: AdamSettings): void {
  for (const [name, value] of Object.entries(settings))
    if (!Number.isFinite(value))
      throw new EngineError("engine/adam", `${name} is ${value}, so no step was taken. Give a finite number.`);
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
