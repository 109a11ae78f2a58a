// Reads a Python literal as people find it in data sets that were written with repr(): quotes, True/False/None, lists, tuples,
// dicts and numbers. Anything else (names, calls, sets, bytes, f-strings, operators) is refused.
import { Cursor, maxDepth, Refused, readWhole } from "./cursor.ts";
import { type Json, JsonNumber, type JsonObject } from "./json.ts";

const integerPattern = /[+-]?(?:0+|[1-9](?:_?[0-9])*)(?![\w.])/y;
const floatPattern = /[+-]?(?:[0-9]+\.[0-9]*|\.[0-9]+|[0-9]+(?=[eE]))(?:[eE][+-]?[0-9]+)?(?![\w.])/y;
const simpleEscapes: Readonly<Record<string, string>> = {
  "\n": "",
  "\\": "\\",
  "'": "'",
  '"': '"',
  a: "\x07",
  b: "\b",
  f: "\f",
  n: "\n",
  r: "\r",
  t: "\t",
  v: "\v",
};

/** The value of a Python literal (tuples become arrays), or undefined. Never throws. */
export function readPythonLiteral(text: string): Json | undefined {
  const reader = new Reader(text);
  return readWhole(reader, () => reader.value(0));
}

class Reader extends Cursor {
  value(depth: number): Json {
    if (depth > maxDepth) throw new Refused();
    this.space();
    const character = this.text[this.position];
    if (character === "[") return this.sequence("]", depth).items;
    if (character === "(") {
      const { items, comma } = this.sequence(")", depth);
      // "(x)" is x in parentheses; "(x,)" and "()" are tuples.
      return items.length === 1 && !comma ? items[0]! : items;
    }
    if (character === "{") return this.dict(depth);
    if (character === "'" || character === '"') return this.string();
    for (const [word, value] of [
      ["True", true],
      ["False", false],
      ["None", null],
    ] as const) {
      if (this.text.startsWith(word, this.position) && !/\w/.test(this.text[this.position + word.length] ?? "")) {
        this.position += word.length;
        return value;
      }
    }
    return this.number();
  }

  sequence(close: string, depth: number): { items: Json[]; comma: boolean } {
    const items: Json[] = [];
    let comma = false;
    this.position++;
    while (!this.next(close)) {
      if (items.length > 0 && !comma) throw new Refused();
      items.push(this.value(depth + 1));
      comma = this.next(",");
    }
    return { items, comma };
  }

  dict(depth: number): JsonObject {
    const object: JsonObject = new Map();
    let comma = true;
    this.position++;
    while (!this.next("}")) {
      if (!comma) throw new Refused();
      const key = keyText(this.value(depth + 1));
      if (!this.next(":")) throw new Refused();
      object.set(key, this.value(depth + 1));
      comma = this.next(",");
    }
    return object;
  }

  string(): string {
    const { text } = this;
    const quote = text[this.position]!;
    if (text.startsWith(quote.repeat(3), this.position)) throw new Refused();
    let result = "";
    for (let index = this.position + 1; index < text.length; index++) {
      const character = text[index]!;
      if (character === quote) {
        this.position = index + 1;
        return result;
      }
      if (character === "\n") throw new Refused();
      if (character !== "\\") {
        result += character;
        continue;
      }
      const letter = text[++index] ?? "";
      const width = { x: 2, u: 4, U: 8 }[letter];
      if (width) {
        const digits = text.slice(index + 1, index + 1 + width);
        const code = Number.parseInt(digits, 16);
        if (digits.length !== width || !/^[0-9a-fA-F]+$/.test(digits) || code > 0x10ffff) throw new Refused();
        result += String.fromCodePoint(code);
        index += width;
      } else if (/[0-7]/.test(letter)) {
        const digits = /^[0-7]{1,3}/.exec(text.slice(index, index + 3))![0];
        result += String.fromCodePoint(Number.parseInt(digits, 8));
        index += digits.length - 1;
      } else if (letter === "N" || letter === "") throw new Refused();
      else result += simpleEscapes[letter] ?? `\\${letter}`;
    }
    throw new Refused();
  }

  number(): JsonNumber {
    integerPattern.lastIndex = this.position;
    const integer = integerPattern.exec(this.text);
    if (integer) {
      this.position += integer[0].length;
      const digits = integer[0].replaceAll("_", "").replace(/^\+/, "");
      return new JsonNumber(/^-?0+$/.test(digits) ? "0" : digits);
    }
    floatPattern.lastIndex = this.position;
    const float = floatPattern.exec(this.text);
    if (!float) throw new Refused();
    this.position += float[0].length;
    return new JsonNumber(jsonFloat(float[0]));
  }
}

/** JSON wants a digit on both sides of the point, no plus sign and no leading zeros. */
function jsonFloat(text: string): string {
  const [, sign, whole, fraction, exponent] = /^([+-]?)([0-9]*)\.?([0-9]*)([eE].*)?$/.exec(text)!;
  return `${sign === "-" ? "-" : ""}${whole!.replace(/^0+(?=.)/, "") || "0"}.${fraction || "0"}${exponent ?? ""}`;
}

/** A dict key as JSON would spell it. */
function keyText(key: Json): string {
  if (typeof key === "string") return key;
  if (key instanceof JsonNumber) return key.text;
  if (key === null || typeof key === "boolean") return String(key);
  throw new Refused();
}
