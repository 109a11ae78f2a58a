// Python with colours: the pieces of a program, each set as text.
// @ts-check
import { append, h, untrusted } from "./dom.js";
import { pythonPieces } from "./text.js";

/** A program as nodes. @param {string} source @returns {Node[]} */
export function pythonNodes(source) {
  return pythonPieces(source).flatMap(({ kind, text }) => {
    if (kind === "") return untrusted(text);
    const span = h("span", { class: `py-${kind}` });
    append(span, untrusted(text));
    return [span];
  });
}
