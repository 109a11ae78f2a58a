// Parses `key=value` (also `--key=value`, `--key value`, `--flag`) and `@FILE` against a strict zod schema, which is the only place
// where a command's keys, defaults, types and help texts are written.
import type { z } from "zod";
import { ConfigError } from "../../core/errors.ts";
import { nearest } from "../../core/nearest.ts";
import { readConfigFile } from "./config-file.ts";

/** A value and where it was written: "run.json, line 3", or undefined on the command line. */
export interface Written {
  name: string;
  value: unknown;
  shown: string;
  origin: string | undefined;
}

export interface ParsedArguments<Schema extends z.ZodObject> {
  options: z.output<Schema>;
  /** The keys that were given, in a file or on the command line. */
  given: ReadonlySet<string>;
  /** Where a given key was written: "run.json, line 3"; keys of the command line are not in it. */
  origins: ReadonlyMap<string, string>;
  /** The given keys of each config file and, last, of the command line; a later layer wins. */
  layers: readonly Partial<z.output<Schema>>[];
  /** Words that are not options, in order. */
  words: string[];
  /** What a config file had that was left out. */
  notices: string[];
}

/** Parses a command's arguments. */
export function parseArguments<Schema extends z.ZodObject>(
  schema: Schema,
  args: readonly string[],
): ParsedArguments<Schema> {
  const { files, typed, words } = sortArguments(schema, args);
  const notices: string[] = [];
  const layers = files.map((name) => {
    const file = readConfigFile(name);
    const known = file.ofRun ? file.entries.filter(({ name }) => fieldOf(schema, name)) : file.entries;
    notices.push(...file.notices);
    return toKeys(schema, known);
  });
  layers.push(toKeys(schema, typed));
  const merged = new Map(layers.flatMap((layer) => [...layer]));
  const options = validated(schema, merged) as z.output<Schema>;
  const origins = [...merged].flatMap(([key, { origin }]): [string, string][] => (origin ? [[key, origin]] : []));
  return {
    options,
    given: new Set(merged.keys()),
    origins: new Map(origins),
    layers: layers.map((layer) => only(validated(schema.partial(), layer), layer.keys()) as Partial<z.output<Schema>>),
    words,
    notices,
  };
}

/** The values as the schema gives them; what it refuses is named with the place where it was written. */
function validated(schema: z.ZodObject, layer: ReadonlyMap<string, Written>): Record<string, unknown> {
  const result = schema.safeParse(Object.fromEntries([...layer].map(([key, { value }]) => [key, value])));
  if (result.success) return result.data;
  const issue = result.error.issues[0]!;
  const key = String(issue.path[0]);
  const written = layer.get(key);
  const where = written?.origin === undefined ? "" : `${written.origin}: `;
  throw new ConfigError(
    "config/bad-value",
    `${where}${written?.name ?? key}=${written?.shown ?? ""} is not valid: ${issue.message}.`,
  );
}

const only = (values: Readonly<Record<string, unknown>>, keys: Iterable<string>) =>
  Object.fromEntries(Array.from(keys, (key) => [key, values[key]]));

/** The same for a command that takes one word, a run, in place of run=; other words are refused. */
export function parseWithRun<Schema extends z.ZodObject>(
  schema: Schema,
  args: readonly string[],
  usage: string,
): ParsedArguments<Schema> {
  const parsed = parseArguments(schema, args);
  const options = parsed.options as { run: string };
  if (options.run === "" && parsed.words[0]) options.run = parsed.words.shift()!;
  refuseWords(parsed.words, usage);
  return parsed;
}

/** Refuses every word that no command takes. */
export function refuseWords(words: readonly string[], usage: string): void {
  if (words.length === 0) return;
  throw new ConfigError(
    "config/stray-word",
    `"${words[0]}" is not written as key=value. ${usage} --help lists the keys.`,
  );
}

/** The names of config files, what is written as an option, and words. */
export function sortArguments(schema: z.ZodObject, args: readonly string[]) {
  const files: string[] = [];
  const typed: Written[] = [];
  const words: string[] = [];
  for (let index = 0; index < args.length; index++) {
    const argument = args[index]!;
    const match = /^(?:--)?([A-Za-z_][\w.-]*)=([\s\S]*)$/.exec(argument);
    const add = (spelled: string, shown: string) => {
      const name = spelled.replaceAll("-", "_");
      typed.push({ name, shown, value: shown, origin: undefined });
    };
    if (match) add(match[1]!, match[2]!);
    else if (/^@./.test(argument)) files.push(argument.slice(1));
    else if (argument.startsWith("--")) {
      const name = argument.slice(2);
      const next = args[index + 1];
      if (isFlag(schema, name.replaceAll("-", "_")) && !/^(true|false|yes|no|on|off|0|1)$/i.test(next ?? "")) {
        add(name, "true");
        continue;
      }
      if (next === undefined)
        throw new ConfigError("config/missing-value", `${argument} has no value. Write ${name}=VALUE.`);
      add(name, next);
      index++;
    } else words.push(argument);
  }
  return { files, typed, words };
}

