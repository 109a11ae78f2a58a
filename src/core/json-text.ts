// Reads JSON as people write it, and says where it is wrong. `JSON.parse` words its errors differently in every version of Node and
// often names no place; it knows no comments. Data goes through `JSON.parse`; this is for config files, and to say why that failed.

/** Text that is not JSON: `line` and `column` count from 1. */
export class JsonTextError extends Error {
  readonly line: number;
  readonly column: number;

  constructor(text: string, offset: number, what: string) {
    super(what);
    const before = text.slice(0, offset);
    this.line = before.split("\n").length;
    this.column = offset - before.lastIndexOf("\n");
  }
}

/** A value, and the line on which each key of its outermost object stands. */
export interface LocatedJson {
  value: unknown;
  keyLines: Map<string, number>;
}

/** Parses strict JSON; with `comments`, also `//` and block comments and a comma after the last item. Throws JsonTextError. */
export function readJsonText(text: string, options: { comments?: boolean } = {}): LocatedJson {
  return new Reader(text, options.comments ?? false).whole();
}

/** Why a text that `JSON.parse` refuses is no JSON, and where; undefined when it is. */
export function jsonProblem(text: string): JsonTextError | undefined {
  try {
    readJsonText(text);
    return undefined;
  } catch (error) {
    if (error instanceof JsonTextError) return error;
    throw error;
  }
}

/** Why a text that should be the JSON of an object is not, with the column. */
export function whyNoObject(text: string): string {
  const problem = jsonProblem(text);
  return problem ? `column ${problem.column}: ${problem.message}` : "it is no JSON object";
}

const deepest = 500;

class Reader {
  readonly #text: string;
  readonly #comments: boolean;
  readonly #keyLines = new Map<string, number>();
  #at = 0;
  #depth = 0;

  constructor(text: string, comments: boolean) {
    this.#text = text;
    this.#comments = comments;
  }

  whole(): LocatedJson {
    const value = this.#value();
    this.#skip();
    if (this.#at < this.#text.length) throw this.#wrong("the JSON ends before this");
    return { value, keyLines: this.#keyLines };
  }

  #value(): unknown {
    this.#skip();
    switch (this.#text[this.#at]) {
      case "{":
        return this.#nested(() => this.#object());
      case "[":
        return this.#nested(() => this.#array());
      case '"':
        return this.#string();
      default:
        return this.#word();
    }
  }

  #nested<T>(read: () => T): T {
    if (++this.#depth > deepest) throw this.#wrong("brackets are nested too deeply");
    this.#at++;
    const value = read();
    this.#depth--;
    return value;
  }

  #object(): Record<string, unknown> {
    const result: Record<string, unknown> = {};
    for (let first = true; !this.#closes("}", first); first = false) {
      if (this.#text[this.#at] !== '"') throw this.#wrong('a key in double quotes or "}" is expected');
      const start = this.#at;
      const key = this.#string();
      if (this.#depth === 1) this.#keyLines.set(key, new JsonTextError(this.#text, start, "").line);
      this.#skip();
      if (this.#text[this.#at] !== ":") throw this.#wrong(`":" is expected after ${JSON.stringify(key)}`);
      this.#at++;
      // A plain assignment would give "__proto__" its special meaning.
      Object.defineProperty(result, key, {
        value: this.#value(),
        enumerable: true,
        writable: true,
        configurable: true,
      });
    }
    return result;
  }

  #array(): unknown[] {
    const result: unknown[] = [];
    for (let first = true; !this.#closes("]", first); first = false) result.push(this.#value());
    return result;
  }

  /** Reads up to the next item; true when there is none. */
  #closes(end: string, first: boolean): boolean {
    this.#skip();
    if (this.#text[this.#at] === end) {
      this.#at++;
      return true;
    }
    if (first) return false;
    if (this.#text[this.#at] !== ",") throw this.#wrong(`"," or ${JSON.stringify(end)} is expected`);
    const comma = this.#at++;
    this.#skip();
    if (this.#text[this.#at] !== end) return false;
    if (!this.#comments) throw this.#wrong("there is nothing after this comma", comma);
    this.#at++;
    return true;
  }

  /** Letter by letter: texts of tests are megabytes long, too much for a pattern that backtracks. */
  #string(): string {
    const start = this.#at;
    for (let at = start + 1; at < this.#text.length; at++) {
      const letter = this.#text[at]!;
      if (letter === '"') {
        this.#at = at + 1;
        return JSON.parse(this.#text.slice(start, this.#at)) as string;
      }
      if (letter < " ") {
        const name = letter === "\n" ? "a line break" : `the control character ${JSON.stringify(letter)}`;
        throw this.#wrong(`${name} stands inside a text; write it as ${JSON.stringify(letter).slice(1, -1)}`, at);
      }
      if (letter !== "\\") continue;
      const spelled = /^\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4})/.exec(this.#text.slice(at, at + 6))?.[0];
      if (spelled === undefined)
        throw this.#wrong(`"${this.#text.slice(at, at + 2)}" is no escape; write a backslash as \\\\`, at);
      at += spelled.length - 1;
    }
    throw this.#wrong("the text that begins here has no closing quote", start);
  }

  #word(): unknown {
    const pattern = /[^\s,:{}[\]"/]+/y;
    pattern.lastIndex = this.#at;
    const word = pattern.exec(this.#text)?.[0] ?? "";
    const isNumber = /^-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?$/.test(word);
    if (!isNumber && !["true", "false", "null"].includes(word)) {
      const shown = word === "" ? this.#text[this.#at] : word.slice(0, 40);
      throw this.#wrong(
        shown === undefined
          ? "the text ends where a value is expected"
          : `${JSON.stringify(shown)} is no JSON value${/^'/.test(shown) ? "; texts stand in double quotes" : ""}`,
      );
    }
    this.#at += word.length;
    return JSON.parse(word);
  }

  /** Past blanks and, where they may stand, comments. */
  #skip(): void {
    const pattern = this.#comments ? /(?:[ \t\r\n]|\/\/[^\n]*|\/\*[\s\S]*?\*\/)*/y : /[ \t\r\n]*/y;
    pattern.lastIndex = this.#at;
    pattern.exec(this.#text);
    this.#at = pattern.lastIndex;
  }

  #wrong(what: string, at = this.#at): JsonTextError {
    const ends = at >= this.#text.length && !what.startsWith("the text ends");
    return new JsonTextError(this.#text, Math.min(at, this.#text.length), ends ? `the text ends; ${what}` : what);
  }
}
