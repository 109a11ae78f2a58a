// What a command is, and how one is made of a schema of its keys.
import type { z } from "zod";
import { whet } from "../core/program.ts";
import { describeOptions } from "./arguments/help.ts";
import { type ParsedArguments, parseArguments, refuseWords } from "./arguments/options.ts";

/** One `./whet` command. */
export interface Command {
  /** The keys it takes, for completion; none without. */
  keys?: Readonly<Record<string, z.ZodType>>;
  /** The text of `./whet NAME --help`; `args` is what else was typed, for those that show what it would do. */
  help(args: readonly string[]): string;
  /** Runs it; resolves to the exit code. Throws ConfigError (exit 2) or another WhetstoneError (exit 1). */
  run(args: readonly string[]): Promise<number>;
}

/** The headings of the list of commands, in their order. */
export const commandGroups = [
  "Train",
  "Look at runs",
  "Use what was trained",
  "Problems and grading",
  "Servers and this installation",
] as const;
export type CommandGroup = (typeof commandGroups)[number];

/** An entry of the command table: the module is loaded only when the command is used. */
export interface CommandEntry {
  /** Under which heading it is listed. */
  group: CommandGroup;
  summary: string;
  load(): Promise<{ command: Command }>;
}

interface SchemaCommand<Schema extends z.ZodObject> {
  /** Its usage after the name of the program; a second line for another form. */
  usage: string | readonly string[];
  /** Sentences on what it does and what it costs. */
  about: readonly string[];
  /** How many words it takes that are not written as key=value. */
  maxWords?: number;
  /** The keys as help shows them; unless given with the schema's defaults. */
  describeKeys?(args: readonly string[]): string;
  run(parsed: ParsedArguments<Schema>): Promise<number>;
}

/** A command with the keys of a schema: its help, its completion and the check of what was typed follow from them. */
export function commandOf<Schema extends z.ZodObject>(schema: Schema, parts: SchemaCommand<Schema>): Command {
  const { usage, about, maxWords = 0, describeKeys = () => describeOptions(schema), run } = parts;
  const [first, ...others] = [usage].flat() as [string, ...string[]];
  return {
    keys: schema.shape as Record<string, z.ZodType>,
    help: (args) =>
      [
        `Usage: ${whet} ${first}`,
        ...others.map((line) => `       ${whet} ${line}`),
        ...["", ...about, "", describeKeys(args)],
      ].join("\n"),
    async run(args) {
      const parsed = parseArguments(schema, args);
      refuseWords(parsed.words.slice(maxWords), `${whet} ${first.split(" ")[0]}`);
      return run(parsed);
    },
  };
}
