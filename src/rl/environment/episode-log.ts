// What an episode writes down: bounded, whatever it writes.

const maxEntries = 64;
const maxCharacters = 4096;

export class EpisodeLog {
  readonly #figures = new Map<string, number>();
  readonly #texts = new Map<string, string>();
  #left = 0;

  /** A number is a figure of the run, the last one of its name counts; anything else is text. What is too much is counted. */
  write(key: string, value: unknown): void {
    const name = String(key).slice(0, 80);
    const isFigure = typeof value === "number" && Number.isFinite(value);
    const entries: Map<string, unknown> = isFigure ? this.#figures : this.#texts;
    if (!entries.has(name) && entries.size >= maxEntries) this.#left++;
    else entries.set(name, isFigure ? value : textOf(value));
  }

  get figures(): Record<string, number> {
    return Object.fromEntries(this.#figures);
  }

  get texts(): Record<string, string> {
    const left =
      this.#left > 0 ? { "…": `${this.#left} more entries were left out: ${maxEntries} names are kept` } : {};
    return { ...Object.fromEntries(this.#texts), ...left };
  }

  get isEmpty(): boolean {
    return this.#figures.size + this.#texts.size === 0;
  }
}

function textOf(value: unknown): string {
  let text: string;
  try {
    text = typeof value === "string" ? value : (JSON.stringify(value) ?? String(value));
  } catch {
    text = String(value);
  }
  return text.slice(0, maxCharacters);
}
