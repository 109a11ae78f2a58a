// Reads JSON without losing anything: numbers keep their text (integers above 2^53 are common in tests), objects keep their
// order in a Map, and Python's NaN and Infinity are accepted. Writes it back as text that Python's json module reads.
import { maxDepth, Reader, Refused } from "./reader.ts";

/** A number as it was written. "NaN", "Infinity" and "-Infinity" are numbers too. */
export class JsonNumber {
  /** The number as it was written. */
  readonly text: string;

  constructor(text: string) {
    this.text = text;
  }
}

/** A JSON object, its keys in the order of the text. */
export type JsonObject = Map<string, Json>;
/** A JSON value whose numbers keep their digits. */
export type Json = null | boolean | string | JsonNumber | Json[] | JsonObject;

const numberPattern = /-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?/y;

/** The value of a JSON text, or undefined when it is not JSON. Never throws. */
export function readJson(text: string): Json | undefined {
  return new JsonReader(text).whole();
}

class JsonReader extends Reader {
  protected read(character: string | undefined): Json {
    switch (character) {
      case "{":
        return this.object();
      case "[":
        return this.array();
      case '"':
        return this.string();
      case "t":
        return this.word("true", true);
      case "f":
        return this.word("false", false);
      case "n":
        return this.word("null", null);
      case "N":
        return this.word("NaN", new JsonNumber("NaN"));
      case "I":
        return this.word("Infinity", new JsonNumber("Infinity"));
      default:
        return this.number();
    }
  }

  object(): JsonObject {
    const object: JsonObject = new Map();
    this.position++;
    if (this.next("}")) return object;
    do {
      this.space();
      if (this.text[this.position] !== '"') throw new Refused();
      const key = this.string();
      if (!this.next(":")) throw new Refused();
      object.set(key, this.value());
    } while (this.next(","));
    if (!this.next("}")) throw new Refused();
    return object;
  }

  array(): Json[] {
    const array: Json[] = [];
    this.position++;
    if (this.next("]")) return array;
    do array.push(this.value());
    while (this.next(","));
    if (!this.next("]")) throw new Refused();
    return array;
  }

  string(): string {
    const { text } = this;
    const start = this.position;
    let end = start;
    let escaped = false;
    for (;;) {
      end = text.indexOf('"', end + 1);
      if (end < 0) throw new Refused();
      let before = end - 1;
      while (text.charCodeAt(before) === 92) before--;
      if (before !== end - 1) escaped = true;
      if ((end - 1 - before) % 2 === 0) break;
    }
    this.position = end + 1;
    const inside = text.slice(start + 1, end);
    if (!escaped && !inside.includes("\\") && !hasControl(inside)) return inside;
    try {
      return JSON.parse(text.slice(start, end + 1)) as string;
    } catch {
      throw new Refused();
    }
  }

  number(): JsonNumber {
    if (this.text.startsWith("-Infinity", this.position)) return this.word("-Infinity", new JsonNumber("-Infinity"));
    const match = this.take(numberPattern);
    if (!match) throw new Refused();
    return new JsonNumber(match[0]);
  }

  word<Value>(word: string, value: Value): Value {
    if (!this.text.startsWith(word, this.position)) throw new Refused();
    this.position += word.length;
    return value;
  }
}

function hasControl(text: string): boolean {
  for (let index = 0; index < text.length; index++) if (text.charCodeAt(index) < 32) return true;
  return false;
}

/**
 * Turns a plain JavaScript value (for example from `JSON.parse`) into Json; what is already Json stays. Returns undefined for
 * values JSON does not have, for cycles and for absurd depth.
 */
export function toJson(value: unknown, depth = 0): Json | undefined {
  if (depth > maxDepth) return undefined;
  if (value === null || typeof value === "boolean" || typeof value === "string") return value;
  if (value instanceof JsonNumber) return value;
  if (typeof value === "bigint") return new JsonNumber(value.toString());
  if (typeof value === "number") return new JsonNumber(numberText(value));
  if (Array.isArray(value)) {
    const array: Json[] = [];
    for (const element of value) {
      const converted = toJson(element, depth + 1);
      if (converted === undefined) return undefined;
      array.push(converted);
    }
    return array;
  }
  if (typeof value !== "object") return undefined;
  const object: JsonObject = new Map();
  for (const [key, field] of value instanceof Map ? value : Object.entries(value)) {
    if (field === undefined) continue;
    const converted = toJson(field, depth + 1);
    if (converted === undefined || typeof key !== "string") return undefined;
    object.set(key, converted);
  }
  return object;
}

function numberText(value: number): string {
  if (Number.isInteger(value) && Math.abs(value) < 1e21) return BigInt(value).toString();
  return Object.is(value, -0) ? "0" : String(value);
}

/** The JSON text of a value, numbers exactly as they were written. */
export function writeJson(value: Json): string {
  if (value instanceof JsonNumber) return value.text;
  if (Array.isArray(value)) return `[${value.map(writeJson).join(", ")}]`;
  if (value instanceof Map)
    return `{${[...value].map(([key, field]) => `${JSON.stringify(key)}: ${writeJson(field)}`).join(", ")}}`;
  return JSON.stringify(value);
}
