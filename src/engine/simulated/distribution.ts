// What the simulated engine draws its pauses, lengths and rates from: a named distribution of numbers that are not negative, written
// as text so that it fits a command line. `none` (0), `constant:20`, `uniform:5:50`, `exponential:30` (mean), `lognormal:40:0.6`
// (median, sigma).
import type { Random } from "../../core/random.ts";
import { EngineError } from "../errors.ts";

/** Draws one number. */
export type Distribution = (random: Random) => number;

const shapes: Readonly<Record<string, { parameters: number; draw(random: Random, a: number, b: number): number }>> = {
  none: { parameters: 0, draw: () => 0 },
  constant: { parameters: 1, draw: (_random, value) => value },
  uniform: { parameters: 2, draw: (random, low, high) => low + (high - low) * random.float() },
  exponential: { parameters: 1, draw: (random, mean) => -mean * Math.log(1 - random.float()) },
  lognormal: { parameters: 2, draw: (random, median, sigma) => median * Math.exp(sigma * random.normal()) },
};

/** Reads a distribution; throws EngineError when the text is none. */
export function parseDistribution(text: string): Distribution {
  const [name = "", ...rest] = text.split(":");
  const shape = Object.hasOwn(shapes, name) ? shapes[name] : undefined;
  const numbers = rest.map((part) => (part.trim() === "" ? Number.NaN : Number(part)));
  if (!shape || numbers.length !== shape.parameters || !numbers.every((value) => Number.isFinite(value) && value >= 0))
    throw new EngineError(
      "engine/simulated-distribution",
      `"${text}" is no distribution. Write none, constant:VALUE, uniform:LOW:HIGH, exponential:MEAN or lognormal:MEDIAN:SIGMA.`,
    );
  const [a = 0, b = 0] = numbers;
  return (random) => shape.draw(random, a, b);
}
