// Every command of this installation. The checkout's own are named by address, so that the build leaves them out.
import { moduleUrl, runsFromSource } from "../core/program.ts";
import type { CommandEntry } from "./command.ts";
import { commands } from "./commands.ts";

export async function availableCommands(): Promise<Readonly<Record<string, CommandEntry>>> {
  if (!runsFromSource) return commands;
  const { href } = moduleUrl(new URL("./checkout-commands.ts", import.meta.url));
  const { checkoutCommands } = (await import(href)) as { checkoutCommands: Record<string, CommandEntry> };
  return { ...commands, ...checkoutCommands };
}
