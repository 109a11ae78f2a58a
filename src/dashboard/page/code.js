// Programs with colours: the pieces of a program, each set as text.
// @ts-check
import { append, h, untrusted } from "./dom.js";
import { codePieces } from "./text.js";

/** Makes nodes of a program. @param {import("./text.js").Syntax} syntax @returns {(source: string) => Node[]} */
export const codeNodes = (syntax) => (source) =>
  codePieces(source, syntax).flatMap(({ kind, text }) => {
    if (kind === "") return untrusted(text);
    const span = h("span", { class: `py-${kind}` });
    append(span, untrusted(text));
    return [span];
  });
