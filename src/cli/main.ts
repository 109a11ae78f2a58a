// `./whet COMMAND …`: finds the command, runs it, turns errors into one clear message and an exit code.

import { ConfigError, WhetstoneError } from "../core/errors.ts";
import { nearest } from "../core/nearest.ts";
import { runsFromSource, whet } from "../core/program.ts";
import type { CommandEntry } from "./command.ts";
import { commands } from "./commands.ts";
import { loadEnvironmentFile } from "./environment.ts";

/** Every command of this installation. The checkout's own are named by address, so that the build leaves them out. */
async function availableCommands(): Promise<Readonly<Record<string, CommandEntry>>> {
  if (!runsFromSource) return commands;
  const { href } = new URL("./checkout-commands.ts", import.meta.url);
  const { checkoutCommands } = (await import(href)) as { checkoutCommands: Record<string, CommandEntry> };
  return { ...commands, ...checkoutCommands };
}

function help(commands: Readonly<Record<string, CommandEntry>>): string {
  const width = Math.max(...Object.keys(commands).map((name) => name.length));
  return [
    "Whetstone: reinforcement learning for code models.",
    "",
    `Usage: ${whet} COMMAND [key=value …]`,
    "",
    ...Object.entries(commands).map(([name, { summary }]) => `  ${name.padEnd(width)}  ${summary}`),
    "",
    `${whet} COMMAND --help lists a command's keys. Exit codes: 0 done, 1 failed, 2 wrong command line, 130 interrupted.`,
  ].join("\n");
}

async function main(args: readonly string[]): Promise<number> {
  const [name, ...rest] = args;
  const available = await availableCommands();
  if (name === undefined || name === "help" || name === "--help" || name === "-h") {
    console.log(help(available));
    return 0;
  }
  const entry = Object.hasOwn(available, name) ? available[name] : undefined;
  if (!entry) {
    const guess = nearest(name, Object.keys(available));
    throw new ConfigError(
      "config/unknown-command",
      `Unknown command "${name}".${guess ? ` Did you mean "${guess}"?` : ""} ${whet} lists them.`,
    );
  }
  loadEnvironmentFile();
  const { command } = await entry.load();
  if (rest.includes("--help") || rest.includes("-h")) {
    console.log(command.help());
    return 0;
  }
  // Runs, checkpoints and logs hold answers, prompts and sometimes data that is not for others on this machine.
  if (name !== "test" && name !== "bench") process.umask(process.umask() | 0o077);
  return command.run(rest);
}

try {
  process.exitCode = await main(process.argv.slice(2));
} catch (error) {
  if (!(error instanceof WhetstoneError)) throw error;
  console.error(`whetstone: ${error.message} [${error.code}]`);
  process.exitCode = error instanceof ConfigError ? 2 : 1;
}
