// Help for people: prose and keys, wrapped to the terminal. Where nobody looks at a width (a pipe, a file) nothing is broken.
import type { z } from "zod";
import { choicesOf, defaultOf } from "./options.ts";

/** The groups of `train`'s keys, each by the first key in it, in the order of the schema. */
export const keyGroups: Readonly<Record<string, string>> = {
  preset: "Model and server",
  prompts_per_step: "Steps",
  max_tokens: "Answers",
  loss_fn: "Learning",
  train_data: "Problems",
  reward: "Rewards and the sandbox",
  eval_every: "Evaluation",
  log_path: "The run",
  budget: "Money",
  num_groups_to_log: "Logs, curves and the dashboard",
};

/** Fewer keys than this need no groups. */
const fewKeys = 14;

/** What help shows of an invocation: other values than the schema's defaults, and where they come from. */
export interface ShownDefaults {
  values?: Readonly<Record<string, unknown>>;
  notes?: Readonly<Record<string, string>>;
  /** The order of the keys, and with it their groups; default: the schema's, in one group. */
  order?: readonly string[];
}

/** One line per key: name, default, description and the values of a choice; keys of `order` under the names of their groups. */
export function describeOptions(
  schema: z.ZodObject,
  { values = {}, notes = {}, order = [] }: ShownDefaults = {},
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
  if (keys.length < fewKeys || order.length === 0) return [...text.values()].join("\n");
  const groups: string[][] = [keys.filter((key) => !order.includes(key)).map((key) => text.get(key)!)];
  for (const key of order) {
    if (Object.hasOwn(keyGroups, key)) groups.push([`${keyGroups[key]}:`]);
    if (text.has(key)) groups.at(-1)!.push(text.get(key)!);
  }
  return groups
    .filter((group) => group.length > (group[0]?.startsWith(" ") ? 0 : 1))
    .map((group) => group.join("\n"))
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
  return paragraphs.flatMap((line) => wrapLine(line, width)).join("\n");
}

function wrapLine(line: string, width: number): string[] {
  if (line.length <= width || line.startsWith("Usage:")) return [line];
  const [, left = "", right = line] = /^( {2}\S+ {2,})(.*)$/.exec(line) ?? [];
  // Half a line at most is a column's.
  const hang = left === "" ? "" : left.length <= width / 2 ? " ".repeat(left.length) : "      ";
  const lines = hang.length === left.length ? [left] : [left.trimEnd(), hang];
  for (const word of right.split(" ")) {
    const last = lines.at(-1)!;
    const isEmpty = last.trim() === "" || last === left;
    if (!isEmpty && last.length + 1 + word.length > width) lines.push(hang + word);
    else lines[lines.length - 1] = isEmpty ? last + word : `${last} ${word}`;
  }
  return lines;
}
