// Text into HTML, for the report. What cannot be seen is shown by name, what could be markup is escaped.
import { escapeHtml } from "../core/html.ts";
import { codePieces, hidden, nameOf, type Syntax } from "./page/text.js";

/** Text of a model, a program or a data set; cut to `most` characters. */
export function untrustedHtml(text: string, most = 2000): string {
  const shown = escapeHtml(text.slice(0, most)).replaceAll(hidden, (character) => `<mark>${nameOf(character)}</mark>`);
  return text.length > most ? `${shown}<small> … ${text.length - most} more characters</small>` : shown;
}

/** A program with colours; cut to `most` characters. */
export function codeHtml(source: string, syntax?: Syntax, most = 4000): string {
  const pieces = codePieces(source.slice(0, most), syntax).map(({ kind, text }) => {
    const shown = untrustedHtml(text, most);
    return kind === "" ? shown : `<span class="py-${kind}">${shown}</span>`;
  });
  return pieces.join("") + (source.length > most ? `<small> … ${source.length - most} more characters</small>` : "");
}
