// The shape of src/: the import table of docs/architecture.md, which is the only place where it is written, and files that fit in a sitting.
import { readdirSync, readFileSync } from "node:fs";
import { dirname, join, relative, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";

const source = fileURLToPath(new URL(".", import.meta.url));
const page = readFileSync(join(source, "../docs/architecture.md"), "utf8");

/** Each folder of src/ and the other folders its files may import (tests excepted); undefined: all of them. */
const layers = new Map<string, readonly string[] | undefined>();
for (const [, folder, , imports] of page.matchAll(/^\| `(\w+)\/` \|([^|]+)\| ([^|]+) \|$/gm)) {
  if (imports === "everything") layers.set(folder!, undefined);
  else layers.set(folder!, imports === "Node only" ? [] : imports!.split(", "));
}

function filesUnder(folder: string): string[] {
  return readdirSync(join(source, folder), { recursive: true, encoding: "utf8" })
    .filter((name) => /\.(ts|mjs|js|css)$/.test(name) && !name.endsWith(".test.ts"))
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

test("the table of docs/architecture.md has a row for every folder of src/, and no other", () => {
  const folders = readdirSync(source, { withFileTypes: true }).filter((entry) => entry.isDirectory());
  expect([...layers.keys()].toSorted()).toEqual(folders.map((entry) => entry.name).toSorted());
});

const bounded = [...layers].filter((row): row is [string, readonly string[]] => row[1] !== undefined);
test.each(bounded)("%s/ imports only what its row allows", (folder, allowed) => {
  expect(allowed.filter((name) => !layers.has(name))).toEqual([]);
  expect(importsOf(folder).filter((target) => target !== folder && !allowed.includes(target))).toEqual([]);
});

test("no file is longer than 400 lines", () => {
  const files = [...layers.keys()].flatMap(filesUnder);
  expect(files.length).toBeGreaterThan(500);
  const long = files.filter((file) => readFileSync(file, "utf8").split("\n").length > 401);
  expect(long.map((file) => relative(source, file))).toEqual([]);
});
