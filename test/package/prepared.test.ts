// A checkout on a Node that cannot run TypeScript: what is kept of the source is never older than the source, however many start at once.
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { beforeAll, describe, expect, test } from "vitest";
import { temporaryFolders } from "../support/folders.ts";
import { cleanEnvironment } from "../support/whet.ts";
import { addPackages, freshClone, run } from "./clone.ts";

const folder = temporaryFolders();
const node = process as { features: { typescript?: unknown } };

describe.skipIf(node.features.typescript)("the prepared source", () => {
  let clone: string;
  const kept = () => readdirSync(join(clone, "node_modules/.cache/whetstone/js"));
  const whet = (...args: string[]) => run(["./whet", ...args], { cwd: clone, env: cleanEnvironment() });
  const edit = (file: string, from: string, to: string) => {
    const path = join(clone, "src", file);
    const text = readFileSync(path, "utf8");
    expect(text).toContain(from);
    writeFileSync(path, text.replace(from, to));
  };

  beforeAll(() => {
    clone = freshClone(folder());
    addPackages(clone);
  });

  test("is made once, and anew when a file has changed", async () => {
    expect((await whet("help")).stdout).toContain("reinforcement learning for code models");
    expect((await whet("help")).stdout).toContain("reinforcement learning for code models");
    const before = kept();
    edit("cli/main.ts", "reinforcement learning for code models", "another text");
    expect((await whet("help")).stdout).toContain("another text");
    expect(kept().filter((name) => !before.includes(name))).toHaveLength(1);
  });

  test("several first uses at once all work and leave one", async () => {
    const before = kept();
    edit("cli/main.ts", "another text", "a third text");
    const all = await Promise.all(Array.from({ length: 3 }, () => whet("help")));
    for (const { code, stdout, stderr } of all) {
      expect({ code, stderr }).toEqual({ code: 0, stderr: "" });
      expect(stdout).toContain("a third text");
    }
    const added = kept().filter((name) => !before.includes(name));
    expect(added).toHaveLength(1);
    expect(added[0]).not.toContain(".part");
  });

  test("a crash is told by its place in the source", async () => {
    edit(
      "cli/commands/runs.ts",
      "  async run({ options, words: [folder] }) {",
      '  async run({ options, words: [folder] }) {\n    if (folder === "crash") throw new Error("on purpose");',
    );
    const line = readFileSync(join(clone, "src/cli/commands/runs.ts"), "utf8")
      .split("\n")
      .findIndex((text) => text.includes("on purpose"));
    const { code, stderr } = await whet("runs", "crash");
    expect(code).not.toBe(0);
    expect(stderr).toMatch(new RegExp(`Error: on purpose\\n\\s+at .*src/cli/commands/runs\\.ts:${line + 1}:\\d+`));
  });

  test("source that cannot be compiled is an error, not what was there before", async () => {
    edit("cli/main.ts", "a third text", 'a third text" +');
    const { code, stderr } = await whet("help");
    expect(code).not.toBe(0);
    expect(stderr).toMatch(/main\.ts|Expected/);
    expect(kept().filter((name) => name.includes(".part"))).toEqual([]);
  });

  test("without any folder to write to, everything works from the source", async () => {
    const elsewhere = freshClone(folder());
    addPackages(elsewhere);
    const cache = join(elsewhere, "node_modules/.cache/whetstone");
    mkdirSync(cache, { recursive: true });
    writeFileSync(join(cache, "js"), "");
    const env = cleanEnvironment({ WHETSTONE_CACHE: "/dev/null" });
    const { code, stdout } = await run(["./whet", "help", "runs"], { cwd: elsewhere, env });
    expect({ code, stdout }).toEqual({ code: 0, stdout: expect.stringContaining("Usage: ./whet runs") });
  });
});
