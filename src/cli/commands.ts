// The command table. Each command is a file of its own, loaded when it is used.
import type { CommandEntry } from "./command.ts";

export const commands: Readonly<Record<string, CommandEntry>> = {
  test: { summary: "type check, lint and every test", load: () => import("./test.ts") },
};
