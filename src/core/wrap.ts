// Lines for a terminal: broken at spaces before they reach its width. Output into a pipe or a file is not broken.
import { whet } from "./program.ts";

/** The width to wrap at: a terminal's (80 where it does not say), or none. */
export const widthOf = ({ isTTY, columns }: { isTTY?: boolean | undefined; columns?: number | undefined }): number =>
  isTTY ? Math.max(40, columns || 80) : Number.POSITIVE_INFINITY;

/**
 * No line wider than `width`, as far as its words allow; what follows stands under the text of its line, after the label where it has one
 * (`  means  text`). A line with a command in it stays whole: it is there to be copied.
 */
export function wrap(text: string, width: number): string {
  return text
    .split("\n")
    .map((line) => (line.length <= width || line.includes(`${whet} `) ? line : wrapLine(line, width)))
    .join("\n");
}

/** `hang`: what stands before the further lines of a text without a label. A label that takes half the width has a line of its own. */
export function wrapLine(line: string, width: number, hang = "  "): string {
  const [label = ""] = /^ *(?:\S+(?: \S+)* {2,})?/.exec(line) ?? [];
  const isWide = label.length >= width / 2;
  const margin = label === "" ? hang : isWide ? "      " : " ".repeat(label.length);
  const lines = isWide ? [label.trimEnd()] : [];
  let current = isWide ? margin : label;
  let isEmpty = true;
  for (const word of line.slice(label.length).split(" ")) {
    if (!isEmpty && current.length + 1 + word.length > width) {
      lines.push(current);
      current = margin;
      isEmpty = true;
    }
    current += isEmpty ? word : ` ${word}`;
    isEmpty = false;
  }
  return [...lines, current].join("\n");
}
