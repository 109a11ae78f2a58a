// A place in a text that is read from left to right, and the end of the attempt when the text is not what was hoped for.

/** The text is not one that this reader takes. */
export class Refused extends Error {}

/** Deeper values are refused: no real test nests this far, and recursion stays within any stack. */
export const maxDepth = 500;

export class Cursor {
  readonly text: string;
  position = 0;

  constructor(text: string) {
    this.text = text;
  }

  /** Skips blanks, then takes `character` if it is next. */
  next(character: string): boolean {
    this.space();
    if (this.text[this.position] !== character) return false;
    this.position++;
    return true;
  }

  space(): void {
    for (;;) {
      const code = this.text.charCodeAt(this.position);
      if (code !== 32 && code !== 10 && code !== 13 && code !== 9) return;
      this.position++;
    }
  }
}

/** What a reader makes of the whole text, or undefined when it refuses it. */
export function readWhole<Value>(cursor: Cursor, value: () => Value): Value | undefined {
  try {
    const result = value();
    cursor.space();
    return cursor.position === cursor.text.length ? result : undefined;
  } catch (error) {
    if (error instanceof Refused) return undefined;
    throw error;
  }
}
