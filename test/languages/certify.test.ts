// The starter set with its reference solutions in JavaScript and TypeScript, translated from Python by table. Some problems by default; WHET_LANGUAGES=1
// certifies all that evaluate.
import { spawnSync } from "node:child_process";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";
import { foldersInMemory } from "../support/folders.ts";
import { runWhet } from "../support/whet.ts";

const newFolder = foldersInMemory();
const starter = fileURLToPath(new URL("../../data/starter/test.jsonl", import.meta.url));
const translator = fileURLToPath(new URL("translate.py", import.meta.url));
const step = process.env["WHET_LANGUAGES"] === undefined ? 45 : 1;
const languages = step === 1 ? ["javascript", "typescript"] : ["typescript"];

test.each(languages)("the starter set is good in %s", { timeout: 1_800_000 }, async (language) => {
  const input = readFileSync(starter, "utf8")
    .trim()
    .split("\n")
    .filter((_, index) => index % step === 0)
    .map((line) => JSON.stringify({ ...(JSON.parse(line) as object), language }));
  const translated = spawnSync("python3", [translator], {
    input: input.join("\n"),
    encoding: "utf8",
    maxBuffer: 1 << 26,
  });
  expect(translated.status, translated.stderr).toBe(0);
  const file = join(newFolder(), "starter.jsonl");
  writeFileSync(file, translated.stdout);
  const { stdout, stderr } = await runWhet(["certify", file, "repeats=1", "show=bad"]);
  // A constant passes some problems of the set, in any language; what matters here is that no solution fails.
  const failing = stdout.split("\n").filter((line) => line.includes("solution 1") || line.includes("not graded"));
  expect(failing).toEqual([]);
  expect(stderr).toMatch(new RegExp(`train would use ${input.length} problems`));
});
