// The import table of docs/architecture.md, enforced.
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { dirname, join, relative, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";

const source = fileURLToPath(new URL(".", import.meta.url));

/** Each folder of src/ and the other folders its files may import (tests excepted). */
const layers: Record<string, readonly string[]> = {
  core: [],
  protocol: ["core"],
  client: ["protocol", "core"],
  tokenizer: ["core"],
  renderers: ["tokenizer", "protocol", "core"],
  graph: ["core"],
  engine: ["graph", "protocol", "core"],
  server: ["protocol", "engine", "tokenizer", "core"],
  sandbox: ["core"],
  grading: ["sandbox", "core"],
  data: ["core"],
  runs: ["core"],
  rl: ["client", "protocol", "renderers", "tokenizer", "grading", "data", "runs", "core"],
};

function filesUnder(folder: string): string[] {
  return readdirSync(join(source, folder), { recursive: true, encoding: "utf8" })
    .filter((name) => /\.(ts|mjs)$/.test(name) && !name.endsWith(".test.ts"))
    .map((name) => join(source, folder, name));
}

function importsOf(folder: string): string[] {
  const targets = new Set<string>();
  for (const file of filesUnder(folder)) {
    for (const [, specifier] of readFileSync(file, "utf8").matchAll(/(?:from|import)\s*\(?\s*["'](\.[^"']+)["']/g)) {
      targets.add(relative(source, resolve(dirname(file), specifier!)).split("/")[0]!);
    }
  }
  return [...targets];
}

test.each(Object.entries(layers).filter(([folder]) => existsSync(join(source, folder))))(
  "%s/ imports only what its layer allows",
  (folder, allowed) => {
    expect(importsOf(folder).filter((target) => target !== folder && !allowed.includes(target))).toEqual([]);
  },
);

test("every folder of src/ has a row in the table", () => {
  const folders = readdirSync(source, { withFileTypes: true }).filter((entry) => entry.isDirectory());
  expect(folders.map((entry) => entry.name).filter((name) => name !== "cli" && !(name in layers))).toEqual([]);
});
