// Who wrote what in a rendered template. A control token is one only where the template itself wrote it; the same characters in a
// message are text. To tell them apart in one string, control tokens in the template's own text are spelled in a private alphabet (one
// private-use character per character) before it runs, and messages never have that alphabet: where they use its characters, they are
// escaped. Whatever a template does to its strings (trim, split, join, slice, replace), a character keeps its alphabet.

import { RendererError } from "../errors.ts";

/** A run of a rendered text: a control token of the template, or text. */
export type Piece = ({ token: string } | { text: string }) & {
  /** How much of the rendered text it is. */
  length: number;
};

/** Private-use characters: the escape, the two marks of a generation block, and the alphabet. */
export const escapeMark = "\uF5FD";
export const generationStart = "\uF5FE";
export const generationEnd = "\uF5FF";
const alphabetStart = 0xf600;
const alphabetEnd = 0xf6ff;
const reserved = /[\uF5FD-\uF6FF]/g;
const shift = 0x400;

export class ControlText {
  /** Longest first, so that the first that matches is the one. */
  readonly #tokens: readonly string[];
  /** The same in the private alphabet. */
  readonly #spelled: readonly string[];
  readonly #trusted = new Map<string, string>();
  readonly #plain: readonly string[];

  /** `tokens`: the texts that must not come out of a message as control tokens. */
  constructor(tokens: Iterable<string>) {
    this.#tokens = [...new Set(tokens)].filter((token) => token !== "").sort((a, b) => b.length - a.length);
    const characters = [...new Set(this.#tokens.join("").split(""))];
    if (characters.length > alphabetEnd - alphabetStart + 1) {
      throw new RendererError(
        "renderer/bad-chat-template",
        `The control tokens of this model use ${characters.length} different characters, and ${alphabetEnd - alphabetStart + 1} can be told ` +
          "apart. Use another renderer.",
      );
    }
    this.#plain = characters;
    for (const [index, character] of characters.entries())
      this.#trusted.set(character, String.fromCharCode(alphabetStart + index));
    this.#spelled = this.#tokens.map((token) => this.spell(token));
  }

  /** The template's own text: control tokens, and pieces of them at its edges, in the private alphabet. */
  mark(literal: string): string {
    let result = "";
    for (let index = 0; index < literal.length; ) {
      const token = this.#tokens.find((candidate) => literal.startsWith(candidate, index));
      result += token === undefined ? literal[index]! : this.spell(token);
      index += token?.length ?? 1;
    }
    const head = this.#longest(literal, (token, length) => literal.startsWith(token.slice(-length)));
    const tail = this.#longest(literal, (token, length) => literal.endsWith(token.slice(0, length)));
    // The same length as before, so positions are the literal's.
    if (head > 0) result = this.spell(literal.slice(0, head)) + result.slice(head);
    if (tail > 0) result = result.slice(0, result.length - tail) + this.spell(literal.slice(literal.length - tail));
    return result;
  }

  /** Text from outside, so that none of it is in the private alphabet. */
  escape(text: string): string {
    return text.replaceAll(reserved, (character) => escapeMark + String.fromCharCode(character.charCodeAt(0) - shift));
  }

  /** What a marked text says; escapes are kept, so that positions are too. */
  readonly unmark = (text: string): string =>
    text.replaceAll(
      /[\uF600-\uF6FF]/g,
      (character) => this.#plain[character.charCodeAt(0) - alphabetStart] ?? character,
    );

  /** The text as the reference implementation gives it. */
  plain(rendered: string): string {
    return withoutEscapes(stripMarks(this.unmark(rendered)));
  }

  /** The control tokens that the template wrote, and the text between them. */
  split(rendered: string): Piece[] {
    const text = this.unmark(rendered);
    const pieces: Piece[] = [];
    let done = 0;
    const flush = (end: number) => {
      if (end <= done) return;
      const between = withoutEscapes(stripMarks(text.slice(done, end)));
      pieces.push({ text: between, length: end - done });
    };
    for (const { index } of rendered.matchAll(/[\uF600-\uF6FF]/g)) {
      const token =
        index < done
          ? undefined
          : this.#tokens.find((_, position) => rendered.startsWith(this.#spelled[position]!, index));
      if (token === undefined) continue;
      flush(index);
      pieces.push({ token, length: token.length });
      done = index + token.length;
    }
    flush(text.length);
    return pieces;
  }

  /** Text of ours in the private alphabet, as far as that goes. */
  spell(text: string): string {
    return text.replaceAll(/[\s\S]/g, (character) => this.#trusted.get(character) ?? character);
  }

  #longest(literal: string, matches: (token: string, length: number) => boolean): number {
    let best = 0;
    for (const token of this.#tokens)
      for (let length = Math.min(token.length - 1, literal.length); length > best; length--)
        if (matches(token, length)) best = length;
    return best;
  }
}

/** The text without the marks of generation blocks. */
export const stripMarks = (text: string): string => text.replaceAll(/[\uF5FE\uF5FF]/g, "");

const withoutEscapes = (text: string) =>
  text.replaceAll(/\uF5FD([\s\S])/g, (_, character: string) => String.fromCharCode(character.charCodeAt(0) + shift));
