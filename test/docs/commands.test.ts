// What the documentation shows is there: every `./whet` command takes the keys that are shown, every file that a page names exists.
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";
import { commands } from "../../src/cli/commands.ts";

const root = fileURLToPath(new URL("../../", import.meta.url));
const pages = ["README.md", "AGENTS.md", "CONTRIBUTING.md", ...docPages(), "models/nano-coder/README.md"];

function docPages(): string[] {
  return readdirSync(`${root}docs`, { recursive: true, encoding: "utf8" })
    .filter((name) => name.endsWith(".md"))
    .map((name) => `docs/${name}`);
}

/** Commands in code blocks and in inline code. */
function commandsIn(page: string): string[][] {
  const text = readFileSync(`${root}${page}`, "utf8");
  const blocks = [...text.matchAll(/```(?:bash|sh)\n([\s\S]*?)```/g)].flatMap(([, block]) => block!.split("\n"));
  const inline = [...text.matchAll(/`(\.\/whet [^`\n]+)`/g)].map(([, command]) => command!);
  return [...blocks, ...inline].flatMap((line) => {
    const found = /(?:^|\s)\.\/whet ([a-z]+[^#|>&]*)/.exec(line);
    return found ? [found[1]!.trim().split(/\s+/)] : [];
  });
}

/** What docs/troubleshooting.md shows on purpose. */
const mistakes = new Set(["learning_rte"]);

test.each(pages)("%s", async (page) => {
  for (const words of commandsIn(page)) {
    // `help train` is about train; COMMAND stands for any.
    const [name, ...args] = words[0] === "help" ? words.slice(1) : words;
    if (name === undefined || name === "COMMAND") continue;
    expect(Object.keys(commands), `${page}: ./whet ${name}`).toContain(name);
    const { command } = await commands[name!]!.load();
    const keys = new Set([...command.help([]).matchAll(/^ {2}([a-z_]+)=/gm)].map(([, key]) => key));
    for (const argument of args) {
      const key = /^([a-z_]+)=/.exec(argument)?.[1];
      if (key !== undefined && !mistakes.has(key))
        expect([...keys], `${page}: ./whet ${name} ${argument}`).toContain(key);
    }
  }
});

test("the documentation shows commands at all", () => {
  expect(pages.flatMap(commandsIn).length).toBeGreaterThan(10);
});

/** `NAME` stands for any; `a/b` too. */
const filesIn = (page: string) =>
  [
    ...readFileSync(`${root}${page}`, "utf8").matchAll(
      /`((?:src|test|scripts|bench|examples|data|models|docs)\/[\w./-]+\.\w+)`/g,
    ),
  ]
    .map(([, file]) => file!)
    .filter((file) => !/NAME|\ba\/b\b/.test(file));

test("files that pages name are there", () => {
  const named = pages.flatMap((page) => filesIn(page).map((file) => ({ page, file })));
  expect(named.length).toBeGreaterThan(100);
  // Pages on a part name its files from src/ on, or from the part on.
  expect(named.filter(({ file }) => !existsSync(`${root}${file}`) && !existsSync(`${root}src/${file}`))).toEqual([]);
});
