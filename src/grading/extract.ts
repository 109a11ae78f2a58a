// Takes the program out of a model's answer: the last closed block of backticks that a reader of the rendered answer sees.
import { type Fence, FenceReader } from "./markdown.ts";

/** What counts as the code of an answer. */
export interface ExtractOptions {
  /** The answer comes from a thinking model: only the text after the `</think>` that ends its thoughts counts. */
  thinking?: boolean;
}

const mark = "</think>";
/** Blocks that never end and have the mark in them: looked into so often. */
const maxRestarts = 16;

/** The program of an answer; an empty string when the block is empty, null when there is no closed block. */
export const extractCode = (response: string, options: ExtractOptions = {}): string | null =>
  extractAnswer(response, options)?.code ?? null;

/** The program of an answer, and what stands behind the fence that opens it. */
export interface Answer {
  code: string;
  info: string;
}

/** The last closed block; null when there is none. */
export function extractAnswer(response: string, options: ExtractOptions = {}): Answer | null {
  const text = response.replace(/^\ufeff/, "").replaceAll(/\r\n?/g, "\n");
  const first = options.thinking ? text.indexOf(mark) : -1;
  if (first < 0) return codeOf(blockIn(text, 0, false));
  const answer = blockIn(text, first + mark.length, true);
  if (answer) return codeOf(answer);
  // Without thoughts, which some renderers have taken off, the mark may be a part of the program.
  const whole = blockIn(text, 0, false);
  const isInside = whole && whole.start <= first && first < whole.end && text.indexOf(mark, whole.end) < 0;
  return isInside ? codeOf(whole) : null;
}

interface Block {
  info: string;
  lines: string[];
  start: number;
  end: number;
}

/** The last closed block of the text from `from` on. With `marks`, of the text after the last mark that is no part of a block. */
function blockIn(text: string, from: number, marks: boolean): Block | null {
  let last: Block | null = null;
  let position = from;
  let restarts = 0;
  const onFence = (fence: Fence) => {
    if (fence.isClosed && fence.mark === "`")
      last = { info: fence.info, lines: fence.lines, start: fence.start, end: position };
  };
  let reader = new FenceReader(onFence);
  /** Where the thoughts end if the open block is never closed. */
  let inside = -1;
  for (;;) {
    while (position < text.length) {
      const newline = text.indexOf("\n", position);
      const end = newline < 0 ? text.length : newline;
      const line = text.slice(position, end);
      const at = marks ? line.lastIndexOf(mark) : -1;
      const wasOpen = reader.open;
      if (at >= 0 && !wasOpen) {
        // What comes before were thoughts too.
        last = null;
        reader = new FenceReader(onFence);
        position += at + mark.length;
        continue;
      }
      reader.read(line, end + 1);
      const isSame = wasOpen !== undefined && reader.open === wasOpen;
      if (at >= 0 && isSame && inside < 0) inside = position + at + mark.length;
      if (!isSame) {
        // A block that was begun and never closed held the end of the thoughts, or this line is that end.
        if (inside >= 0 && !wasOpen?.isClosed) last = null;
        inside = -1;
        if (at >= 0 && !reader.open) {
          last = null;
          position += at + mark.length;
          continue;
        }
      }
      position = end + 1;
    }
    if (!reader.open || inside < 0 || ++restarts > maxRestarts) break;
    last = null;
    reader = new FenceReader(onFence);
    position = inside;
    inside = -1;
  }
  return last ?? closedInLine(reader.open, text.length);
}

/** Without any block closed on its own line: an open one up to the next fence, wherever it stands in a line. */
function closedInLine(open: Fence | undefined, end: number): Block | null {
  if (open?.mark !== "`") return null;
  const content = open.lines.join("\n");
  const closing = content.indexOf("`".repeat(open.length));
  return closing < 0 ? null : { info: open.info, lines: content.slice(0, closing).split("\n"), start: open.start, end };
}

/** Removes blank lines at both ends, and the indentation that all lines share. */
function codeOf(block: Block | null): Answer | null {
  if (!block) return null;
  const { info, lines } = block;
  const first = lines.findIndex((line) => line.trim() !== "");
  if (first < 0) return { info, code: "" };
  const last = lines.findLastIndex((line) => line.trim() !== "");
  const kept = lines.slice(first, last + 1);
  const indentations = kept.filter((line) => line.trim() !== "").map((line) => /^[ \t]*/.exec(line)![0]);
  const { length } = indentations.reduce(sharedPrefix);
  return { info, code: kept.map((line) => line.slice(length)).join("\n") };
}

function sharedPrefix(a: string, b: string): string {
  let length = 0;
  while (length < a.length && a[length] === b[length]) length++;
  return a.slice(0, length);
}
