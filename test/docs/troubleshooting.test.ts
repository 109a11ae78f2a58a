// docs/troubleshooting.md: each error that can be brought about by one command is brought about, and is the one that the page names.
import { readFileSync } from "node:fs";
import { describe, expect, test } from "vitest";
import { readErrorCodes } from "../../scripts/errors/read.ts";
import { runCommand } from "../support/command-process.ts";
import { foldersInMemory } from "../support/folders.ts";

const folders = foldersInMemory();
const page = readFileSync(new URL("../../docs/troubleshooting.md", import.meta.url), "utf8");
const rows = [...page.matchAll(/^\| .*?\(`([a-z]+\/[a-z-]+)`\).*\| (.*) \|$/gm)].map(([, code, how]) => ({
  code: code!,
  how: how!,
}));

test("every code on the page exists", () => {
  const known = new Set(readErrorCodes().map(({ code }) => code));
  expect(rows.length).toBeGreaterThan(10);
  expect(rows.filter(({ code }) => !known.has(code))).toEqual([]);
});

/** Those start an engine first, and test/system/train-errors.test.ts has them. */
const shownElsewhere = new Set(["cli/model-not-offered", "renderer/unknown"]);
const commands = rows.flatMap(({ code, how }) => {
  const found = /^`(?:([A-Z_]+)=(\S+) )?\.\/whet ([^`]+)`$/.exec(how);
  return found && !shownElsewhere.has(code) && !/FILE|RUN/.test(how)
    ? [{ code, env: found[1] ? { [found[1]]: found[2]! } : {}, args: found[3]!.split(" "), how }]
    : [];
});

describe("as the page says", () => {
  test("several can be tried", () => expect(commands.length).toBeGreaterThan(5));

  test.concurrent.each(commands)("$how", async ({ code, env, args }) => {
    const { stderr, code: exit } = await runCommand(args, { cwd: folders(), env: { ...env, HOME: folders() } });
    expect(stderr).toContain(`[${code}]`);
    expect(exit).toBe(code.startsWith("config/") ? 2 : 1);
  });
});
