// JSON text with what JavaScript's own parser loses and a template can show: the order of keys that look like numbers, and how a
// number is spelled (`5.0`, `1e+16`, integers beyond 2^53).
import { messageOf } from "../../core/errors.ts";
import { RendererError } from "../errors.ts";

/** A number and its spelling. */
export class JsonNumber {
  readonly text: string;
  constructor(text: string) {
    this.text = text;
  }
}

export type JsonValue = null | boolean | string | JsonNumber | JsonValue[] | Map<string, JsonValue>;

const token = /\s*(?:("(?:[^"\\]|\\.)*")|(-?\d[\d.eE+-]*)|([[\]{},:])|(true|false|null))\s*/gy;

/** Reads JSON text; `what` names it in the error. */
export function parseJson(text: string, what: string): JsonValue {
  try {
    // Only the validity: what follows takes the text apart knowing that it is JSON.
    JSON.parse(text);
  } catch (error) {
    throw new RendererError(
      "renderer/bad-tool",
      `${what} is not JSON (${messageOf(error)}): ${text.slice(0, 120)}. Give an object, or its JSON text.`,
      { cause: error },
    );
  }
  const tokens = [...text.matchAll(token)];
  let position = 0;
  const read = (): JsonValue => {
    const [, string, number, mark, word] = tokens[position++]!;
    if (string !== undefined) return JSON.parse(string) as string;
    if (number !== undefined) return new JsonNumber(number);
    if (word !== undefined) return JSON.parse(word) as boolean | null;
    const close = mark === "{" ? "}" : "]";
    const items: JsonValue[] = [];
    const entries = new Map<string, JsonValue>();
    while (tokens[position]![3] !== close) {
      if (tokens[position]![3] === ",") position++;
      if (close === "]") items.push(read());
      else {
        const key = JSON.parse(tokens[position]![1]!) as string;
        position += 2;
        entries.set(key, read());
      }
    }
    position++;
    return close === "]" ? items : entries;
  };
  return read();
}

/** JSON with a space after each comma and colon and without ASCII escaping: what the models' templates write. */
export function spacedJson(value: unknown): string {
  if (value instanceof JsonNumber) return value.text;
  if (Array.isArray(value)) return `[${value.map(spacedJson).join(", ")}]`;
  if (typeof value !== "object" || value === null) return JSON.stringify(value) ?? "null";
  const entries: [string, unknown][] = value instanceof Map ? [...value] : Object.entries(value);
  const said = entries.filter(([, item]) => item !== undefined);
  return `{${said.map(([key, item]) => `${JSON.stringify(key)}: ${spacedJson(item)}`).join(", ")}}`;
}
