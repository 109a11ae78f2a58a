// Which fenced code blocks a reader of a rendered answer sees: the block structure of CommonMark 0.31 (quotes, list items, fences, indented
// code, paragraphs and the HTML that hides its content), in one pass over the lines. Two things are left out on purpose. Tags like <div> or
// <answer> do not turn what follows into HTML: renderers show it. And a nesting deeper than anybody writes is text.

/** A fenced block. */
export interface Fence {
  /** What its fence is made of; a longer one of the same closes it. */
  mark: "`" | "~";
  length: number;
  /** What stands behind the opening fence. */
  info: string;
  /** Its content, without the indentation of its container and of its fence. */
  lines: string[];
  /** Where its content starts in the text. */
  start: number;
  /** Closed by a fence of its own; else its container or the text ended it. */
  isClosed: boolean;
}

interface Item {
  /** How far what belongs to it is indented. */
  width: number;
  isEmpty: boolean;
}

type Container = "quote" | Item;
type OpenFence = Fence & { indentation: number };
type Leaf = "paragraph" | OpenFence | { end: RegExp };

const maxContainers = 100;
/** A longer line is no rule; looking through it at every depth takes time. */
const longestRule = 1_000;
const fenceStart = /^(?:(`{3,})([^`]*)|(~{3,})([^\n]*))$/;
const fenceEnd = /^(`{3,}|~{3,})[ \t]*$/;
const heading = /^#{1,6}(?:[ \t]|$)/;
const underline = /^(?:=+|-+)[ \t]*$/;
const rule = /^(?:(?:\*[ \t]*){3,}|(?:_[ \t]*){3,}|(?:-[ \t]*){3,})$/;
const marker = /^(?:[*+-]|(\d{1,9})[.)])(?=[ \t]|$)/;
/** HTML that renderers hide or show as it is, and what ends it. */
const html: readonly (readonly [start: RegExp, end: RegExp])[] = [
  [/^<(?:script|pre|textarea|style)(?:\s|>|$)/i, /<\/(?:script|pre|textarea|style)>/i],
  [/^<!--/, /-->/],
  [/^<\?/, /\?>/],
  [/^<!\[CDATA\[/, /\]\]>/],
  [/^<![A-Za-z]/, />/],
];

/** Reads lines, and reports fenced blocks as they end. */
export class FenceReader {
  readonly #onFence: (fence: Fence) => void;
  #containers: Container[] = [];
  #leaf: Leaf | undefined;

  constructor(onFence: (fence: Fence) => void) {
    this.#onFence = onFence;
  }

  /** The block that is open, if one is. */
  get open(): Fence | undefined {
    return typeof this.#leaf === "object" && "lines" in this.#leaf ? this.#leaf : undefined;
  }

  /** The next line; `end` is where the line after it starts. */
  read(text: string, end: number): void {
    const line = new Line(text);
    let depth = 0;
    while (depth < this.#containers.length && continues(this.#containers[depth]!, line)) depth++;
    const isWhole = depth === this.#containers.length;
    const leaf = this.#leaf;
    if (isWhole && typeof leaf === "object") {
      if ("lines" in leaf) this.#fenceLine(leaf, line, end);
      else if (leaf.end.test(line.rest)) this.#leaf = undefined;
      return;
    }
    this.#blockLine(line, depth, end);
  }

  /** There are no more lines. */
  end(): void {
    this.#close(0);
  }

  #fenceLine(fence: OpenFence, line: Line, end: number): void {
    const closing = line.indentation < 4 ? fenceEnd.exec(line.content)?.[1] : undefined;
    if (closing?.startsWith(fence.mark) && closing.length >= fence.length) {
      fence.isClosed = true;
      this.#leaf = undefined;
      this.#onFence(fence);
      return;
    }
    const again = line.indentation < 4 ? fenceStart.exec(line.content) : null;
    // A fence with a language inside an open block of the same width: the model began again without closing.
    if (again?.[1]?.length === fence.length && again[2]!.trim() !== "" && fence.mark === "`") {
      this.#onFence(fence);
      this.#leaf = openFence(again, line, end);
      return;
    }
    line.skipBlanks(fence.indentation);
    fence.lines.push(line.rest);
  }

  #blockLine(line: Line, matched: number, end: number): void {
    let depth = matched;
    let inParagraph = this.#leaf === "paragraph";
    const isOwnParagraph = inParagraph && depth === this.#containers.length;
    /** Ends what the line does not continue, and makes room for a block. */
    const start = () => {
      this.#close(depth);
      inParagraph = false;
      const parent = this.#containers.at(-1);
      if (typeof parent === "object") parent.isEmpty = false;
    };
    while (!line.isBlank) {
      const { content } = line;
      if (line.indentation >= 4) {
        if (!inParagraph) start();
        return;
      }
      const isNested = depth < maxContainers;
      if (isNested && content.startsWith(">")) {
        start();
        line.skipMarker(1);
        line.skipBlanks(1);
        this.#containers.push("quote");
        depth++;
        continue;
      }
      const fence = fenceStart.exec(content);
      if (fence) {
        start();
        this.#leaf = openFence(fence, line, end);
        return;
      }
      const hidden = content.startsWith("<") && html.find(([opening]) => opening.test(content));
      if (hidden) {
        start();
        if (!hidden[1].test(content)) this.#leaf = { end: hidden[1] };
        return;
      }
      const isUnderline = inParagraph && isOwnParagraph && underline.test(content);
      if (isUnderline || heading.test(content) || (content.length <= longestRule && rule.test(content))) {
        start();
        return;
      }
      const item = isNested ? itemOf(line, inParagraph && isOwnParagraph) : undefined;
      if (!item) break;
      start();
      this.#containers.push(item);
      depth++;
    }
    if (line.isBlank) this.#close(depth);
    else if (!inParagraph) {
      start();
      this.#leaf = "paragraph";
    }
  }

  #close(depth: number): void {
    const fence = this.open;
    this.#containers.length = depth;
    this.#leaf = undefined;
    if (fence) this.#onFence(fence);
  }
}

