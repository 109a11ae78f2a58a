// Reads a Python literal as people find it in data sets that were written with repr(): quotes, True/False/None, lists, tuples,
// dicts and numbers. Anything else (names, calls, sets, bytes, f-strings, operators) is refused.
import { type Json, JsonNumber, type JsonObject } from "./json.ts";
import { Reader, Refused } from "./reader.ts";

const integerPattern = /[+-]?(?:0+|[1-9](?:_?[0-9])*)(?![\w.])/y;
const floatPattern = /[+-]?(?:[0-9]+\.[0-9]*|\.[0-9]+|[0-9]+(?=[eE]))(?:[eE][+-]?[0-9]+)?(?![\w.])/y;
const word = /(?:True|False|None)(?!\w)/y;
const words: Readonly<Record<string, Json>> = { True: true, False: false, None: null };
const simpleEscapes: Readonly<Record<string, string>> = {
  ...{ "\n": "", "\\": "\\", "'": "'", '"': '"' },
  ...{ a: "\x07", b: "\b", f: "\f", n: "\n", r: "\r", t: "\t", v: "\v" },
};

/** The value of a Python literal (tuples become arrays), or undefined. Never throws. */
export function readPythonLiteral(text: string): Json | undefined {
  return new PythonReader(text).whole();
}

class PythonReader extends Reader {
  protected read(character: string | undefined): Json {
    if (character === "[" || character === "(") {
      const items: Json[] = [];
      const comma = this.items(character === "[" ? "]" : ")", () => items.push(this.value()));
      // "(x)" is x in parentheses; "(x,)" and "()" are tuples.
      return character === "(" && items.length === 1 && !comma ? items[0]! : items;
    }
    if (character === "{") return this.dict();
    if (character === "'" || character === '"') return this.string();
    const constant = this.take(word);
    return constant ? words[constant[0]]! : this.number();
  }

  dict(): JsonObject {
    const object: JsonObject = new Map();
    this.items("}", () => {
      const key = keyText(this.value());
      if (!this.next(":")) throw new Refused();
      object.set(key, this.value());
    });
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
    const integer = this.take(integerPattern);
    if (integer) {
      const digits = integer[0].replaceAll("_", "").replace(/^\+/, "");
      return new JsonNumber(/^-?0+$/.test(digits) ? "0" : digits);
    }
    const float = this.take(floatPattern);
    if (!float) throw new Refused();
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
