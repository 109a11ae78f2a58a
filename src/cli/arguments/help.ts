// Help for people: prose and keys, wrapped to the terminal. Where nobody looks at a width (a pipe, a file) nothing is broken.
import type { z } from "zod";
import { wrapLine } from "../../core/wrap.ts";
import { choicesOf, defaultOf } from "./options.ts";

/** Fewer keys than this need no groups. */
const fewKeys = 14;

/** What help shows of an invocation: other values than the schema's defaults, and where they come from. */
interface ShownDefaults {
  values?: Readonly<Record<string, unknown>>;
  notes?: Readonly<Record<string, string>>;
  /** The keys under the titles of their groups; default: all in one. */
  groups?: Readonly<Record<string, readonly string[]>>;
}

/** One line per key: name, default, description and the values of a choice. */
export function describeOptions(
  schema: z.ZodObject,
  { values = {}, notes = {}, groups = {} }: ShownDefaults = {},
): string {
  const keys = Object.keys(schema.shape);
  const lineOf = (key: string): [string, string] => {
    const field = schema.shape[key] as z.ZodType;
    const value = Object.hasOwn(values, key) ? values[key] : defaultOf(field);
    const note = Object.hasOwn(notes, key) ? ` (${notes[key]})` : "";
    const choices = choicesOf(field);
    const choice = choices.length > 0 ? ` [${choices.join("|")}]` : "";
    return [`  ${key}=${showValue(value)}`, `${field.description ?? ""}${choice}${note}`];
  };
  const lines = keys.map((key) => [key, ...lineOf(key)] as const);
  const width = Math.min(40, Math.max(...lines.map(([, left]) => left.length)));
  const text = new Map(lines.map(([key, left, right]) => [key, `${left.padEnd(width)}  ${right}`]));
  const grouped = Object.entries(groups).map(
    ([title, names]) => [title, names.filter((key) => text.has(key))] as const,
  );
  if (keys.length < fewKeys || grouped.length === 0) return [...text.values()].join("\n");
  const own = keys.filter((key) => !grouped.some(([, names]) => names.includes(key)));
  return [["", own] as const, ...grouped]
    .filter(([, names]) => names.length > 0)
    .map(([title, names]) => [...(title === "" ? [] : [`${title}:`]), ...names.map((key) => text.get(key))].join("\n"))
    .join("\n\n");
}

function showValue(value: unknown): string {
  if (value === undefined) return "";
  if (value === "") return '""';
  if (Array.isArray(value)) return value.join(",");
  return typeof value === "object" ? JSON.stringify(value) : String(value);
}

/** A help text no wider than `width`: sentences flow, and what is said of a key stays in its column, or below it where that is narrow. */
export function wrapHelp(text: string, width: number): string {
  if (width === Number.POSITIVE_INFINITY) return text;
  const paragraphs: string[] = [];
  let isProse = false;
  for (const line of text.split("\n")) {
    const wasProse = isProse;
    isProse = line !== "" && !/^( |Usage:)/.test(line) && !line.endsWith(":");
    if (isProse && wasProse) paragraphs.push(`${paragraphs.pop()} ${line}`);
    else paragraphs.push(line);
  }
  return paragraphs
    .map((line) => (line.length <= width || line.startsWith("Usage:") ? line : wrapLine(line, width, "")))
    .join("\n");
}
