// The examples of docs/grading.md do what the page says.
import { spawnSync } from "node:child_process";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { typescriptFlags } from "../../src/core/workers.ts";
import { temporaryFolders } from "../support/folders.ts";
import { whet } from "./processes.ts";

const folder = temporaryFolders();
const page = readFileSync(new URL("../../docs/grading.md", import.meta.url), "utf8");
const block = (language: string) => new RegExp(`\`\`\`${language}\\n([\\s\\S]*?)\\n\`\`\``).exec(page)![1]!;

test("the command prints the line that is shown, but for its time", async () => {
  const [, line] = /printf '%s\\n' '(.+)' \| \.\/whet grade -/.exec(block("sh"))!;
  const { stdout } = await whet(["grade", "-"], { input: line! }).finished;
  const untimed = (text: string) => ({ ...(JSON.parse(text) as object), time_ms: 0 });
  expect(untimed(stdout)).toEqual(untimed(block("json")));
});

test("the program runs and prints what its comment says", () => {
  const path = join(folder(), "example.ts");
  writeFileSync(path, block("ts"));
  const { stdout, stderr } = spawnSync(process.execPath, [...typescriptFlags, path], { encoding: "utf8" });
  expect(stdout, stderr).toBe("pass 1\n");
});
