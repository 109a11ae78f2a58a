// Parses `key=value` (also `--key=value` and `--key value`) against a strict zod schema, which is the only place where a
// command's keys, defaults, types and help texts are written.
import type { z } from "zod";
import { ConfigError } from "../core/errors.ts";
import { nearest } from "../core/nearest.ts";

export interface ParsedArguments<Schema extends z.ZodObject> {
  options: z.output<Schema>;
  /** The keys that were given on the command line. */
  given: ReadonlySet<string>;
  /** Words that are not options, in order. */
  words: string[];
}

/** Parses a command's arguments. `aliases` maps other spellings to keys of the schema. */
export function parseArguments<Schema extends z.ZodObject>(
  schema: Schema,
  args: readonly string[],
  aliases: Readonly<Record<string, string>> = {},
): ParsedArguments<Schema> {
  const raw: Record<string, string> = {};
  const words: string[] = [];
  for (let index = 0; index < args.length; index++) {
    const argument = args[index]!;
    const match = /^(?:--)?([A-Za-z_][\w.-]*)=([\s\S]*)$/.exec(argument);
    if (match) raw[match[1]!.replaceAll("-", "_")] = match[2]!;
    else if (argument.startsWith("--")) {
      const value = args[++index];
      if (value === undefined)
        throw new ConfigError("config/missing-value", `${argument} has no value. Write ${argument.slice(2)}=VALUE.`);
      raw[argument.slice(2).replaceAll("-", "_")] = value;
    } else words.push(argument);
  }
  const values: Record<string, unknown> = {};
  for (const [written, text] of Object.entries(raw)) {
    const key = aliases[written] ?? written;
    const field = schema.shape[key] as z.ZodType | undefined;
    if (!field) {
      const guess = nearest(written, [...Object.keys(schema.shape), ...Object.keys(aliases)]);
      const hint = guess ? ` Did you mean "${guess}"?` : ` Known keys: ${Object.keys(schema.shape).join(", ")}.`;
      throw new ConfigError("config/unknown-key", `Unknown key "${written}".${hint}`);
    }
    values[key] = coerce(text, field);
  }
  const result = schema.safeParse(values);
  if (!result.success) {
    const issue = result.error.issues[0]!;
    const key = String(issue.path[0] ?? "");
    throw new ConfigError("config/bad-value", `${key}=${raw[key] ?? ""} is not valid: ${issue.message}.`);
  }
  return { options: result.data, given: new Set(Object.keys(values)), words };
}

/** One line per key: name, type, default and description. */
export function describeOptions(schema: z.ZodObject): string {
  const rows = Object.entries(schema.shape).map(([key, field]) => {
    const type = field as z.ZodType;
    const fallback = defaultOf(type);
    const shown = fallback === undefined ? "" : String(fallback === "" ? '""' : fallback);
    return { left: `  ${key}=${shown}`, right: type.description ?? "" };
  });
  const width = Math.min(40, Math.max(...rows.map((row) => row.left.length)));
  return rows.map((row) => `${row.left.padEnd(width)}  ${row.right}`).join("\n");
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
