// The API reference, docs/api/: one page per entry, made from the doc comments. `npm run api` writes it; a test compares it, and fails
// when something public has no comment.
import { mkdirSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { type Entry, type PublicName, readEntries } from "./read.ts";

export const apiFolder = fileURLToPath(new URL("../../docs/api/", import.meta.url));

/** The pages by file name. */
export function apiPages(entries: readonly Entry[]): Record<string, string> {
  const pages = Object.fromEntries(entries.map((entry) => [`${fileOf(entry)}.md`, page(entry)]));
  const list = entries.map((entry) => `- [\`${entry.name}\`](${fileOf(entry)}.md): ${entry.names.length} names`);
  const note =
    "Made from the doc comments by `npm run api`. What is not listed here is not public ([versions](../install.md#versions)).";
  return { ...pages, "README.md": ["# API", note, list.join("\n")].join("\n\n").concat("\n") };
}

/** What is public and has no doc comment. */
export function undocumented(entries: readonly Entry[]): string[] {
  return entries.flatMap((entry) =>
    entry.names.flatMap((item) => [
      ...(item.doc === "" ? [`${entry.name}: ${item.name}`] : []),
      ...item.members.filter(({ doc }) => doc === "").map(({ name }) => `${entry.name}: ${item.name}.${name}`),
    ]),
  );
}

const fileOf = (entry: Entry) => entry.name.replace(/^.*\//, "");

function page(entry: Entry): string {
  const kinds: [string, PublicName["kind"][]][] = [
    ["Classes", ["class"]],
    ["Functions", ["function"]],
    ["Values", ["value"]],
    ["Types", ["interface", "type"]],
  ];
  const sections = kinds.flatMap(([title, wanted]) => {
    const names = entry.names.filter(({ kind }) => wanted.includes(kind));
    return names.length === 0 ? [] : [`## ${title}`, ...names.map(section)];
  });
  return [`# ${entry.name}`, entry.about, ...sections]
    .filter((part) => part !== "")
    .join("\n\n")
    .concat("\n");
}

function section({ name, signature, doc, members }: PublicName): string {
  const rows = members.map((member) => `| ${code(member.signature)} | ${oneCell(member.doc)} |`);
  const table = rows.length === 0 ? [] : [["| | |", "| --- | --- |", ...rows].join("\n")];
  return [`### ${name}`, `\`\`\`ts\n${signature}\n\`\`\``, doc, ...table].join("\n\n");
}

const oneCell = (text: string) => text.replace(/\s*\n\s*/g, " ").replaceAll("|", "\\|");

/** Inline code in a table's cell. */
function code(text: string): string {
  const fence = text.includes("`") ? "``" : "`";
  return `${fence}${text.replaceAll("|", "\\|")}${fence}`;
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  rmSync(apiFolder, { recursive: true, force: true });
  mkdirSync(apiFolder, { recursive: true });
  for (const [name, text] of Object.entries(apiPages(readEntries()))) writeFileSync(join(apiFolder, name), text);
}
