// Reads a model's answer: splits think and tool blocks off its text. One pass, linear in the text, and it never throws.
import type { Message, ToolCall } from "./messages.ts";
import { trimEndNewlines, trimStartNewlines } from "./reasoning.ts";

interface Blocks {
  reasoning: string[];
  text: string[];
  toolCalls: ToolCall[];
  unparsedToolCalls: string[];
}

/** The assistant message that `text` stands for. `thinking` false: think blocks are text like any other. */
export function parseAssistant(text: string, { thinking }: { thinking: boolean }): Message {
  const blocks: Blocks = { reasoning: [], text: [], toolCalls: [], unparsedToolCalls: [] };
  let position = 0;
  // Positions of the next markers from `position` on; -1 once there is none, so that nothing is searched twice.
  let think = thinking ? text.indexOf("<think>") : -1;
  let call = text.indexOf("<tool_call>");
  while (think >= 0 || call >= 0) {
    const isThink = think >= 0 && (call < 0 || think < call);
    const start = isThink ? think : call;
    const [open, close] = isThink ? ["<think>", "</think>"] : ["<tool_call>", "</tool_call>"];
    const end = text.indexOf(close, start + open.length);
    if (end < 0 && isThink) {
      // A block that never closes is no block; later ones cannot close either.
      think = -1;
      continue;
    }
    blocks.text.push(text.slice(position, start));
    const inside = text.slice(start + open.length, end < 0 ? undefined : end);
    if (isThink) addReasoning(blocks, inside);
    else addToolCall(blocks, inside, end >= 0);
    position = end < 0 ? text.length : end + close.length;
    if (think >= 0) think = text.indexOf("<think>", position);
    call = text.indexOf("<tool_call>", position);
  }
  blocks.text.push(text.slice(position));
  return toMessage(blocks);
}

function addReasoning(blocks: Blocks, inside: string): void {
  const reasoning = trimEndNewlines(trimStartNewlines(inside));
  if (reasoning !== "") blocks.reasoning.push(reasoning);
}

function addToolCall(blocks: Blocks, inside: string, closed: boolean): void {
  const call = closed ? readToolCall(inside) : undefined;
  if (call) blocks.toolCalls.push(call);
  else blocks.unparsedToolCalls.push(inside);
}

function readToolCall(json: string): ToolCall | undefined {
  try {
    const value: unknown = JSON.parse(json);
    if (typeof value !== "object" || value === null) return undefined;
    const { name, arguments: parameters } = value as Record<string, unknown>;
    if (typeof name !== "string" || name === "") return undefined;
    if (typeof parameters !== "object" || parameters === null || Array.isArray(parameters)) return undefined;
    return { name, arguments: parameters as Record<string, unknown> };
  } catch {
    return undefined;
  }
}

function toMessage(blocks: Blocks): Message {
  const { reasoning, toolCalls, unparsedToolCalls } = blocks;
  const message: Message = { role: "assistant", content: joinText(blocks.text) };
  if (reasoning.length > 0) message.reasoning = reasoning.join("\n\n");
  if (toolCalls.length > 0) message.toolCalls = toolCalls;
  if (unparsedToolCalls.length > 0) message.unparsedToolCalls = unparsedToolCalls;
  return message;
}

/** Text between blocks without the newlines that only set the blocks apart. One piece alone is left as it is. */
function joinText(pieces: readonly string[]): string {
  if (pieces.length === 1) return pieces[0]!;
  return pieces
    .map((piece, index) => {
      const afterBlock = index === 0 ? piece : trimStartNewlines(piece);
      return index < pieces.length - 1 && afterBlock.endsWith("\n") ? afterBlock.slice(0, -1) : afterBlock;
    })
    .filter((piece) => piece !== "")
    .join("\n");
}
