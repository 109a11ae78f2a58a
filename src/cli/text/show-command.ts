// The commands that `./whet show` gives for what comes next, ready to paste.
import { whet } from "../../core/program.ts";
import { shellCommand } from "../../core/shell.ts";

export const showCommand = (run: string, ...words: readonly string[]): string =>
  shellCommand(`${whet} show`, `run=${run}`, ...words);
