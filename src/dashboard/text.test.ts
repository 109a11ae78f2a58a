// Text stays text: the scanner of programs loses nothing, what is unseen is shown, and its strings and comments are those of Python itself.
import { execFileSync } from "node:child_process";
import fc from "fast-check";
import { expect, test } from "vitest";
import { escapeHtml } from "../core/html.ts";
import { codeHtml, untrustedHtml } from "./html.ts";
import { codePieces, hidden } from "./page/text.js";

const snippets = fc.constantFrom(
  '"""',
  "'''",
  '"',
  "'",
  "\\",
  "#",
  "\n",
  "def f",
  "f'",
  'rb"',
  "0x1F",
  "1e-9",
  " ",
  "\t",
  "é",
  "\u202E",
  "x",
  "<b>",
  "&",
);
const programs = fc.oneof(
  fc.string({ unit: "binary" }),
  fc.array(snippets, { maxLength: 60 }).map((parts) => parts.join("")),
);

test("the pieces of any text, joined, are the text", () => {
  fc.assert(
    fc.property(programs, (text) => {
      const joined = codePieces(text).map((piece) => piece.text);
      expect(joined.join("")).toBe(text);
      expect(codePieces(text, { comment: "//" }).reduce((all, piece) => all + piece.text, "")).toBe(text);
    }),
  );
});

test("HTML of any text has no markup but the report's own, and shows what is unseen", () => {
  fc.assert(
    fc.property(programs, (text) => {
      for (const html of [untrustedHtml(text), codeHtml(text), codeHtml(text, { comment: "//" })]) {
        const left = html.replaceAll(/<\/?(mark|small|span)( class="py-[a-z]+")?>/g, "");
        expect(left).not.toMatch(/[<>"]/);
        expect(left.match(hidden)).toBeNull();
      }
    }),
  );
  expect(escapeHtml(`<a href='x'>&"`)).toBe("&lt;a href=&#39;x&#39;&gt;&amp;&quot;");
});

test("characters that hide or reorder text are named", () => {
  expect(untrustedHtml("a\u202Eb\u200Bc\u0000d\r\u2028\uFEFF\u{E0041}\uD800")).toBe(
    "a<mark>U+202E</mark>b<mark>U+200B</mark>c<mark>␀</mark>d<mark>␍</mark><mark>U+2028</mark><mark>U+FEFF</mark><mark>U+E0041</mark><mark>U+D800</mark>",
  );
  expect(untrustedHtml("tab\tand\nline, שלום, 日本, 👍, é")).toBe("tab\tand\nline, שלום, 日本, 👍, é");
});

/** Modules of Python's own library, and for each its comments, strings and numbers as Python's tokenizer finds them. */
const script = `
import sys, json, tokenize, io, importlib
whole = {getattr(tokenize, name, None): -1 if name.endswith("END") else 1 for name in ("FSTRING_START", "FSTRING_END", "TSTRING_START", "TSTRING_END")}
for name in "textwrap heapq bisect fractions statistics json.decoder dataclasses shlex".split():
    source = open(importlib.import_module(name).__file__, encoding="utf8").read()
    lines = source.splitlines(keepends=True)
    offset = lambda place: sum(map(len, lines[: place[0] - 1])) + place[1]
    found, depth, start = [], 0, 0
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if depth == 0 and token.type in (tokenize.COMMENT, tokenize.NUMBER, tokenize.STRING): found.append([tokenize.tok_name[token.type].lower(), token.string])
        change = whole.get(token.type, 0)
        if depth == 0 and change == 1: start = offset(token.start)
        depth += change
        if depth == 0 and change == -1: found.append(["string", source[start : offset(token.end)]])
    print(json.dumps([source, found]))
`;

test("strings, comments and numbers are where Python's own tokenizer finds them", () => {
  const output = execFileSync("python3", ["-c", script], { encoding: "utf8", maxBuffer: 1 << 26 });
  const modules = output
    .trim()
    .split("\n")
    .map((line) => JSON.parse(line) as [string, [string, string][]]);
  expect(modules).toHaveLength(8);
  for (const [source, expected] of modules) {
    const found = codePieces(source).filter(({ kind }) => ["string", "comment", "number"].includes(kind));
    expect(found.map(({ kind, text }) => [kind, text])).toEqual(expected);
  }
});

test("programs of languages with braces have their own comments, strings and words", () => {
  const source = '#include <x>\nint main() { // it\'s\n  auto s = "a // b"; /* c\n d */ return 0x1F; }';
  const found = codePieces(source, { comment: "//" }).filter(({ kind }) => kind !== "" && kind !== "operator");
  expect(found.map(({ kind, text }) => `${kind} ${text}`)).toEqual([
    ...[
      "comment #include <x>",
      "keyword int",
      "comment // it's",
      "keyword auto",
      'string "a // b"',
      "comment /* c\n d */",
    ],
    ...["keyword return", "number 0x1F"],
  ]);
});

test("a language has comments and words of its own where it says so", () => {
  const source = "--[[ two\nlines ]] local end_ = 1 -- one\nif x // 2 then s = '--' end";
  const found = codePieces(source, { comment: "--", keywords: "local if then end" });
  const texts = (wanted: string) => found.filter(({ kind }) => kind === wanted).map(({ text }) => text);
  expect(texts("comment")).toEqual(["--[[ two\nlines ]]", "-- one"]);
  expect(texts("keyword")).toEqual(["local", "if", "then", "end"]);
  expect(texts("string")).toEqual(["'--'"]);
});
