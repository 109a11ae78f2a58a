// Every error code in the source is documented, and every documented code exists.
import { readdirSync, readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";

const root = fileURLToPath(new URL("../", import.meta.url));
const areas = "config|protocol|client|server|engine|graph|sandbox|grading|data|runs|rl|tokenizer|renderer|cli|hub";
// A name followed by a colon is a metric's ("data/offset": …), not a code.
const codePattern = new RegExp(`["'\`]((?:${areas})/[a-z0-9]+(?:-[a-z0-9]+)*)["'\`](?!:)`, "g");

function codesInSource(): Set<string> {
  const codes = new Set<string>();
  for (const name of readdirSync(`${root}src`, { recursive: true, encoding: "utf8" })) {
    if (!name.endsWith(".ts") || name.endsWith(".test.ts")) continue;
    for (const [, code] of readFileSync(`${root}src/${name}`, "utf8").matchAll(codePattern)) codes.add(code!);
  }
  return codes;
}

test("docs/errors.md lists exactly the codes that exist", () => {
  const documented = new Set<string>();
  for (const [, code] of readFileSync(`${root}docs/errors.md`, "utf8").matchAll(/^\| `([a-z]+\/[a-z0-9-]+)`/gm))
    documented.add(code!);
  expect([...codesInSource()].sort()).toEqual([...documented].sort());
});
