// Takes out of an output what no comparator looks at, so that less is held until it is judged. The work depends on the output alone, never on
// what is expected: it may be done while programs of the same problem run.
import type { Comparator } from "./compare.ts";

const space = 32;
const newline = 10;

/** A shorter output that every expected text matches exactly when it matches this one. Writes into `bytes`. */
export function shrinkOutput(bytes: Uint8Array, comparator: Comparator): Uint8Array {
  if (typeof comparator === "object" && comparator.spaceSensitive) return bytes;
  return comparator === "lcb" ? trimLines(bytes) : joinBlanks(bytes);
}

/** One blank, or one line end, where there were several; none at the ends. */
function joinBlanks(bytes: Uint8Array): Uint8Array {
  let length = 0;
  let between = 0;
  for (let at = 0; at < bytes.length; ) {
    const blank = blankAt(bytes, at);
    if (blank > 0) {
      if (bytes[at] === newline || between === 0) between = bytes[at] === newline ? newline : space;
      at += blank;
      continue;
    }
    if (between > 0 && length > 0) bytes[length++] = between;
    between = 0;
    bytes[length++] = bytes[at++]!;
  }
  return bytes.subarray(0, length);
}

/** Every line without blanks at its ends; no empty lines at the ends of the text. */
function trimLines(bytes: Uint8Array): Uint8Array {
  let length = 0;
  /** Line ends that count only when something follows. */
  let lines = 0;
  for (let start = 0; start < bytes.length; lines++) {
    const next = bytes.indexOf(newline, start);
    const end = next < 0 ? bytes.length : next;
    let first = start;
    for (let blank = blankAt(bytes, first); first < end && blank > 0; blank = blankAt(bytes, first)) first += blank;
    let last = first;
    for (let at = first; at < end; ) {
      const blank = blankAt(bytes, at);
      at += blank || 1;
      if (blank === 0) last = at;
    }
    start = end + 1;
    if (last === first) continue;
    if (length > 0) {
      bytes.fill(newline, length, length + lines);
      length += lines;
    }
    lines = 0;
    bytes.copyWithin(length, first, last);
    length += last - first;
  }
  return bytes.subarray(0, length);
}

/** How many bytes the blank at `at` has in UTF-8, 0 where there is none; the same characters as compare.ts takes for blanks. */
function blankAt(bytes: Uint8Array, at: number): number {
  const byte = bytes[at]!;
  if (byte < 0x80) return byte === space || (byte >= 9 && byte <= 13) || (byte >= 28 && byte <= 31) ? 1 : 0;
  const next = bytes[at + 1];
  if (byte === 0xc2) return next === 0x85 || next === 0xa0 ? 2 : 0;
  const last = bytes[at + 2]!;
  if (byte === 0xe1) return next === 0x9a && last === 0x80 ? 3 : 0;
  if (byte === 0xe3) return next === 0x80 && last === 0x80 ? 3 : 0;
  if (byte !== 0xe2) return 0;
  if (next === 0x81) return last === 0x9f ? 3 : 0;
  const isBlank = (last >= 0x80 && last <= 0x8a) || last === 0xa8 || last === 0xa9 || last === 0xaf;
  return next === 0x80 && isBlank ? 3 : 0;
}