const fieldOf = (schema: z.ZodObject, key: string): z.ZodType | undefined =>
  Object.hasOwn(schema.shape, key) ? (schema.shape[key] as z.ZodType) : undefined;

/** A key whose value can have a comma in it: text, a list, JSON. */
export const takesCommas = (field: z.ZodType) =>
  ["string", "array", "record", "unknown", "any"].some((kind) => kindsOf(field).has(kind));

/** A key that is on or off. */
export const isSwitch = (field: z.ZodType) => kindsOf(field).has("boolean");

const isFlag = (schema: z.ZodObject, key: string) => {
  const field = fieldOf(schema, key);
  return field !== undefined && isSwitch(field);
};

/** By the schema's names. Of one name the last counts. */
function toKeys(schema: z.ZodObject, entries: readonly Written[]): Map<string, Written> {
  const byKey = new Map<string, Written>();
  for (const entry of entries) {
    const field = fieldOf(schema, entry.name);
    if (!field) throw unknownKey(schema, entry);
    const value = typeof entry.value === "string" ? coerce(entry.value, field) : entry.value;
    byKey.set(entry.name, { ...entry, value });
  }
  return byKey;
}

function unknownKey(schema: z.ZodObject, entry: Written): ConfigError {
  const known = Object.keys(schema.shape);
  const guess = nearest(entry.name, known);
  const list = known.length > 30 ? "--help lists the keys." : `Known keys: ${known.join(", ")}.`;
  const hint = guess ? ` Did you mean "${guess}"?` : ` ${list}`;
  const where = entry.origin === undefined ? "" : `${entry.origin}: `;
  return new ConfigError("config/unknown-key", `${where}Unknown key "${entry.name}".${hint}`);
}

/** The values of a choice; none where anything goes, or a switch is on or off. */
export function choicesOf(field: z.ZodType): string[] {
  const { def } = field as { def?: { type: string; innerType?: z.ZodType; entries?: Record<string, string> } };
  if (def?.innerType) return choicesOf(def.innerType);
  return def?.type === "enum" ? Object.values(def.entries ?? {}).filter((value) => value !== "") : [];
}

/** The default of a field, or undefined where it has none. */
export function defaultOf(field: z.ZodType): unknown {
  const result = field.safeParse(undefined);
  return result.success ? result.data : undefined;
}

/** Turns the text of a value into what the field's type wants; text that does not fit is left for zod to refuse. */
function coerce(text: string, field: z.ZodType): unknown {
  const kinds = kindsOf(field);
  if ((kinds.has("null") || kinds.has("undefined")) && /^(none|null)$/i.test(text))
    return kinds.has("null") ? null : undefined;
  if (kinds.has("boolean")) {
    if (/^(true|yes|on|1)$/i.test(text)) return true;
    if (/^(false|no|off|0)$/i.test(text)) return false;
  }
  if (kinds.has("number") && /^[+-]?(\d[\d_]*\.?[\d_]*|\.\d+)(e[+-]?\d+)?$/i.test(text))
    return Number(text.replaceAll("_", ""));
  if (kinds.has("array")) return text === "" ? [] : text.split(",").map((part) => part.trim());
  if (kinds.has("record")) {
    try {
      return JSON.parse(text);
    } catch {
      return text;
    }
  }
  return text;
}

function kindsOf(field: z.ZodType): Set<string> {
  const definition = (field as { def?: { type: string; innerType?: z.ZodType; options?: z.ZodType[]; in?: z.ZodType } })
    .def;
  if (!definition) return new Set();
  if (definition.type === "optional") return new Set([...kindsOf(definition.innerType!), "undefined"]);
  if (definition.type === "nullable") return new Set([...kindsOf(definition.innerType!), "null"]);
  if (definition.innerType) return kindsOf(definition.innerType);
  if (definition.type === "pipe" && definition.in) return kindsOf(definition.in);
  if (definition.type === "union") return new Set((definition.options ?? []).flatMap((option) => [...kindsOf(option)]));
  return new Set([definition.type === "int" ? "number" : definition.type]);
}
