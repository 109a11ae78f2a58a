// The command table. Each command is a file of its own, loaded when it is used.
import type { CommandEntry } from "./command.ts";

export const commands: Readonly<Record<string, CommandEntry>> = {
  serve: { summary: "the Tinker API on this machine, for any Tinker client", load: () => import("./serve.ts") },
  test: { summary: "type check, lint and every test", load: () => import("./test.ts") },
};
