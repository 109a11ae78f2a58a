// Compares what a function returned with the expected value. The returned value arrives as a tagged tree that the sandbox built
// with base-class operations; it is data from an untrusted process, so its shape is checked here, and a forged tree is no more
// than a guess at the answer.
import { isDecimalText, numbersAgree } from "./decimal.ts";
import { type Json, JsonNumber } from "./json.ts";

/** A node: ["n"], ["b", boolean], ["i" | "f" | "s", text], ["l", nodes], ["d", pairs of nodes]. */
export type ValueTree = readonly unknown[];

const maxDepth = 220;
/** A node of a dictionary opens three: its own, the list of pairs and a pair. */
const maxBrackets = 3 * maxDepth + 3;

/** The most characters that the frame of a value equal to this one can have: every node as its longest spelling. */
export function longestFrame(expected: Json): number {
  if (expected === null || typeof expected === "boolean") return 32;
  if (typeof expected === "string") return 16 + 6 * expected.length;
  if (expected instanceof JsonNumber) return 512 + 2 * expected.text.length;
  let length = 32;
  if (Array.isArray(expected)) for (const item of expected) length += 1 + longestFrame(item);
  else for (const [key, value] of expected) length += 16 + longestFrame(key) + longestFrame(value);
  return length;
}

/** Whether brackets nest no deeper than a tree's do. A text of millions of brackets is not handed to a parser that builds them all. */
function isShallow(frame: string): boolean {
  let depth = 0;
  for (let at = 0; at < frame.length; at++) {
    const code = frame.charCodeAt(at);
    if (code === 0x22) {
      for (at++; at < frame.length && frame.charCodeAt(at) !== 0x22; at++) if (frame.charCodeAt(at) === 0x5c) at++;
    } else if (code === 0x5b || code === 0x7b) {
      if (++depth > maxBrackets) return false;
    } else if (code === 0x5d || code === 0x7d) depth--;
  }
  return true;
}

/** The tree in a frame, or undefined when the frame is not one. */
export function readFrame(frame: string): ValueTree | undefined {
  if (!isShallow(frame)) return undefined;
  try {
    const tree: unknown = JSON.parse(frame);
    return isNode(tree, 0) ? tree : undefined;
  } catch {
    return undefined;
  }
}

function isNode(node: unknown, depth: number): node is ValueTree {
  if (!Array.isArray(node) || depth > maxDepth) return false;
  const [tag, payload] = node as unknown[];
  if (tag === "n") return node.length === 1;
  if (node.length !== 2) return false;
  if (tag === "b") return typeof payload === "boolean";
  if (tag === "s") return typeof payload === "string";
  if (tag === "i") return typeof payload === "string" && /^-?[0-9]+$/.test(payload);
  if (tag === "f") return typeof payload === "string";
  if (!Array.isArray(payload)) return false;
  if (tag === "l") return payload.every((child) => isNode(child, depth + 1));
  if (tag !== "d") return false;
  return payload.every(
    (pair) => Array.isArray(pair) && pair.length === 2 && isNode(pair[0], depth + 1) && isNode(pair[1], depth + 1),
  );
}

/** A tree as the value it stands for, in JSON's spelling where there is one. For people to read. */
export function writeTree([tag, payload]: ValueTree): string {
  if (tag === "n") return "null";
  if (tag === "b") return String(payload);
  if (tag === "s") return JSON.stringify(payload);
  if (tag === "l") return `[${(payload as ValueTree[]).map(writeTree).join(", ")}]`;
  if (tag === "d")
    return `{${(payload as [ValueTree, ValueTree][]).map((pair) => pair.map(writeTree).join(": ")).join(", ")}}`;
  return payload as string;
}

/** Whether a returned value equals the expected one. It does not stop at the first difference, nor do the comparators of text. */
export function valuesMatch(tree: ValueTree, expected: Json): boolean {
  const [tag, payload] = tree;
  if (expected === null) return tag === "n";
  if (typeof expected === "string") return tag === "s" && payload === expected;
  if (typeof expected === "boolean" || expected instanceof JsonNumber) {
    const actual = tag === "b" ? (payload ? "1" : "0") : tag === "i" || tag === "f" ? (payload as string) : undefined;
    if (actual === undefined) return false;
    return scalarsMatch(actual, typeof expected === "boolean" ? (expected ? "1" : "0") : expected.text);
  }
  if (Array.isArray(expected)) {
    if (tag !== "l") return false;
    const items = payload as ValueTree[];
    if (items.length !== expected.length) return false;
    return items.map((item, index) => valuesMatch(item, expected[index]!)).every(Boolean);
  }
  if (tag !== "d") return false;
  // JSON keys are text, so dictionaries meet by the text of their keys; two keys with one text never match.
  const pairs = payload as [ValueTree, ValueTree][];
  const keys = new Set(pairs.map(([key]) => keyText(key)));
  if (pairs.length !== expected.size || keys.size !== pairs.length) return false;
  const matches = pairs.map(([key, value]) => {
    const wanted = expected.get(keyText(key) ?? "");
    return keyText(key) !== undefined && wanted !== undefined && valuesMatch(value, wanted);
  });
  return matches.every(Boolean);
}

function scalarsMatch(actual: string, expected: string): boolean {
  if (expected === "NaN") return actual === "nan";
  if (expected === "Infinity") return actual === "inf";
  if (expected === "-Infinity") return actual === "-inf";
  if (numbersAgree(actual, expected)) return true;
  // Past the size that numbersAgree reads: integers of thousands of digits, where equal text is equal value.
  return !isDecimalText(expected) && actual === expected;
}

/** How Python's json module would spell a dictionary key. */
function keyText([tag, payload]: ValueTree): string | undefined {
  if (tag === "s" || tag === "i" || tag === "f") return payload as string;
  if (tag === "b") return String(payload);
  return tag === "n" ? "null" : undefined;
}
