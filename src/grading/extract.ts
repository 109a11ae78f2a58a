// Takes the program out of a model's answer: the last closed fenced block. On ordinary answers this agrees with the common
// regular expression; it also survives fences with attributes, other languages, indentation, longer fences and CRLF.

/** What counts as the code of an answer. */
export interface ExtractOptions {
  /** The answer comes from a thinking model: only the text after the last `</think>` counts. */
  thinking?: boolean;
}

interface OpenBlock {
  ticks: number;
  indentation: number;
  lines: string[];
}

const fencePattern = /^([ \t]*)(`{3,})([^`]*)$/;
const looseBlock = /```\w*\n([\s\S]*?)```/g;

/** The program of an answer; an empty string when the block is empty, null when there is no closed block. */
export function extractCode(response: string, options: ExtractOptions = {}): string | null {
  let text = response.replaceAll(/\r\n?/g, "\n");
  if (options.thinking) {
    const end = text.lastIndexOf("</think>");
    if (end >= 0) text = text.slice(end + "</think>".length);
  }
  return lastClosedBlock(text) ?? lastLooseBlock(text);
}

function lastClosedBlock(text: string): string | null {
  let open: OpenBlock | undefined;
  let closed: OpenBlock | undefined;
  for (const line of text.split("\n")) {
    const fence = fencePattern.exec(line);
    const ticks = fence?.[2]?.length ?? 0;
    const info = fence?.[3]?.trim() ?? "";
    if (!fence) open?.lines.push(line);
    else if (!open || (info !== "" && ticks === open.ticks)) {
      // A fence with a language inside an open block of the same width: the model began again without closing.
      open = { ticks, indentation: fence[1]!.length, lines: [] };
    } else if (info === "" && ticks >= open.ticks) {
      closed = open;
      open = undefined;
    } else open.lines.push(line);
  }
  return closed ? dedent(closed.lines, closed.indentation) : null;
}

/** Without any block closed on its own line: text up to the next three backticks, wherever they stand. */
function lastLooseBlock(text: string): string | null {
  let last: string | null = null;
  for (const match of text.matchAll(looseBlock)) last = match[1]!.trim();
  return last;
}

/** Removes the fence's indentation, blank lines at both ends, and the indentation that all lines share. */
function dedent(lines: readonly string[], fenceIndentation: number): string {
  const outer = lines.map((line) => line.slice(Math.min(fenceIndentation, indentationOf(line).length)));
  const first = outer.findIndex((line) => line.trim() !== "");
  if (first < 0) return "";
  const last = outer.findLastIndex((line) => line.trim() !== "");
  const kept = outer.slice(first, last + 1);
  let common: string | undefined;
  for (const line of kept) {
    if (line.trim() === "") continue;
    const indentation = indentationOf(line);
    common = common === undefined ? indentation : sharedPrefix(common, indentation);
  }
  const width = common?.length ?? 0;
  return kept
    .map((line) => (line.trim() === "" ? line.slice(Math.min(width, line.length)) : line.slice(width)))
    .join("\n");
}

const indentationOf = (line: string) => /^[ \t]*/.exec(line)![0];

function sharedPrefix(a: string, b: string): string {
  let length = 0;
  while (length < a.length && a[length] === b[length]) length++;
  return a.slice(0, length);
}
