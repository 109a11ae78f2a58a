import type { z } from "zod";

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
