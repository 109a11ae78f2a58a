// What holds for every command, whichever is added.
import { readFileSync } from "node:fs";
import { expect, test } from "vitest";
import { readme, withCommands } from "../../scripts/commands/write.ts";
import { availableCommands } from "./available-commands.ts";

const commands = Object.entries(await availableCommands()).filter(([name]) => !["test", "bench"].includes(name));

test.each(commands)("%s refuses words that mean nothing, a prototype's name and an unknown key", async (_, entry) => {
  const { command } = await entry.load();
  for (const args of [["these", "words", "mean", "nothing"], ["__proto__=1"], ["no_such_key=1"], ["--no-such-key=1"]])
    await expect(async () => command.run(args), args.join(" ")).rejects.toMatchObject({
      code: expect.stringMatching(/^config\//),
    });
});

test.each(commands)("%s has a help text with its usage", async (name, entry) => {
  const { command } = await entry.load();
  expect(command.help([])).toMatch(new RegExp(`^Usage: \\./whet ${name}\\b`));
  expect(entry.summary).not.toMatch(/[.\n]$/);
});

test("README.md lists every command; `npm run docs` writes the table", async () => {
  const page = readFileSync(readme, "utf8");
  expect(page).toContain("| `./whet train` |");
  expect(page).toBe(await withCommands(page));
});
