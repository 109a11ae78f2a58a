// Decides whether a program's output is the expected text. Comparators are pure; each runs as a sequence of small steps, so
// that megabytes can be compared without holding up the event loop.
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

/** Yields now and then; the final value is the answer. */
type Steps = Generator<void, boolean, void>;

/** Tokens or lines compared between two yields: a few milliseconds at most. */
const tokensPerStep = 4_000;

const decoder = new TextDecoder("utf-8", { ignoreBOM: true });

/** Bytes as text; what is not UTF-8 becomes U+FFFD, which no expected text holds. */
export const decodeOutput = (bytes: Uint8Array): string => decoder.decode(bytes);

/** Whether `actual` is the expected text. */
export function outputsMatch(actual: string, expected: string, comparator: Comparator = "tolerant"): boolean {
  if (isSame(actual, expected, comparator)) return true;
  const steps = stepsOf(actual, expected, comparator);
  for (;;) {
    const step = steps.next();
    if (step.done) return step.value;
  }
}

/**
 * The same, in slices: answers at once when `budget` steps are enough (they nearly always are), else with a promise that leaves
 * the event loop free between slices.
 */
export function compareInSlices(
  actual: string,
  expected: string,
  comparator: Comparator,
  budget = 5,
): boolean | Promise<boolean> {
  if (isSame(actual, expected, comparator)) return true;
  const steps = stepsOf(actual, expected, comparator);
  for (let count = 0; count < budget; count++) {
    const step = steps.next();
    if (step.done) return step.value;
  }
  return finish(steps);
}

async function finish(steps: Steps): Promise<boolean> {
  for (;;) {
    await new Promise((resolve) => setImmediate(resolve));
    for (let count = 0; count < 2; count++) {
      const step = steps.next();
      if (step.done) return step.value;
    }
  }
}

/** The fast path: equal after trimming both ends is equal under every comparator that ignores outer whitespace. */
function isSame(actual: string, expected: string, comparator: Comparator): boolean {
  if (actual === expected) return true;
  if (typeof comparator === "object" && comparator.spaceSensitive) return false;
  return trim(actual) === trim(expected);
}

function stepsOf(actual: string, expected: string, comparator: Comparator): Steps {
  if (comparator === "tolerant") return tolerant(actual, expected);
  if (comparator === "lcb") return lcb(actual, expected);
  return tokens(actual, expected, comparator === "tokens" ? {} : comparator);
}

function* tolerant(actual: string, expected: string): Steps {
  const a = new LineCursor(actual);
  const b = new LineCursor(expected);
  let count = 0;
  for (;;) {
    const left = a.nextWithTokens();
    const right = b.nextWithTokens();
    if (left === undefined || right === undefined) return left === right;
    if (++count % tokensPerStep === 0) yield;
    if (trim(actual.slice(left.start, left.end)) === trim(expected.slice(right.start, right.end))) continue;
    const ours = new TokenCursor(actual, left.start, left.end);
    const theirs = new TokenCursor(expected, right.start, right.end);
    for (;;) {
      const x = ours.next();
      const y = theirs.next();
      if (x === undefined || y === undefined) {
        if (x !== y) return false;
        break;
      }
      if (x !== y && !numbersAgree(x, y)) return false;
      if (++count % tokensPerStep === 0) yield;
    }
  }
}

function* lcb(actual: string, expected: string): Steps {
  const left = trim(actual).split("\n");
  const right = trim(expected).split("\n");
  if (left.length !== right.length) return false;
  let count = 0;
  for (let index = 0; index < left.length; index++) {
    const line = trim(left[index]!);
    const wanted = trim(right[index]!);
    if (++count % tokensPerStep === 0) yield;
    if (line === wanted) continue;
    const ours = new TokenCursor(line, 0, line.length);
    const theirs = new TokenCursor(wanted, 0, wanted.length);
    for (;;) {
      const x = ours.next();
      const y = theirs.next();
      if (x === undefined || y === undefined) {
        if (x !== y) return false;
        break;
      }
      if (!decimalsEqual(x, y)) return false;
      if (++count % tokensPerStep === 0) yield;
    }
  }
  return true;
}

function* tokens(actual: string, expected: string, rules: TokenRules): Steps {
  const fold = rules.caseSensitive ? (text: string) => text : (text: string) => text.toLowerCase();
  if (rules.spaceSensitive) return fold(actual) === fold(expected);
  const ours = new TokenCursor(actual, 0, actual.length);
  const theirs = new TokenCursor(expected, 0, expected.length);
  let count = 0;
  for (;;) {
    const x = ours.next();
    const y = theirs.next();
    if (x === undefined || y === undefined) return x === y;
    if (x !== y && fold(x) !== fold(y) && !withinTolerance(x, y, rules)) return false;
    if (++count % tokensPerStep === 0) yield;
  }
}

/** Walks the lines of a text. A carriage return is whitespace, so CRLF needs no care. */
class LineCursor {
  readonly text: string;
  position = 0;

  constructor(text: string) {
    this.text = text;
  }

  nextWithTokens(): { start: number; end: number } | undefined {
    const { text } = this;
    while (this.position < text.length) {
      // Skipping whitespace, line ends included, lands on the first token of the next line that has one.
      if (isSpace(text.charCodeAt(this.position))) {
        this.position++;
        continue;
      }
      const start = this.position;
      const newline = text.indexOf("\n", start);
      const end = newline < 0 ? text.length : newline;
      this.position = end;
      return { start, end };
    }
    return undefined;
  }
}

class TokenCursor {
  readonly text: string;
  readonly end: number;
  position: number;

  constructor(text: string, start: number, end: number) {
    this.text = text;
    this.position = start;
    this.end = end;
  }

  next(): string | undefined {
    const { text, end } = this;
    let start = this.position;
    while (start < end && isSpace(text.charCodeAt(start))) start++;
    if (start === end) {
      this.position = end;
      return undefined;
    }
    let stop = start + 1;
    while (stop < end && !isSpace(text.charCodeAt(stop))) stop++;
    this.position = stop;
    return text.slice(start, stop);
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

function trim(text: string): string {
  let start = 0;
  let end = text.length;
  while (start < end && isSpace(text.charCodeAt(start))) start++;
  while (end > start && isSpace(text.charCodeAt(end - 1))) end--;
  return text.slice(start, end);
}
