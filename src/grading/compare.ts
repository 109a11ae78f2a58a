// Decides whether a program's output is the expected text. Comparators are pure and do not stop at the first difference: how long one
// takes depends on the two texts' lengths, and hardly on whether they match. The grader calls them in its judge thread.
import { decimalsEqual, numbersAgree, withinTolerance } from "./decimal.ts";

/** The options of `tokens`, as contest packages declare them. */
export interface TokenRules {
  /** Whether capital letters differ from small ones. */
  caseSensitive?: boolean | undefined;
  /** Whitespace must be equal too. */
  spaceSensitive?: boolean | undefined;
  /** How far numbers may lie apart. */
  absolute?: number | undefined;
  /** How far numbers may lie apart, relative to the expected one. */
  relative?: number | undefined;
}

/**
 * `tolerant`: lines of tokens; blank lines and spacing do not matter; decimals get a small tolerance, integers none.
 * `lcb`: LiveCodeBench's rule; line by line, exact decimals, no tolerance.
 * `tokens`: the default checker of contest packages; one stream of tokens whatever the lines, with declared tolerances.
 */
export type Comparator = "tolerant" | "lcb" | "tokens" | ({ kind: "tokens" } & TokenRules);
/** The ways to compare outputs, by the name that settings use. */
export const comparatorNames = ["tolerant", "lcb", "tokens"] as const;

const decoder = new TextDecoder("utf-8", { ignoreBOM: true });

/** Bytes as text; what is not UTF-8 becomes U+FFFD, which no expected text holds. */
export const decodeOutput = (bytes: Uint8Array): string => decoder.decode(bytes);

/** Whether `actual` is the expected text. */
export function outputsMatch(actual: string, expected: string, comparator: Comparator = "tolerant"): boolean {
  if (comparator === "tolerant") return tolerant(actual, expected);
  if (comparator === "lcb") return lcb(actual, expected);
  return tokens(actual, expected, comparator === "tokens" ? {} : comparator);
}

function tolerant(actual: string, expected: string): boolean {
  const a = new LineCursor(actual);
  const b = new LineCursor(expected);
  let same = true;
  for (;;) {
    const left = a.nextWithTokens();
    const right = b.nextWithTokens();
    if (left === undefined || right === undefined) return same && left === right;
    if (!linesAgree(left, right, (x, y) => x === y || numbersAgree(x, y))) same = false;
  }
}

function lcb(actual: string, expected: string): boolean {
  const a = new LineCursor(trim(actual));
  const b = new LineCursor(trim(expected));
  let same = true;
  for (;;) {
    const left = a.next();
    const right = b.next();
    if (left === undefined || right === undefined) return same && left === right;
    if (!linesAgree(left, right, decimalsEqual)) same = false;
  }
}

/** Whether two trimmed lines are equal, as text or token by token. */
function linesAgree(left: string, right: string, agree: (x: string, y: string) => boolean): boolean {
  return left === right || tokensAgree(new TokenCursor(left), new TokenCursor(right), agree);
}

function tokensAgree(ours: TokenCursor, theirs: TokenCursor, agree: (x: string, y: string) => boolean): boolean {
  let same = true;
  for (;;) {
    const x = ours.next();
    const y = theirs.next();
    if (x === undefined || y === undefined) return same && x === y;
    if (!agree(x, y)) same = false;
  }
}

function tokens(actual: string, expected: string, rules: TokenRules): boolean {
  const fold = rules.caseSensitive ? (text: string) => text : (text: string) => text.toLowerCase();
  if (rules.spaceSensitive) return fold(actual) === fold(expected);
  return tokensAgree(
    new TokenCursor(actual),
    new TokenCursor(expected),
    (x, y) => x === y || fold(x) === fold(y) || withinTolerance(x, y, rules),
  );
}

/** Walks the lines of a text, trimmed. A carriage return is whitespace, so CRLF needs no care. */
class LineCursor {
  readonly text: string;
  position = 0;

  constructor(text: string) {
    this.text = text;
  }

  /** The next line, empty ones included. */
  next(): string | undefined {
    const { text, position } = this;
    if (position > text.length) return undefined;
    const newline = text.indexOf("\n", position);
    const end = newline < 0 ? text.length : newline;
    this.position = end + 1;
    return trim(text, position, end);
  }

  /** The next line that has a token. */
  nextWithTokens(): string | undefined {
    const { text } = this;
    // Skipping whitespace, line ends included, lands on the first token of the next line that has one.
    while (this.position < text.length && isSpace(text.charCodeAt(this.position))) this.position++;
    return this.position < text.length ? this.next() : undefined;
  }
}

class TokenCursor {
  readonly text: string;
  position = 0;

  constructor(text: string) {
    this.text = text;
  }

  next(): string | undefined {
    const { text } = this;
    const end = text.length;
    let start = this.position;
    while (start < end && isSpace(text.charCodeAt(start))) start++;
    let stop = start;
    while (stop < end && !isSpace(text.charCodeAt(stop))) stop++;
    this.position = stop;
    return start === end ? undefined : text.slice(start, stop);
  }
}

/** Whitespace as Python's str.split has it; U+FEFF is not. */
function isSpace(code: number): boolean {
  if (code < 128) return code === 32 || (code >= 9 && code <= 13) || (code >= 28 && code <= 31);
  return (
    code === 0x85 ||
    code === 0xa0 ||
    code === 0x1680 ||
    (code >= 0x2000 && code <= 0x200a) ||
    code === 0x2028 ||
    code === 0x2029 ||
    code === 0x202f ||
    code === 0x205f ||
    code === 0x3000
  );
}

function trim(text: string, start = 0, end = text.length): string {
  while (start < end && isSpace(text.charCodeAt(start))) start++;
  while (end > start && isSpace(text.charCodeAt(end - 1))) end--;
  return text.slice(start, end);
}
