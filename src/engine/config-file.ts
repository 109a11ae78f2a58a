// A model's config.json as the architectures read it: every value is checked, and what cannot be computed faithfully is refused by
// name; nothing is guessed.
import { EngineError } from "./errors.ts";

export class ConfigFile {
  readonly #path: string;
  readonly #json: Readonly<Record<string, unknown>>;

  constructor(path: string, json: Readonly<Record<string, unknown>>) {
    this.#path = path;
    this.#json = json;
  }

  /** A field; undefined where it is missing or null. */
  get(key: string): unknown {
    return this.#json[key] ?? undefined;
  }

  count(key: string, fallback?: number): number {
    const value = this.get(key) ?? fallback;
    if (!Number.isSafeInteger(value) || (value as number) < 1) throw this.wrong(key, "a positive integer");
    return value as number;
  }

  number(key: string, fallback: number): number {
    return this.#positive(key, this.get(key) ?? fallback);
  }

  #positive(key: string, value: unknown): number {
    if (typeof value === "number" && value > 0 && value < Number.POSITIVE_INFINITY) return value;
    throw this.wrong(key, "a positive number", value);
  }

  /** Refuses a file that asks for another value than the one that is computed. */
  mustBe(key: string, value: unknown, computed: unknown): void {
    if ((value ?? computed) !== computed) throw this.#notComputed(key, value);
  }

  #notComputed(key: string, value: unknown): EngineError {
    return new EngineError(
      "engine/unsupported-model",
      `${this.#path} has ${key}=${JSON.stringify(value)}, which the embedded engine does not compute. Choose a plain model of the same architecture, or serve this one elsewhere and set base_url.`,
    );
  }

  /** The angles of rotary positions, scaled as the file says, as transformers has them. */
  rope(headDim: number): number[] {
    const rope = (this.get("rope_parameters") ?? this.get("rope_scaling") ?? {}) as Readonly<Record<string, unknown>>;
    const kind = String(rope["rope_type"] ?? rope["type"] ?? "default");
    const theta = this.#positive("rope_theta", this.get("rope_theta") ?? rope["rope_theta"] ?? 10_000);
    const frequencies = ropeFrequencies(theta, headDim);
    const scaled = ropeScalings[kind];
    if (!scaled) throw this.#notComputed("rope_type", kind);
    return scaled(frequencies, (field) => {
      const fallback = field === "original_max_position_embeddings" ? this.get("max_position_embeddings") : undefined;
      return this.#positive(`rope_scaling.${field}`, rope[field] ?? fallback ?? null);
    });
  }

  wrong(key: string, wanted: string, value: unknown = this.get(key)): EngineError {
    return new EngineError(
      "engine/bad-config",
      `${this.#path} has ${key}=${JSON.stringify(value)}, where ${wanted} is needed. Correct it or download the file again.`,
    );
  }
}

/** In float32, as transformers has them. */
export function ropeFrequencies(theta: number, headDim: number): number[] {
  return Array.from({ length: headDim / 2 }, (_, i) =>
    Math.fround(1 / Math.fround(theta ** Math.fround((2 * i) / headDim))),
  );
}

type RopeScaling = (frequencies: number[], field: (name: string) => number) => number[];

/** How positions are scaled, by `rope_type`. Others change with a sequence's length, or attention's scores too. */
const ropeScalings: Readonly<Record<string, RopeScaling>> = {
  default: (frequencies) => frequencies,
  linear: (frequencies, field) => frequencies.map((frequency) => Math.fround(frequency / field("factor"))),
  llama3: llama3Frequencies,
};

/** Llama 3.1's: long waves are stretched by the factor, short ones kept, and those between are mixed. In float32, as transformers has it. */
function llama3Frequencies(frequencies: number[], field: (name: string) => number): number[] {
  const [factor, low, high] = [field("factor"), field("low_freq_factor"), field("high_freq_factor")];
  const context = field("original_max_position_embeddings");
  return frequencies.map((frequency) => {
    const wave = Math.fround(Math.fround(2 * Math.PI) / frequency);
    const stretched = Math.fround(frequency / factor);
    if (wave > Math.fround(context / low)) return stretched;
    if (wave < Math.fround(context / high)) return frequency;
    const smooth = Math.fround(Math.fround(Math.fround(context / wave) - low) / (high - low));
    return Math.fround(Math.fround(Math.fround((1 - smooth) * stretched)) + Math.fround(smooth * frequency));
  });
}
