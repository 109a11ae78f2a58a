// What holds for every command, whichever is added.
import { readFileSync } from "node:fs";
import { expect, test } from "vitest";
import { readme, withCommands } from "../../scripts/commands/write.ts";
import { widthOf } from "../core/wrap.ts";
import { wrapHelp } from "./arguments/help.ts";
import { choicesOf } from "./arguments/options.ts";
import { trainGroups } from "./arguments/train-config.ts";
import { commands as table } from "./commands.ts";

const commands = Object.entries(table).filter(([name]) => !["test", "bench"].includes(name));

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

test.each(commands)("%s: help lists the keys that it takes, with the values of every choice", async (_, entry) => {
  const { keys = {}, help } = (await entry.load()).command;
  const lines = new Map(
    [...help([]).matchAll(/^ {2}([a-z]\w*)=(.*)$/gm)].map(([, key, text]): [string, string] => [key!, text!]),
  );
  expect([...lines.keys()].toSorted()).toEqual(Object.keys(keys).toSorted());
  for (const [key, field] of Object.entries(keys))
    for (const value of choicesOf(field)) expect(lines.get(key), key).toMatch(new RegExp(`[[|]${value}[\\]|]`));
});

test.each(commands)("%s: help is no wider than the terminal, and says the same", async (_, entry) => {
  const text = (await entry.load()).command.help([]);
  const words = (help: string) => help.split(/\s+/).join(" ");
  expect(wrapHelp(text, widthOf({ isTTY: false, columns: 80 }))).toBe(text);
  for (const columns of [40, 80, 120]) {
    const wrapped = wrapHelp(text, widthOf({ isTTY: true, columns }));
    expect(words(wrapped)).toBe(words(text));
    const wide = wrapped.split("\n").filter((line) => line.length > columns && !/^(Usage:| {7}\S*whet )/.test(line));
    // A line with one word on it cannot be broken.
    expect(wide.filter((line) => line.trim().includes(" "))).toEqual([]);
  }
});

test("the keys of train stand in groups", async () => {
  const { command } = await commands.find(([name]) => name === "train")![1].load();
  const [, ...groups] = command.help([]).split(/^(?=\S.*:\n {2})/m);
  expect(groups.map((group) => group.split(":\n")[0])).toEqual(Object.keys(trainGroups));
  expect(Math.max(...groups.map((group) => group.trim().split("\n").length))).toBeLessThan(20);
});

test("README.md lists every command; `npm run docs` writes the table", () => {
  const page = readFileSync(readme, "utf8");
  expect(page).toContain("| `./whet train` |");
  expect(page).toBe(withCommands(page));
});
