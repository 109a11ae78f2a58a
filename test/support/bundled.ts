// Programs of tests that are started again and again, each in one file: to read some hundred modules takes longer than what they do.
import { mkdtempSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { build } from "esbuild";
import { inject } from "vitest";
import { sourceEntries } from "../../src/core/own-entries.mjs";
import { bundling } from "../../src/core/prepared.mjs";

const made = new Map<string, Promise<string>>();

/** The file that runs what the TypeScript module `script` does, made once in each test process. */
export function bundled(script: string): Promise<string> {
  const known = made.get(script) ?? bundle(script);
  made.set(script, known);
  return known;
}

async function bundle(script: string): Promise<string> {
  const outfile = join(mkdtempSync(join(inject("folder"), "program-")), "run.mjs");
  const alias = Object.fromEntries(Object.entries(sourceEntries()).map(([name, url]) => [name, fileURLToPath(url)]));
  await build({ entryPoints: [script], outfile, alias, ...bundling });
  return outfile;
}
