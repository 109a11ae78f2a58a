// What the page and the report share: characters that are not seen, signs of verdicts, and programs cut into pieces by small scanners.
// Whatever the text is, the pieces joined are the text.
// @ts-check

/** Characters that are not seen, or that change how others are seen: they are shown by name instead of obeyed. */
export const hidden = /(?![\n\t])[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}\p{Default_Ignorable_Code_Point}]/gu;

/** @param {string} character */
export const nameOf = (character) => {
  const code = character.codePointAt(0) ?? 0;
  if (code === 13) return "␍";
  if (code < 32) return String.fromCodePoint(0x2400 + code);
  if (code === 127) return "␡";
  return `U+${code.toString(16).toUpperCase().padStart(4, "0")}`;
};

/** A text with its unseen characters shown by name, for places that take no elements. @param {unknown} text */
export const plain = (text) => String(text).replace(hidden, nameOf);

/** A text as a part of an address: half characters, which no address can hold, become U+FFFD. @param {string} text */
export const inAddress = (text) => encodeURIComponent(text.replace(/\p{Cs}/gu, "\uFFFD"));

/** An answer without a program is another thing than one with a wrong output: it has a sign, a shape and a colour of its own. */
export const signs = { pass: "✓", fail: "✕", format: "∅", ungraded: "?", waiting: "…" };

/** @param {{ verdict: string | null, status: string }} sample @returns {keyof typeof signs} */
export const kindOf = ({ verdict, status }) =>
  verdict === "fail" && status === "format_error"
    ? "format"
    : verdict === "pass" || verdict === "fail" || verdict === "ungraded"
      ? verdict
      : "waiting";

const words = (/** @type {string} */ text) => new Set(text.split(" "));
const keywords = new Set(
  (
    "False None True and as assert async await break class continue def del elif else except finally for from global if import in is " +
    "lambda match nonlocal not or pass raise return try while with yield case"
  ).split(" "),
);
const builtins = new Set(
  (
    "abs all any bin bool bytearray bytes callable chr classmethod complex dict dir divmod enumerate eval exec filter float format " +
    "frozenset getattr globals hasattr hash hex id input int isinstance issubclass iter len list locals map max min next object oct open " +
    "ord pow print property range repr reversed round self set setattr slice sorted staticmethod str sum super tuple type vars zip " +
    "__import__"
  ).split(" "),
);

/** Comments, strings (also unfinished ones), numbers, names; one alternative each, tried in order. */
const scanner =
  /(?<comment>#[^\n]*)|(?<string>(?:[rRbBuUfFtT]{0,3})(?:"""[\s\S]*?(?:"""|$)|'''[\s\S]*?(?:'''|$)|"(?:\\[\s\S]|[^"\\\n])*(?:"|(?=\n)|$)|'(?:\\[\s\S]|[^'\\\n])*(?:'|(?=\n)|$)))|(?<number>\b(?:0[xXoObB][\da-fA-F_]+|\d[\d_]*(?:\.[\d_]*)?(?:[eE][+-]?[\d_]+)?[jJ]?)|\.\d[\d_]*(?:[eE][+-]?[\d_]+)?[jJ]?)|(?<name>[\p{L}_][\p{L}\p{N}_]*)|(?<operator>[-+*/%@&|^~<>=!:]+)/gu;

/** The same for languages with braces, whose comments begin with // or stand between slashes and stars. */
const scannerOfBraces =
  /(?<comment>\/\/[^\n]*|\/\*[\s\S]*?(?:\*\/|(?![\s\S]))|^[ \t]*#[ \t]*(?:include|define|pragma|if|else|endif|undef)\b[^\n]*)|(?<string>"(?:\\[\s\S]|[^"\\\n])*(?:"|(?=\n)|$)|`(?:\\[\s\S]|[^`\\])*(?:`|(?![\s\S]))|'(?:\\[\s\S]|[^'\\\n]){0,80}')|(?<number>\b(?:0[xXoObB][\da-fA-F_']+|\d[\d_]*(?:\.[\d_]+)?(?:[eE][+-]?\d+)?)[\w]*)|(?<name>[\p{L}_$][\p{L}\p{N}_$]*)|(?<operator>[-+*/%@&|^~<>=!:?]+)/gmu;
const keywordsOfBraces = words(
  "abstract as async auto await bool boolean break byte case catch chan char class const continue crate declare default defer delete do double dyn else " +
    "enum export extends extern false final finally float fn for func function go goto if impl implements import in inline instanceof int interface " +
    "let long loop map match mod move mut namespace new nil null nullptr number of operator override package private protected pub public range readonly " +
    "record ref return select self short signed sizeof static string struct super switch template this throw throws trait true try type typedef " +
    "typename typeof undefined union unsafe unsigned use using var virtual void volatile where while yield",
);

/** What begins a comment elsewhere, in place of the slashes; Lua's may have an end. */
const scannerOf = (/** @type {string} */ comment) => {
  if (comment === "//") return scannerOfBraces;
  const begin = comment.replace(/[$()*+.?[\\\]^{|}]/g, "\\$&");
  const long = comment === "--" ? "--\\[\\[[\\s\\S]*?(?:\\]\\]|(?![\\s\\S]))|" : "";
  return new RegExp(scannerOfBraces.source.replace("\\/\\/[^\\n]*", `${long}${begin}[^\\n]*`), scannerOfBraces.flags);
};
const definingWords = words("def class function fn func struct enum interface trait record type");

/** A scanner that looks at more than this could be made slow on purpose. */
const longest = 200_000;

/**
 * The pieces of a program: kind and text. Joined they are the program.
 * @param {string} source
 * @param {{ comment: string, keywords?: string }} [syntax] what begins a comment, and the words where they are not those of braces; default Python
 * @returns {{ kind: string, text: string }[]}
 */
export function codePieces(source, syntax) {
  if (source.length > longest)
    return [...codePieces(source.slice(0, longest), syntax), { kind: "", text: source.slice(longest) }];
  const { comment, keywords: own } = syntax ?? { comment: "#" };
  const isPython = comment === "#" && own === undefined;
  const known = isPython ? keywords : own === undefined ? keywordsOfBraces : words(own);
  /** @type {{ kind: string, text: string }[]} */
  const pieces = [];
  let from = 0;
  let previous = "";
  for (const match of source.matchAll(isPython ? scanner : scannerOf(comment))) {
    if (match[0] === "") continue;
    if (match.index > from) pieces.push({ kind: "", text: source.slice(from, match.index) });
    const groups = match.groups ?? {};
    let kind = Object.keys(groups).find((name) => groups[name] !== undefined) ?? "";
    if (kind === "name") {
      const word = match[0];
      kind = known.has(word)
        ? "keyword"
        : definingWords.has(previous)
          ? "defined"
          : isPython && builtins.has(word)
            ? "builtin"
            : "";
      previous = word;
    } else if (kind !== "comment") previous = "";
    pieces.push({ kind, text: match[0] });
    from = match.index + match[0].length;
  }
  if (from < source.length) pieces.push({ kind: "", text: source.slice(from) });
  return pieces;
}