function openFence(match: RegExpExecArray, line: Line, start: number): OpenFence {
  const fence = match[1] ?? match[3]!;
  return {
    mark: fence[0] as Fence["mark"],
    length: fence.length,
    info: (match[2] ?? match[4]!).trim(),
    lines: [],
    start,
    isClosed: false,
    indentation: line.indentation,
  };
}

/** Whether a line goes on with a container; if so, what belongs to the container's own spelling is skipped. */
function continues(container: Container, line: Line): boolean {
  if (container === "quote") {
    if (line.indentation >= 4 || !line.content.startsWith(">")) return false;
    line.skipMarker(1);
    line.skipBlanks(1);
    return true;
  }
  if (line.isBlank) {
    line.skipMarker(0);
    return !container.isEmpty;
  }
  if (line.indentation < container.width) return false;
  line.skipBlanks(container.width);
  return true;
}

/** The list item that starts here, its marker and the blanks behind it skipped. */
function itemOf(line: Line, inParagraph: boolean): Item | undefined {
  const { content, indentation } = line;
  const match = marker.exec(content);
  if (!match) return undefined;
  const [text, number] = match;
  const isBare = /^[ \t]*$/.test(content.slice(text.length));
  // What looks like an item in the middle of a paragraph is text, unless it is the first of a list and has content.
  if (inParagraph && (isBare || (number !== undefined && Number(number) !== 1))) return undefined;
  line.skipMarker(text.length);
  const blanks = line.indentation;
  const padding = isBare || blanks > 4 ? 1 : blanks;
  line.skipBlanks(padding);
  return { width: indentation + text.length + padding, isEmpty: true };
}

/** A line that is read from the left, tabs reaching to columns that are multiples of four. */
class Line {
  readonly #text: string;
  #offset = 0;
  #column = 0;
  /** Columns of a tab that are left when a part of it was skipped. */
  #tabRest = 0;
  #indentation = 0;
  #contentAt = 0;

  constructor(text: string) {
    this.#text = text;
    this.#look();
  }

  #look(): void {
    let at = this.#offset;
    let column = this.#column;
    for (; at < this.#text.length; at++) {
      const code = this.#text.charCodeAt(at);
      if (code === 32) column++;
      else if (code === 9) column += 4 - (column % 4);
      else break;
    }
    this.#contentAt = at;
    this.#indentation = column - this.#column;
  }

  /** Columns before the content. */
  get indentation(): number {
    return this.#indentation;
  }

  /** From the first character that is no blank. */
  get content(): string {
    return this.#text.slice(this.#contentAt);
  }

  get isBlank(): boolean {
    return this.#contentAt === this.#text.length;
  }

  /** All that was not skipped. */
  get rest(): string {
    return " ".repeat(this.#tabRest) + this.#text.slice(this.#offset + (this.#tabRest > 0 ? 1 : 0));
  }

  /** Skips blanks up to the content and so many characters of it. */
  skipMarker(length: number): void {
    this.#column += this.#indentation + length;
    this.#offset = this.#contentAt + length;
    this.#tabRest = 0;
    this.#look();
  }

  /** Skips at most so many columns of blanks. */
  skipBlanks(columns: number): void {
    for (let left = columns; left > 0; ) {
      const code = this.#text.charCodeAt(this.#offset);
      if (code === 32) {
        this.#offset++;
        this.#column++;
        left--;
      } else if (code === 9) {
        const width = this.#tabRest > 0 ? this.#tabRest : 4 - (this.#column % 4);
        const taken = Math.min(width, left);
        this.#column += taken;
        left -= taken;
        this.#tabRest = width - taken;
        if (this.#tabRest === 0) this.#offset++;
      } else break;
    }
    this.#look();
  }
}
