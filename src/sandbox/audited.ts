// A sandbox that writes down what it ran: one JSON line per program and round that ended, in the file before the outcome is handed on. The
// next process appends to the same file, so that programs can be counted over crashes by the sandbox's own word.
import { createHash } from "node:crypto";
import { appendFileSync } from "node:fs";
import { toJsonLine } from "../core/jsonl.ts";
import type { Sandbox } from "./sandbox.ts";

export function auditedSandbox(sandbox: Sandbox, path: string): Sandbox {
  return {
    description: sandbox.description,
    run: async (job, ...rest) => {
      const outcomes = await sandbox.run(job, ...rest);
      const program = createHash("sha256").update(job.source).digest("hex");
      appendFileSync(path, toJsonLine({ program, tests: outcomes.length, at: Date.now() }));
      return outcomes;
    },
    supports: (language) => sandbox.supports(language),
    close: () => sandbox.close(),
  };
}
