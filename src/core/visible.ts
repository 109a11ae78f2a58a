// Text from models, programs and data sets, made safe to print: what a terminal would obey, and what reorders or hides text, is shown
// as its code.

/** Control and format characters but tab and newline, separators, halves of pairs, and letters that show nothing. */
export const unsafe =
  /(?![\t\n])(?:[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}]|\u034f|[\u115f\u1160]|\u17b4|\u17b5|[\u180b-\u180f]|\u3164|\uffa0)/gu;

const names: Readonly<Record<string, string>> = { "\r": "\\r", "\u001b": "\\e", "\0": "\\0" };

/** The text with every such character as `\e`, `\u{202e}` …; tabs and newlines stay. */
export function visible(text: string): string {
  return text.replaceAll(unsafe, (character) => names[character] ?? `\\u{${character.codePointAt(0)!.toString(16)}}`);
}

/** The same on one line, cut to a width. */
export function visibleLine(text: string, width = Number.POSITIVE_INFINITY): string {
  // A line of megabytes is cut before it is looked at.
  const line = visible(text.slice(0, 4 * Math.min(width, 1e6)))
    .replaceAll("\n", "\\n")
    .replaceAll("\t", "\\t");
  return line.length <= width ? line : `${line.slice(0, Math.max(0, width - 1))}…`;
}
