// The table of docs/diagnosis.md, made from the rules: `npm run docs` writes it, a test compares it.
import { readFileSync, writeFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { rules } from "../../src/diagnosis/rules.ts";

export const diagnosisDocsPath = fileURLToPath(new URL("../../docs/diagnosis.md", import.meta.url));

const [begin, end] = ["<!-- made from the rules: begin -->", "<!-- made from the rules: end -->"];

/** The page with its table as the rules say. */
export function withTable(page: string): string {
  const rows = rules.map(({ id, levels, when, means, remedy, curable, symptomOf = [] }) => {
    const causes = symptomOf.filter((cause) => cause !== id).map((cause) => `\`${cause}\``);
    const cells = [`\`${id}\`${curable ? " ↺" : ""}`, levels.join(", "), when, means, remedy, causes.join(", ")];
    return `| ${cells.map((cell) => cell.replaceAll("|", "\\|")).join(" | ")} |`;
  });
  const table = [
    "| id | level | when | most likely means | what to do | symptom of |",
    "| --- | --- | --- | --- | --- | --- |",
    ...rows,
  ];
  const [before, after] = [page.indexOf(begin) + begin.length, page.indexOf(end)];
  return `${page.slice(0, before)}\n\n${table.join("\n")}\n\n${page.slice(after)}`;
}

if (process.argv[1] === fileURLToPath(import.meta.url))
  writeFileSync(diagnosisDocsPath, withTable(readFileSync(diagnosisDocsPath, "utf8")));
