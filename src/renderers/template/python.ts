// What Python prints: str(), repr() and json.dumps() of template values, and the whitespace that its strip() takes.
import {
  isArray,
  isBoolean,
  isFloat,
  isNull,
  isNumeric,
  isObject,
  isString,
  isUndefined,
  type Value,
} from "./runtime-values.ts";

const blank = "\\t-\\r\\x1c-\\x20\\x85\\xa0\\u1680\\u2000-\\u200a\\u2028\\u2029\\u202f\\u205f\\u3000";
const blanks = new RegExp(`[${blank}]+`);
const blankCharacter = new RegExp(`[${blank}]`);

/** str.strip and its siblings: whitespace, or the characters given. Linear in the text. */
export function strip(text: string, side: "both" | "left" | "right", characters?: string): string {
  const drops =
    characters === undefined ? (c: string) => blankCharacter.test(c) : (c: string) => characters.includes(c);
  let start = 0;
  let end = text.length;
  if (side !== "right") while (start < end && drops(text[start]!)) start++;
  if (side !== "left") while (end > start && drops(text[end - 1]!)) end--;
  return text.slice(start, end);
}

/** str.split() without a separator. */
export function splitBlanks(text: string): string[] {
  const stripped = strip(text, "both");
  return stripped === "" ? [] : stripped.split(blanks);
}

/** str(value): what `{{ value }}` writes. */
export function pythonText(value: Value): string {
  if (isString(value)) return value.value;
  return isUndefined(value) ? "" : pythonRepr(value);
}

function pythonRepr(value: Value): string {
  if (isNull(value)) return "None";
  if (isString(value)) return stringRepr(value.value);
  if (isBoolean(value)) return value.value ? "True" : "False";
  if (isFloat(value)) return floatText(value.value as number);
  if (isNumeric(value)) return value.toString();
  if (isArray(value)) {
    const items = value.value.map(pythonRepr);
    if (value.type === "TupleValue") return `(${items.join(", ")}${items.length === 1 ? "," : ""})`;
    return `[${items.join(", ")}]`;
  }
  if (isObject(value))
    return `{${[...value.value].map(([key, item]) => `${stringRepr(key)}: ${pythonRepr(item)}`).join(", ")}}`;
  return isUndefined(value) ? "Undefined" : value.toString();
}

const named: Readonly<Record<string, string>> = { "\n": "\\n", "\r": "\\r", "\t": "\\t", "\\": "\\\\" };

function stringRepr(text: string): string {
  const quote = text.includes("'") && !text.includes('"') ? '"' : "'";
  let result = "";
  for (const character of text) {
    const code = character.codePointAt(0)!;
    if (character === quote) result += `\\${quote}`;
    else if (named[character] !== undefined) result += named[character];
    else if (character === " " || !/[\p{C}\p{Z}]/u.test(character)) result += character;
    else if (code < 0x100) result += `\\x${code.toString(16).padStart(2, "0")}`;
    else
      result +=
        code < 0x10000 ? `\\u${code.toString(16).padStart(4, "0")}` : `\\U${code.toString(16).padStart(8, "0")}`;
  }
  return `${quote}${result}${quote}`;
}

/** repr(float): the shortest digits that give the number back, as in JavaScript, but an exponent from 1e16 and below 1e-4. */
export function floatText(value: number): string {
  if (Number.isNaN(value)) return "nan";
  if (!Number.isFinite(value)) return value > 0 ? "inf" : "-inf";
  if (Object.is(value, -0)) return "-0.0";
  const [digits, exponentText] = value.toExponential().split("e") as [string, string];
  const exponent = Number(exponentText);
  if (value === 0 || (exponent >= -4 && exponent < 16)) {
    const plain =
      exponent < 0 ? value.toFixed(Math.max(0, digits.replace(/[-.]/g, "").length - 1 - exponent)) : String(value);
    return plain.includes(".") ? plain : `${plain}.0`;
  }
  const size = Math.abs(exponent).toString().padStart(2, "0");
  return `${digits}e${exponent < 0 ? "-" : "+"}${size}`;
}

export interface JsonStyle {
  indent?: number | string | undefined;
  separators?: readonly [string, string] | undefined;
  sortKeys?: boolean;
  ensureAscii?: boolean;
}

/** json.dumps(value), with the settings that transformers gives its tojson filter. */
export function pythonJson(value: Value, style: JsonStyle = {}): string {
  const step = typeof style.indent === "number" ? " ".repeat(style.indent) : style.indent;
  const [comma, colon] = style.separators ?? [step === undefined ? ", " : ",", ": "];
  const quoted = (text: string) => (style.ensureAscii ? asciiOnly(JSON.stringify(text)) : JSON.stringify(text));
  const enclose = (open: string, items: string[], close: string, padding: string) => {
    if (items.length === 0) return open + close;
    if (step === undefined) return open + items.join(comma) + close;
    const inner = `\n${padding}${step}`;
    return `${open}${inner}${items.join(comma + inner)}\n${padding}${close}`;
  };
  const write = (item: Value, padding: string): string => {
    if (isNull(item)) return "null";
    if (isString(item)) return quoted(item.value);
    if (isBoolean(item)) return item.value ? "true" : "false";
    if (isFloat(item))
      return floatText(item.value as number)
        .replace("inf", "Infinity")
        .replace("nan", "NaN");
    if (isNumeric(item)) return item.toString();
    const deeper = padding + (step ?? "");
    if (isArray(item))
      return enclose(
        "[",
        item.value.map((each) => write(each, deeper)),
        "]",
        padding,
      );
    if (isObject(item)) {
      const entries = [...item.value];
      if (style.sortKeys) entries.sort(([a], [b]) => (a < b ? -1 : 1));
      return enclose(
        "{",
        entries.map(([key, each]) => quoted(key) + colon + write(each, deeper)),
        "}",
        padding,
      );
    }
    throw new Error(`Object of type ${item.type} is not JSON serializable`);
  };
  return write(value, "");
}

const asciiOnly = (text: string) =>
  text.replaceAll(/[\u0080-\uffff]/g, (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, "0")}`);

/** a == b. */
export function pythonEquals(a: Value, b: Value, plain: (text: string) => string): boolean {
  if (isString(a) && isString(b)) return plain(a.value) === plain(b.value);
  if (isNumeric(a) && isNumeric(b)) return Number(a.value) === Number(b.value);
  if (isUndefined(a) || isUndefined(b)) return isUndefined(a) && isUndefined(b);
  if (isNull(a) || isNull(b)) return isNull(a) && isNull(b);
  if (isArray(a) && isArray(b))
    return (
      a.value.length === b.value.length && a.value.every((item, index) => pythonEquals(item, b.value[index]!, plain))
    );
  if (isObject(a) && isObject(b)) {
    const other = b.value;
    return (
      a.value.size === other.size &&
      [...a.value].every(([key, item]) => other.has(key) && pythonEquals(item, other.get(key)!, plain))
    );
  }
  return a === b;
}
