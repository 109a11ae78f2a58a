// Programs with colours and numbered lines: the pieces of a program, each set as text.
// @ts-check
import { append, h, untrusted } from "./dom.js";
import { codePieces } from "./text.js";

/**
 * Makes nodes of a program, part by part; the line that failed is marked.
 * @param {{ syntax: import("./text.js").Syntax, failedLine?: number | undefined }} sample @returns {(source: string) => Node[]}
 */
export function codeNodes({ syntax, failedLine }) {
  let line = 0;
  const number = () => {
    line++;
    return h("span", { class: line === failedLine ? "line failed" : "line", "data-line": String(line) });
  };
  return (source) => [
    ...(line === 0 ? [number()] : []),
    ...codePieces(source, syntax).flatMap(({ kind, text }) =>
      text.split(/(?<=\n)/).flatMap((part) => {
        const span = kind === "" ? undefined : h("span", { class: `py-${kind}` });
        if (span) append(span, untrusted(part));
        return [...(span ? [span] : untrusted(part)), ...(part.endsWith("\n") ? [number()] : [])];
      }),
    ),
  ];
}
