// Packages for programs: installed once, imported at both levels, refused by name where they are no packages.
import { readdirSync } from "node:fs";
import { join } from "node:path";
import { afterEach, describe, expect, test } from "vitest";
import { openSandbox } from "../../src/grading/index.ts";
import { type JailLevel, openJail } from "../../src/sandbox/jail.ts";
import { environmentWith, packageList } from "../../src/sandbox/packages.ts";
import { SandboxError } from "../../src/sandbox/sandbox.ts";
import { temporaryFolders } from "../support/folders.ts";
import { job, stdin, textOf } from "./plain.ts";

const newFolder = temporaryFolders();
const before = process.env["WHETSTONE_CACHE"];
afterEach(() => {
  if (before === undefined) delete process.env["WHETSTONE_CACHE"];
  else process.env["WHETSTONE_CACHE"] = before;
});

test("names as pip takes them, and nothing that would be an option, a path or an address", () => {
  expect(packageList(" numpy,sortedcontainers==2.4.0 numpy  ,pandas[excel]>=2 ")).toEqual([
    "numpy",
    "pandas[excel]>=2",
    "sortedcontainers==2.4.0",
  ]);
  expect(packageList("")).toEqual([]);
  for (const wrong of [
    "--index-url=http://x",
    "-r",
    "./here",
    "/tmp/x",
    "git+https://x/y",
    "a@http://x",
    "a;b",
    "$(x)",
    "-",
  ])
    expect(() => packageList(wrong), wrong).toThrow(SandboxError);
});

describe("an environment of its own", () => {
  test("is made once and then used, at both levels", async (context) => {
    process.env["WHETSTONE_CACHE"] = newFolder();
    const said: string[] = [];
    const say = (line: string) => void said.push(line);
    let folder: string;
    try {
      // Two at once: neither disturbs the other.
      [folder] = (await Promise.all([1, 2].map(() => environmentWith(["sortedcontainers"], undefined, say)))) as [
        string,
        string,
      ];
    } catch (error) {
      if (!(error instanceof SandboxError)) throw error;
      return context.skip(`no package registry here: ${error.message.slice(0, 200)}`);
    }
    expect(said.length).toBeGreaterThan(0);
    said.length = 0;
    expect(await environmentWith(["sortedcontainers"], undefined, say)).toBe(folder);
    expect(said).toEqual([]);
    expect(readdirSync(join(folder, "..")).length).toBe(1);
    for (const level of ["jail", "landlock"] satisfies JailLevel[]) {
      const jail = await openJail({ python: folder, levels: [level], slots: 1 });
      try {
        const source = "from sortedcontainers import SortedList\nprint(SortedList([3, 1, 2])[0])\nimport pandas";
        const [outcome] = await jail.run(job(source, [stdin("")]), () => "continue");
        expect([outcome!.status, textOf(outcome)], outcome!.stderrTail).toEqual(["missing-module", "1\n"]);
        expect(outcome!.stderrTail).toContain("No module named 'pandas'");
      } finally {
        await jail.close();
      }
    }
    const sandbox = await openSandbox({ sandboxUrl: null, sandboxPackages: "sortedcontainers", maxConcurrency: 1 });
    expect(sandbox.description.python.startsWith(folder)).toBe(true);
    await sandbox.close();
  }, 240_000);
});
