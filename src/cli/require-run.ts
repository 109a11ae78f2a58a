// Commands that read a run: it must be one, and have a journal.
import { existsSync } from "node:fs";
import { join } from "node:path";
import { ConfigError } from "../core/errors.ts";
import { runFiles } from "../runs/directory.ts";

export function requireRun(run: string): void {
  if (run !== "" && existsSync(join(run, runFiles.journal))) return;
  throw new ConfigError(
    "config/no-run",
    run === ""
      ? "No run was named. Write run=DIR."
      : `run=${run} holds no run (it has no ${runFiles.journal} folder). Name a run directory.`,
  );
}
