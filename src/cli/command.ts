// What a command is, and how one is made of a schema of its keys.
import type { z } from "zod";
import { whet } from "../core/program.ts";
import { describeOptions } from "./arguments/help.ts";
import { type ParsedArguments, parseArguments, parseWithRun, refuseWords } from "./arguments/options.ts";

/** One `./whet` command. */
export interface Command {
  /** The keys it takes, for completion; none without. */
  keys?: Readonly<Record<string, z.ZodType>>;
  /** The text of `./whet NAME --help`; `args` is what else was typed, for those that show what it would do. */
  help(args: readonly string[]): string;
  /** Runs it; resolves to the exit code. Throws ConfigError (exit 2) or another WhetstoneError (exit 1). */
  run(args: readonly string[]): Promise<number>;
}

/** An entry of the command table: the module is loaded only when the command is used. */
export interface CommandEntry {
  summary: string;
  load(): Promise<{ command: Command }>;
}

interface Described {
  /** Its usage after the name of the program; a second line for another form. */
  usage: string | readonly string[];
  /** Sentences on what it does and what it costs. */
  about: readonly string[];
}

/** The text of a command's help; `keys` are its keys, described. */
export function helpOf({ usage, about }: Described, ...keys: readonly string[]): string {
  const [first, ...others] = [usage].flat().map((line) => `${whet} ${line}`);
  return [
    `Usage: ${first}`,
    ...others.map((line) => `       ${line}`),
    "",
    ...about,
    ...keys.flatMap((text) => ["", text]),
  ].join("\n");
}

interface SchemaCommand<Schema extends z.ZodObject> extends Described {
  /** The words it takes that are not written as key=value: so many, or a run in place of run=. Default none. */
  words?: number | "run";
  /** The keys as help shows them; unless given with the schema's defaults. `parse` reads the words as the command does. */
  describeKeys?(args: readonly string[], parse: (args: readonly string[]) => ParsedArguments<Schema>): string;
  run(parsed: ParsedArguments<Schema>): Promise<number>;
}

/** A command with the keys of a schema: its help, its completion and the check of what was typed follow from them. */
export function commandOf<Schema extends z.ZodObject>(schema: Schema, parts: SchemaCommand<Schema>): Command {
  const { words = 0, describeKeys = () => describeOptions(schema), run } = parts;
  const name = `${whet} ${[parts.usage].flat()[0]!.split(" ")[0]}`;
  const parse = (args: readonly string[]) => {
    if (words === "run") return parseWithRun(schema, args, name);
    const parsed = parseArguments(schema, args);
    refuseWords(parsed.words.slice(words), name);
    return parsed;
  };
  return {
    keys: schema.shape as Record<string, z.ZodType>,
    help: (args) => helpOf(parts, describeKeys(args, parse)),
    // async: what is wrong with the words is a rejection too.
    run: async (args) => run(parse(args)),
  };
}
