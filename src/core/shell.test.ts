import { execFileSync } from "node:child_process";
import { expect, test } from "vitest";
import { shellCommand, shellWord } from "./shell.ts";

test("a quoted word comes out of the shell as it went in", () => {
  const words = [
    "a b",
    "it's",
    "$(rm -rf x)",
    "`x`",
    "*",
    "a\nb",
    "",
    "~/x",
    "run=/tmp/a b's",
    'say "hi"',
    "\\",
    "ü",
    "!x",
    "\u202Eturned\u001B[31m around's\r",
  ];
  const printed = execFileSync("sh", ["-c", shellCommand("printf '%s\\0'", ...words)], { encoding: "utf8" });
  expect(printed.split("\0").slice(0, -1)).toEqual(words);
  expect(shellWord(words.at(-1)!)).not.toMatch(/[\p{Cc}\p{Cf}]/u);
  expect(shellWord("run=runs/first")).toBe("run=runs/first");
});
