// Finds the values of a JSON object's keys in its text without reading them, so that large values can be left alone and number
// spelling is not lost. It does not check JSON inside the values: their reader does.

const quote = 0x22;
const backslash = 0x5c;

/** The bytes of each top-level value of the object in `bytes`; throws SyntaxError when it is no object. */
export function topLevelSlices(bytes: Buffer): Map<string, Buffer> {
  const slices = new Map<string, Buffer>();
  let at = skipBlanks(bytes, 0);
  if (bytes[at] !== 0x7b) throw new SyntaxError("not a JSON object");
  at = skipBlanks(bytes, at + 1);
  if (bytes[at] === 0x7d) return endsAt(bytes, at + 1, slices);
  for (;;) {
    if (bytes[at] !== quote) throw unexpected(bytes, at);
    const keyEnd = stringEnd(bytes, at);
    const key = JSON.parse(bytes.toString("utf8", at, keyEnd)) as string;
    at = skipBlanks(bytes, keyEnd);
    if (bytes[at] !== 0x3a) throw unexpected(bytes, at);
    at = skipBlanks(bytes, at + 1);
    const end = valueEnd(bytes, at);
    slices.set(key, bytes.subarray(at, end));
    at = skipBlanks(bytes, end);
    if (bytes[at] === 0x7d) return endsAt(bytes, at + 1, slices);
    if (bytes[at] !== 0x2c) throw unexpected(bytes, at);
    at = skipBlanks(bytes, at + 1);
  }
}

function endsAt<T>(bytes: Buffer, at: number, result: T): T {
  const end = skipBlanks(bytes, at);
  if (end < bytes.length) throw unexpected(bytes, end);
  return result;
}

function valueEnd(bytes: Buffer, start: number): number {
  const first = bytes[start];
  if (first === quote) return stringEnd(bytes, start);
  if (first === 0x7b || first === 0x5b) return bracketEnd(bytes, start);
  let at = start;
  // A number or a word ends before a comma, a closing brace or a blank.
  while (at < bytes.length && bytes[at] !== 0x2c && bytes[at] !== 0x7d && bytes[at]! > 0x20) at++;
  if (at === start) throw unexpected(bytes, at);
  return at;
}

function bracketEnd(bytes: Buffer, start: number): number {
  let depth = 0;
  for (let at = start; at < bytes.length; at++) {
    const byte = bytes[at];
    if (byte === quote) at = stringEnd(bytes, at) - 1;
    else if (byte === 0x7b || byte === 0x5b) depth++;
    else if (byte === 0x7d || byte === 0x5d) {
      depth--;
      if (depth === 0) return at + 1;
    }
  }
  throw unexpected(bytes, bytes.length);
}

/** One past the closing quote of the string that opens at `start`. */
function stringEnd(bytes: Buffer, start: number): number {
  for (let at = bytes.indexOf(quote, start + 1); at >= 0; at = bytes.indexOf(quote, at + 1)) {
    let escapes = at - 1;
    while (bytes[escapes] === backslash) escapes--;
    // An even number of backslashes stands for themselves.
    if ((at - 1 - escapes) % 2 === 0) return at + 1;
  }
  throw unexpected(bytes, bytes.length);
}

function skipBlanks(bytes: Buffer, from: number): number {
  let at = from;
  while (bytes[at] === 0x20 || bytes[at] === 0x09 || bytes[at] === 0x0a || bytes[at] === 0x0d) at++;
  return at;
}

function unexpected(bytes: Buffer, at: number): SyntaxError {
  return new SyntaxError(
    at < bytes.length
      ? `unexpected ${JSON.stringify(String.fromCharCode(bytes[at]!))} at byte ${at}`
      : "unexpected end of JSON",
  );
}
