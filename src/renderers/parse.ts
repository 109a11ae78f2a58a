// Reads a model's answer: splits its reasoning and tool blocks off its text. Linear in the text, and it never throws.
import type { Tokenizer } from "../tokenizer/tokenizer.ts";
import { RendererError } from "./errors.ts";
import type { Message, ParsedResponse, RenderOptions, ToolCall } from "./messages.ts";
import { type ReasoningTags, trimNewlines, trimStartNewlines } from "./reasoning.ts";
import { type CallFormat, markCalls, schemas } from "./tool-calls.ts";

/** What a prompt ends with: an open reasoning block, a closed one, or nothing of the kind. */
export type PromptTail = "open" | "closed" | "none";

export interface ReadOptions {
  /** What encloses reasoning; undefined for a model that has none: such tags are text like any other then. */
  tags?: ReasoningTags | undefined;
  tail?: PromptTail;
  /** How the model's family writes calls of tools. */
  calls: CallFormat;
  /** The tools that were declared: their parameters' types, for families that write values as bare text. */
  tools?: RenderOptions["tools"];
}

export interface ReadResponse {
  message: Message;
  /** The text ends within a reasoning block: there is no answer after it. */
  reasoningOpen?: true;
}

interface Blocks {
  reasoning: string[];
  text: string[];
  toolCalls: ToolCall[];
  unparsedToolCalls: string[];
}

/** The tags of calls as they stand in the text, and what reads what is between them. */
interface CallReader {
  open: string;
  close: string | undefined;
  read(inside: string): ToolCall[] | undefined;
}

/** The sampled tokens before the stop token, if there is one; more are refused. */
export function untilStop(
  tokens: ArrayLike<number>,
  stops: readonly number[],
): { ids: number[]; termination: ParsedResponse["termination"] } {
  const ids = Array.from(tokens);
  const found = ids.flatMap((id, index) => (stops.includes(id) ? [index] : []));
  if (found.length > 1)
    throw new RendererError(
      "renderer/several-stops",
      `A response of ${ids.length} tokens has ${found.length} stop tokens (${found.map((index) => ids[index]).join(", ")}). ` +
        "Sample with the renderer's stop tokens, so that the first one ends it.",
    );
  const [stop] = found;
  return stop === undefined
    ? { ids, termination: "malformed" }
    : { ids: ids.slice(0, stop), termination: "stop_sequence" };
}

/** The assistant message that the tokens stand for, which follow a prompt. */
export function readAssistant(ids: readonly number[], tokenizer: Tokenizer, options: ReadOptions): ReadResponse {
  const { calls: format, tools } = options;
  const marked = markCalls(ids, tokenizer, format);
  const schemaOf = schemas(tools);
  const reader: CallReader = {
    open: marked.mark(format.open),
    close: format.close === undefined ? undefined : marked.mark(format.close),
    read: (inside) => format.read(marked.plain(inside), schemaOf),
  };
  let { text } = marked;
  for (const mark of format.around ?? []) text = text.replaceAll(marked.mark(mark), "");
  const { message, ...rest } = readText(text, reader, options);
  const whole = message.toolCalls || rest.reasoningOpen ? undefined : format.readWhole?.(message.content.trim());
  if (whole) return { message: { ...message, content: "", toolCalls: whole } };
  const content = marked.plain(message.content);
  const reasoning = message.reasoning === undefined ? {} : { reasoning: marked.plain(message.reasoning) };
  const { unparsedToolCalls } = message;
  const unparsed = unparsedToolCalls && { unparsedToolCalls: unparsedToolCalls.map(marked.plain) };
  return { message: { ...message, content, ...reasoning, ...unparsed }, ...rest };
}

/** Takes a text apart. */
function readText(text: string, calls: CallReader, { tags, tail = "none" }: ReadOptions): ReadResponse {
  const blocks: Blocks = { reasoning: [], text: [], toolCalls: [], unparsedToolCalls: [] };
  let position = 0;
  // Positions of the next markers from `position` on; -1 once there is none, so that nothing is searched twice.
  let think = tags ? text.indexOf(tags.open) : -1;
  let call = text.indexOf(calls.open);
  if (tags && tail !== "closed") {
    const close = text.indexOf(tags.close);
    // A block that the prompt opened, or whose beginning the model left out.
    if (tail === "open" || (close >= 0 && (think < 0 || close < think))) {
      addReasoning(blocks, text.slice(0, close < 0 ? undefined : close));
      if (close < 0) return { ...toMessage(blocks), reasoningOpen: true };
      blocks.text.push("");
      position = close + tags.close.length;
      think = text.indexOf(tags.open, position);
      call = text.indexOf(calls.open, position);
    }
  }
  while (think >= 0 || call >= 0) {
    const isThink = think >= 0 && (call < 0 || think < call);
    const start = isThink ? think : call;
    const { open, close } = isThink ? tags! : calls;
    const end = endOf(text, start + open.length, close, open);
    blocks.text.push(text.slice(position, start));
    const inside = text.slice(start + open.length, end < 0 ? undefined : end);
    const past = end < 0 ? text.length : end + (close ?? "").length;
    if (isThink) addReasoning(blocks, inside);
    else {
      const read = end >= 0 || close === undefined ? calls.read(inside) : undefined;
      if (read) blocks.toolCalls.push(...read);
      else blocks.unparsedToolCalls.push(text.slice(start, past));
    }
    if (isThink && end < 0) {
      blocks.text.push("");
      return { ...toMessage(blocks), reasoningOpen: true };
    }
    position = past;
    if (think >= 0) think = text.indexOf(tags!.open, position);
    call = text.indexOf(calls.open, position);
  }
  blocks.text.push(text.slice(position));
  return toMessage(blocks);
}

/** Where a block ends; one without an end of its own, where the next begins. */
const endOf = (text: string, from: number, close: string | undefined, open: string): number =>
  text.indexOf(close ?? open, from);

function addReasoning(blocks: Blocks, inside: string): void {
  const reasoning = trimNewlines(inside);
  if (reasoning !== "") blocks.reasoning.push(reasoning);
}

/** The message that the parts of an answer make. */
export function toMessage(blocks: Blocks): { message: Message } {
  const { reasoning, toolCalls, unparsedToolCalls } = blocks;
  const message: Message = { role: "assistant", content: joinText(blocks.text) };
  if (reasoning.length > 0) message.reasoning = reasoning.join("\n\n");
  if (toolCalls.length > 0) message.toolCalls = toolCalls;
  if (unparsedToolCalls.length > 0) message.unparsedToolCalls = unparsedToolCalls;
  return { message };
}

/** Text between blocks without the newlines that only set the blocks apart. One piece alone is left as it is. */
function joinText(pieces: readonly string[]): string {
  if (pieces.length <= 1) return pieces[0] ?? "";
  return pieces
    .map((piece, index) => {
      const afterBlock = index === 0 ? piece : trimStartNewlines(piece);
      return index < pieces.length - 1 && afterBlock.endsWith("\n") ? afterBlock.slice(0, -1) : afterBlock;
    })
    .filter((piece) => piece !== "")
    .join("\n");
}
