// What follows from the files of src/core/languages/: the list of them, which the source reads, and the table in docs/grading.md. `npm run docs` writes
// both, a test compares. Python, which is what is meant where nothing is said, comes first.
import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { fileURLToPath } from "node:url";

const folder = new URL("../../src/core/languages/", import.meta.url);
export const list = fileURLToPath(new URL("list.ts", folder));
export const page = fileURLToPath(new URL("../../docs/grading.md", import.meta.url));
const [begin, end] = ["<!-- made from the languages: begin -->", "<!-- made from the languages: end -->"];

/** The source of list.ts, from the files beside it that export a `Language`. */
export function listSource(): string {
  const names = readdirSync(folder).flatMap((file) => {
    if (!file.endsWith(".ts") || file.endsWith(".test.ts")) return [];
    const [, name] = /^export const (\w+): Language = /m.exec(readFileSync(new URL(file, folder), "utf8")) ?? [];
    return name === undefined ? [] : [{ file, name }];
  });
  const imports = names.map(({ file, name }) => `import { ${name} } from "./${file}";\n`).join("");
  const ordered = names
    .map(({ name }) => name)
    .sort((a, b) => Number(b === "python") - Number(a === "python") || (a < b ? -1 : 1));
  return (
    "// Every language that has a file here. Made by `npm run docs`.\n" +
    `${imports}\nexport const languages = { ${ordered.join(", ")} };\n`
  );
}

/** The page with its table as it should be. */
export async function withLanguages(text: string): Promise<string> {
  const { canCall, languageNames, languageOf } = await import("../../src/core/languages/languages.ts");
  const rows = languageNames.map((name) => {
    const { note, tags, fusion } = languageOf(name);
    const how = note ?? "It is a fork of a warm interpreter.";
    return `| \`${name}\` | ${tags.map((tag) => `\`${tag}\``).join(", ")} | ${how} | ${canCall(name) ? "called" : "no"} | \`${fusion}\` |`;
  });
  const table = [
    "| `language=` | tags of fences | how a program is run, as it is said to the model | functions | Sandbox Fusion's name |",
    "| --- | --- | --- | --- | --- |",
    ...rows,
  ].join("\n");
  return `${text.slice(0, text.indexOf(begin))}${begin}\n\n${table}\n\n${text.slice(text.indexOf(end))}`;
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  writeFileSync(list, listSource());
  writeFileSync(page, await withLanguages(readFileSync(page, "utf8")));
}
