// What programs in TypeScript may hold, where their errors are said to be, and texts that no translator comes to an end with.
import { spawnSync } from "node:child_process";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { temporaryFolders } from "../../../test/support/folders.ts";
import { ProgramError } from "./language.ts";
import { typescript } from "./typescript.ts";

const folder = temporaryFolders();
const translate = typescript.runtime!.translate!;

/** What Node prints of the translation, its stderr with the places of the source. */
async function run(source: string): Promise<string> {
  const { source: code, inSource } = await translate(source);
  const place = folder();
  writeFileSync(join(place, "solution.js"), code);
  const { stdout, stderr } = spawnSync(process.execPath, ["solution.js"], { cwd: place, encoding: "utf8" });
  return stdout + inSource(stderr);
}

test.each([
  ["enum A { B = 1, C }\nconst enum D { E = 7 }\nconsole.log(A.C, A[1], D.E);", "2 B 7\n"],
  [
    "class P { constructor(private readonly x: number, public y = 2) {}\n sum() { return this.x + this.y; } }\nconsole.log(new P(1).sum());",
    "3\n",
  ],
  ["namespace N { export const a: number = 4; }\nconsole.log(N.a);", "4\n"],
  [
    "function d(_: unknown, c: DecoratorContext) { console.log(c.name); }\n@d class A { @d m() {} }\nnew A();",
    "m\nA\n",
  ],
  [
    "class A { accessor k = 5; override?: string; static #n = 6; get n() { return A.#n; } }\nconsole.log(new A().k, new A().n);",
    "5 6\n",
  ],
  [
    'import * as fs from "fs";\ndeclare function require(name: string): any;\nconst path = require("path");\nconsole.log(typeof fs.readFileSync, path.sep);',
    "function /\n",
  ],
  ['import fs = require("fs");\nconsole.log(typeof fs.readFileSync);', "function\n"],
  ["const x: number = await Promise.resolve(8);\nconsole.log(x);", "8\n"],
  ["console.log(import.meta.url.slice(0, 8));", "file:///\n"],
])("%j is what it means", async (source, printed) => {
  expect(await run(source)).toBe(printed);
});

test("errors are where the source has them", async () => {
  await expect(translate("let a: number = 1;\n\n  const = 3;\n")).rejects.toThrow(
    /^solution\.ts:3:9: Expected identifier but found "="/,
  );
  const source =
    "interface A {\n  b?: { c: number };\n}\nenum E {\n  F,\n}\nconst a: A = {};\nconsole.log(E.F, a.b!.c);\n";
  expect(await run(source)).toMatch(/at Object\.<anonymous> \(\S*solution\.ts:8:\d+\)/);
});

test("a large program keeps the places of its translation, for nobody waits for its map", async () => {
  const { source, inSource } = await translate("{ let a: number; }\n".repeat(20_000));
  expect(source).not.toContain("sourceMappingURL");
  expect(inSource("at solution.js:4:1")).toBe("at solution.js:4:1");
});

test("a text that no translator comes to an end with is the program's failure, and harms none beside it", async () => {
  const bombs = [
    `let x = ${"a ? (b) : c => ".repeat(30)}1;`,
    `let x = ${"[".repeat(400_000)}`,
    "let x = `${".repeat(100_000),
  ];
  const outcomes = await Promise.all([
    ...bombs.map((bomb) =>
      translate(bomb).then(
        () => "done",
        (error: unknown) => error instanceof ProgramError,
      ),
    ),
    ...bombs.map(async () => (await translate("let x: number = 1;")).source.startsWith("let x = 1;")),
  ]);
  expect(outcomes).toEqual(outcomes.map(() => true));
});
