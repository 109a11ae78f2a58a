// Looks at a JSON text before it is parsed: millions of brackets or values take minutes and gigabytes to build, and no request or answer has them.

const maxDepth = 32;
const maxValues = 200_000;
const quote = 0x22;
const backslash = 0x5c;

/** What is wrong with the shape of a JSON text, or undefined. Strings are skipped, so that files of any size pass. */
export function excessOf(body: Buffer): string | undefined {
  let depth = 0;
  let values = 0;
  for (let at = 0; at < body.length; at++) {
    const byte = body[at];
    if (byte === quote) {
      at = endOfString(body, at);
      if (at < 0) return undefined; // not JSON; the parser says so
    } else if (byte === 0x5b || byte === 0x7b) {
      if (++depth > maxDepth) return `it is nested deeper than ${maxDepth} levels`;
      values++;
    } else if (byte === 0x5d || byte === 0x7d) depth--;
    else if (byte === 0x2c) values++;
    if (values > maxValues) return `it has more than ${maxValues} values`;
  }
  return undefined;
}

/** The position of the quote that ends the string; -1 when none does. */
function endOfString(body: Buffer, start: number): number {
  for (let end = body.indexOf(quote, start + 1); end >= 0; end = body.indexOf(quote, end + 1)) {
    let before = end - 1;
    while (body[before] === backslash) before--;
    if ((end - 1 - before) % 2 === 0) return end;
  }
  return -1;
}
