/** One `./whet` command. */
export interface Command {
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
