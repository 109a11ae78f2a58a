// docs/errors.md, made from the source: `npm run errors` writes it, a test compares it.
import { writeFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { areas, type ErrorCode, readErrorCodes } from "./read.ts";

export const errorsPage = fileURLToPath(new URL("../../docs/errors.md", import.meta.url));

/** The whole page. */
export function errorsDocs(codes: readonly ErrorCode[]): string {
  const sections = Object.entries(areas).flatMap(([area, about]) => {
    const rows = codes
      .filter(({ code }) => code.startsWith(`${area}/`))
      .map(
        ({ code, messages }) => `| \`${code}\` | ${messages.map(cell).join("<br>") || "in the words of its cause"} |`,
      );
    return rows.length === 0
      ? []
      : [`## ${area}`, about, ["| code | what it says |", "| --- | --- |", ...rows].join("\n")];
  });
  const intro = [
    "# Errors",
    "Every error that Whetstone raises on purpose has a stable code, printed in brackets after its message. Messages say what happened, with the\nvalue seen (… here), and what to do next. This page is made from the source by `npm run errors`.",
  ];
  return `${[...intro, ...sections].join("\n\n")}\n`;
}

/** As the cell of a table: no bars, no HTML, no line breaks. */
const cell = (text: string) =>
  text.replaceAll("|", "\\|").replaceAll("<", "&lt;").replaceAll("*", "\\*").replaceAll("_", "\\_");

if (process.argv[1] === fileURLToPath(import.meta.url)) writeFileSync(errorsPage, errorsDocs(readErrorCodes()));
