// typecheck=true: programs in TypeScript whose types do not fit fail as ones that do not compile, at both levels; nothing is checked without it.
import { join } from "node:path";
import { afterAll, describe, expect, test } from "vitest";
import { toolsOf } from "../../src/core/languages/languages.ts";
import { findCheck } from "../../src/core/languages/tsc.ts";
import { failedLine } from "../../src/grading/failed-line.ts";
import { createGrader, normalizeTests } from "../../src/grading/index.ts";
import { type Jail, type JailLevel, openJail } from "../../src/sandbox/jail.ts";
import { openSandbox } from "../../src/sandbox/open-sandbox.ts";
import { temporaryFolders } from "../support/folders.ts";

const newFolder = temporaryFolders();
const sum = normalizeTests({ inputs: ["17 25\n"], outputs: ["42\n"] }).tests;
const right = `import * as readline from "readline";
import path = require("path");
const fs = require("fs");
enum Place { First, Second }
const name: string = path.basename("a/b"), seen = new Map<string, bigint[]>();
const lines = readline.createInterface({ input: process.stdin });
lines.on("line", (line) => seen.set(name, line.split(" ").map(BigInt)));
lines.on("close", () => {
  const [a = 0n, b = 0n] = seen.get("b") ?? [];
  if (Place.Second === 1 && fs.readFileSync(0).length === 0) console.log(Buffer.from(String(a + b)).toString());
});
`;
const wrong = `import { readFileSync } from "fs";

const words: number[] = readFileSync(0, "utf8").split(" ");
console.log(String(words.map(Number).reduce((a, b) => a + b, 0)));
`;

const open: Jail[] = [];
afterAll(() => Promise.all(open.map((jail) => jail.close())));

async function graderOf(level: JailLevel, typecheck: boolean) {
  const jail = await openJail({ levels: [level], slots: 1, typecheck });
  open.push(jail);
  await jail.supports("typescript");
  const grader = createGrader({ sandbox: jail, languages: ["typescript"] });
  return (code: string, tests = sum) => grader.grade({ problem: { tests }, code });
}

describe.each<JailLevel>(["jail", "landlock"])("level %s", (level) => {
  test("wrong types fail where they are, right ones pass", { timeout: 120_000 }, async () => {
    const grade = await graderOf(level, true);
    const good = await grade(right);
    expect([good.verdict, good.failure?.stderr]).toEqual(["pass", undefined]);
    const { verdict, status, failure } = await grade(wrong);
    expect([verdict, status]).toEqual(["fail", "compile_error"]);
    expect(failure!.stderr).toMatch(/^solution\.ts:3:7: error TS2322: Type 'string\[\]' is not assignable/);
    expect(failedLine(failure!.stderr, "typescript")).toBe(3);
  });
});

test("a function is checked as it stands, and a program that reads the host's files sees none", async () => {
  const grade = await graderOf("jail", true);
  const calls = normalizeTests({ fn_name: "add", inputs: [[17, 25]], outputs: [42] }).tests;
  const add = (of: string) => `function add(a: number, b: number): ${of} {\n  return a + b;\n}`;
  expect((await grade(add("number"), calls)).verdict).toBe("pass");
  expect(await grade(add("string"), calls)).toMatchObject({ verdict: "fail", status: "compile_error" });
  const curious = `/// <reference path="/etc/passwd" />\nimport secret = require("/etc/hostname");\nconsole.log(42);`;
  expect((await grade(curious)).failure!.stderr).not.toMatch(/root:|nobody/);
});

test("without typecheck=true types are taken away unread", async () => {
  const grade = await graderOf("jail", false);
  expect((await grade(wrong)).verdict).toBe("pass");
});

test("what cannot be checked is said before any program is run", async () => {
  const nowhere = join(newFolder(), "package.json");
  expect(findCheck("solution.ts", [nowhere])).toBe("TypeScript 7, which npm install typescript@7 @types/node brings");
  await expect(openSandbox({ sandboxUrl: "http://127.0.0.1:1", typecheck: true })).rejects.toMatchObject({
    code: "sandbox/fusion-typecheck",
  });
  const tools = await toolsOf("typescript");
  if (typeof tools === "string") return;
  const { check } = tools;
  tools.check = "TypeScript 7";
  try {
    const jail = await openJail({ levels: ["jail"], slots: 1, typecheck: true });
    open.push(jail);
    await expect(jail.supports("typescript")).rejects.toMatchObject({ code: "sandbox/no-typecheck" });
    await jail.supports("javascript");
  } finally {
    tools.check = check!;
  }
});
