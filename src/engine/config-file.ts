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

  number(key: string, fallback: number, value: unknown = this.get(key) ?? fallback): number {
    if (typeof value === "number" && value > 0 && value < Number.POSITIVE_INFINITY) return value;
    throw this.wrong(key, "a positive number");
  }

  /** Refuses a file that asks for another value than the one that is computed. */
  mustBe(key: string, value: unknown, computed: unknown): void {
    if ((value ?? computed) === computed) return;
    throw new EngineError(
      "engine/unsupported-model",
      `${this.#path} has ${key}=${JSON.stringify(value)}, which the embedded engine does not compute. Choose a plain model of the same architecture, or serve this one elsewhere and set base_url.`,
    );
  }

  /** The angles of rotary positions that are not scaled, as transformers has them. */
  plainRope(headDim: number): number[] {
    const rope = (this.get("rope_parameters") ?? this.get("rope_scaling") ?? {}) as Readonly<Record<string, unknown>>;
    this.mustBe("rope_type", rope["rope_type"] ?? rope["type"], "default");
    const theta = this.get("rope_theta") ?? rope["rope_theta"] ?? 10_000;
    return ropeFrequencies(this.number("rope_theta", 10_000, theta), headDim);
  }

  wrong(key: string, wanted: string): EngineError {
    return new EngineError(
      "engine/bad-config",
      `${this.#path} has ${key}=${JSON.stringify(this.get(key))}, where ${wanted} is needed. Correct it or download the file again.`,
    );
  }
}

/** In float32, as transformers has them. */
export function ropeFrequencies(theta: number, headDim: number): number[] {
  return Array.from({ length: headDim / 2 }, (_, i) =>
    Math.fround(1 / Math.fround(theta ** Math.fround((2 * i) / headDim))),
  );
}
