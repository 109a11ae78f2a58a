// The table of commands in README.md, made from the commands themselves: `npm run docs` writes it, a test compares it.
import { readFileSync, writeFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { commands } from "../../src/cli/commands.ts";

export const readme = fileURLToPath(new URL("../../README.md", import.meta.url));
const [begin, end] = ["<!-- made from the commands: begin -->", "<!-- made from the commands: end -->"];

/** The page with its table as it should be. */
export function withCommands(page: string): string {
  const rows = Object.entries(commands).map(([name, { summary }]) => `| \`./whet ${name}\` | ${summary} |`);
  const table = ["| command | does |", "| --- | --- |", ...rows].join("\n");
  const [before, rest] = [page.slice(0, page.indexOf(begin)), page.slice(page.indexOf(end))];
  return `${before}${begin}\n\n${table}\n\n${rest}`;
}

if (process.argv[1] === fileURLToPath(import.meta.url))
  writeFileSync(readme, withCommands(readFileSync(readme, "utf8")));
