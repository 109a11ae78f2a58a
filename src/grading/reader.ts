// Reads a value from a text, from left to right. What is common to the readers of literals; each says how its language writes values.
import type { Json } from "./json.ts";

/** The text is not one that this reader takes. */
export class Refused extends Error {}

/** Deeper values are refused: no real test nests this far, and recursion stays within any stack. */
export const maxDepth = 500;

export abstract class Reader {
  readonly text: string;
  position = 0;
  private depth = -1;

  constructor(text: string) {
    this.text = text;
  }

  /** The value that begins at the position, with `character`. */
  protected abstract read(character: string | undefined): Json;

  /** The value that the whole text is, or undefined when it is refused. */
  whole(): Json | undefined {
    try {
      const result = this.value();
      this.space();
      return this.position === this.text.length ? result : undefined;
    } catch (error) {
      if (error instanceof Refused) return undefined;
      throw error;
    }
  }

  /** The next value, after blanks. */
  value(): Json {
    if (++this.depth > maxDepth) throw new Refused();
    this.space();
    const value = this.read(this.text[this.position]);
    this.depth--;
    return value;
  }

  /** Calls `item` for each of what stands in brackets, with commas between them and perhaps one more; tells whether the last has one. */
  items(close: string, item: () => void): boolean {
    this.position++;
    let comma = false;
    for (let isFirst = true; !this.next(close); isFirst = false) {
      if (!isFirst && !comma) throw new Refused();
      item();
      comma = this.next(",");
    }
    return comma;
  }

  /** Skips blanks, then takes `character` if it is next. */
  next(character: string): boolean {
    this.space();
    if (this.text[this.position] !== character) return false;
    this.position++;
    return true;
  }

  /** Takes what a sticky pattern finds here. */
  take(pattern: RegExp): RegExpExecArray | null {
    pattern.lastIndex = this.position;
    const found = pattern.exec(this.text);
    if (found) this.position += found[0].length;
    return found;
  }

  space(): void {
    for (;;) {
      const code = this.text.charCodeAt(this.position);
      if (code !== 32 && code !== 10 && code !== 13 && code !== 9) return;
      this.position++;
    }
  }
}
