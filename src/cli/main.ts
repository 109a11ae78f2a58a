// `./whet COMMAND …`: finds the command, runs it, turns errors into one clear message and an exit code. whetstone.mjs starts it.

import { ConfigError, messageOf, WhetstoneError } from "../core/errors.ts";
import { nearest } from "../core/nearest.ts";
import { version, whet } from "../core/program.ts";
import { visible } from "../core/visible.ts";
import { widthOf } from "../core/wrap.ts";
import { loadEnvironmentFile } from "./arguments/environment.ts";
import { wrapHelp } from "./arguments/help.ts";
import { commandGroups, commands } from "./commands.ts";

function help(): string {
  const width = Math.max(...Object.keys(commands).map((name) => name.length));
  const lists = Object.entries(commandGroups).flatMap(([heading, group]) => [
    `${heading}:`,
    ...Object.entries(group).map(([name, { summary }]) => `  ${name.padEnd(width)}  ${summary}`),
    "",
  ]);
  return [
    "Whetstone: reinforcement learning for code models.",
    "",
    `Usage: ${whet} COMMAND [key=value …] [@config.json]`,
    "",
    ...lists,
    `${whet} help COMMAND lists a command's keys; ${whet} --version says which this is.`,
    "Exit codes: 0 done, 1 failed, 2 wrong command line, 3 stopped by budget=, 130 interrupted.",
  ].join("\n");
}

const isHelp = (word: string) => word === "--help" || word === "-h";

async function main(args: readonly string[]): Promise<number> {
  const [first, ...others] = args;
  if (first === "--version" || first === "-V") {
    console.log(`whetstone ${version}`);
    return 0;
  }
  // `help train` is `train --help`.
  const [name, ...rest] = first === "help" || (first !== undefined && isHelp(first)) ? [...others, "--help"] : args;
  if (name === undefined || isHelp(name)) {
    console.log(wrapHelp(help(), widthOf(process.stdout)));
    return 0;
  }
  const entry = Object.hasOwn(commands, name) ? commands[name] : undefined;
  if (!entry) {
    const guess = nearest(name, Object.keys(commands));
    throw new ConfigError(
      "config/unknown-command",
      `Unknown command "${name}".${guess ? ` Did you mean "${guess}"?` : ""} ${whet} lists them.`,
    );
  }
  loadEnvironmentFile((warning) => console.error(`whetstone: ${warning}`));
  const { command } = await entry.load();
  if (rest.some(isHelp)) {
    console.log(wrapHelp(command.help(rest.filter((word) => !isHelp(word))), widthOf(process.stdout)));
    return 0;
  }
  // Runs, checkpoints and logs hold answers, prompts and sometimes data that is not for others on this machine.
  if (name !== "test" && name !== "bench") process.umask(process.umask() | 0o077);
  return command.run(rest);
}

/** What was raised on purpose, or by the system at a file that no command expects to fail; undefined: a defect, with its stack. */
function explained(error: unknown): WhetstoneError | undefined {
  if (error instanceof WhetstoneError) return error;
  const { code = "", syscall } = error as NodeJS.ErrnoException;
  if (syscall === undefined || !fileProblems.has(code)) return undefined;
  return new WhetstoneError(
    "cli/file-system",
    `The system refused a file: ${messageOf(error)}. Free some space or fix the permissions of what it names, then type this again.`,
    { cause: error },
  );
}

const fileProblems: ReadonlySet<string> = new Set(
  "EACCES EBUSY EDQUOT EEXIST EFBIG EIO EISDIR ELOOP EMFILE ENAMETOOLONG ENFILE ENOENT ENOSPC ENOTDIR EPERM EROFS ESTALE EXDEV".split(
    " ",
  ),
);

/** Runs a command line, without the name of the program; resolves to the exit code. Rejects with what is a defect of ours. */
export async function runCommandLine(args: readonly string[]): Promise<number> {
  try {
    return await main(args);
  } catch (error) {
    const failure = explained(error);
    if (!failure) throw error;
    console.error(visible(`whetstone: ${failure.message} [${failure.code}]`));
    if (failure.next !== undefined) console.error(`To go on:\n  ${failure.next}`);
    return failure instanceof ConfigError ? 2 : 1;
  }
}
