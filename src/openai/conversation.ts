// A conversation's messages, apart from how a client spells them: content as null, text or parts; arguments as JSON of any spelling;
// parallel calls and their results in any order.
import { isDeepStrictEqual } from "node:util";
import type { Message, ToolCall } from "../renderers/index.ts";
import { contentOf } from "../renderers/messages.ts";
import { EndpointError } from "./errors.ts";
import type { WireMessage } from "./request.ts";

/** Our ids name the turn that made the call, and its place there. */
export const callId = (turn: number, position: number): string => `call_${turn}_${position}`;

/** What one of our ids names. */
export function placeOfCall(id: string | undefined): { turn: number; position: number } | undefined {
  const [, turn, position] = /^call_(\d{1,9})_(\d{1,9})$/.exec(id ?? "") ?? [];
  return turn === undefined ? undefined : { turn: Number(turn), position: Number(position) };
}

/** The arguments of a call as JSON text. */
export const argumentsText = ({ arguments: given }: ToolCall): string =>
  typeof given === "string" ? given : JSON.stringify(given);

/** An answer as its client sees it: what looked like a call and could not be read is text. */
export const toClient = (answer: Message, idOf: (position: number) => string): Message => ({
  role: "assistant",
  content: contentOf(answer),
  ...(answer.reasoning !== undefined && { reasoning: answer.reasoning }),
  ...(answer.toolCalls && { toolCalls: answer.toolCalls.map((call, position) => ({ ...call, id: idOf(position) })) }),
});

/** A conversation from the wire. */
export function readMessages(messages: readonly WireMessage[]): Message[] {
  return inOrder(messages.map(readMessage));
}

function readMessage(message: WireMessage, index: number): Message {
  const { content, thought } = readContent(message.content, index);
  const role = message.role === "developer" ? "system" : message.role;
  const { tool_call_id: toolCallId, tool_calls: calls } = message;
  if (role === "tool") return { role, content, ...(toolCallId != null && { toolCallId }) };
  if (role !== "assistant") return { role, content };
  const reasoning = message.reasoning_content ?? message.reasoning ?? thought;
  const toolCalls = (calls ?? []).map(({ id, function: { name, arguments: given } }): ToolCall => {
    const text = typeof given === "string" ? given : JSON.stringify(given ?? {});
    return { name, arguments: text.trim() === "" ? "{}" : text, ...(id != null && { id }) };
  });
  return { role, content, ...(reasoning && { reasoning }), ...(toolCalls.length > 0 && { toolCalls }) };
}

const textTypes = ["text", "refusal", "reasoning", "thinking", "input_text", "output_text"];

function readContent(
  content: WireMessage["content"],
  index: number,
): { content: string; thought?: string | undefined } {
  if (content === null || content === undefined) return { content: "" };
  if (typeof content === "string") return { content };
  let text = "";
  let thought: string | undefined;
  for (const part of content) {
    const { type } = part;
    const words = [part["text"], part["refusal"], part["reasoning"], part["thinking"]].find(
      (one) => typeof one === "string",
    );
    if (words === undefined || !textTypes.includes(type))
      throw new EndpointError(
        400,
        "endpoint/content",
        `Message ${index} has a part of type ${JSON.stringify(type.slice(0, 40))}. This model reads text alone.`,
      );
    if (type === "reasoning" || type === "thinking") thought = (thought ?? "") + (words as string);
    else text += words as string;
  }
  return { content: text, thought };
}

/** Calls, and the results behind them, in the order in which the calls were made. */
function inOrder(messages: readonly Message[]): Message[] {
  const ordered: Message[] = [];
  for (let at = 0; at < messages.length; ) {
    const message = messages[at++]!;
    ordered.push(message);
    if (!message.toolCalls) continue;
    const toolCalls = sortedBy(message.toolCalls, ({ id }, index) => placeOfCall(id)?.position ?? index);
    const results: Message[] = [];
    while (messages[at]?.role === "tool") results.push(messages[at++]!);
    const order = new Map(toolCalls.map(({ id }, index) => [id, index]));
    ordered[ordered.length - 1] = { ...message, toolCalls };
    ordered.push(...sortedBy(results, ({ toolCallId }) => order.get(toolCallId) ?? toolCalls.length));
  }
  return ordered;
}

function sortedBy<Item>(items: readonly Item[], keyOf: (item: Item, index: number) => number): Item[] {
  const keys = new Map(items.map((item, index) => [item, keyOf(item, index)]));
  return [...items].sort((a, b) => keys.get(a)! - keys.get(b)!);
}

/** Whether what a client sends is what was said: of the reasoning that it sends, and in any spelling of the rest. */
export function isSame(ours: Message, theirs: Message): boolean {
  if (ours.role !== theirs.role) return false;
  if (ours.role === "tool") return ours.content === theirs.content && sameId(ours.toolCallId, theirs.toolCallId);
  if (ours.role !== "assistant") return ours.content === theirs.content;
  return isSameText(ours, theirs) && isSameCalls(ours.toolCalls ?? [], theirs.toolCalls ?? []);
}

const sameId = (a: string | undefined, b: string | undefined) => a === undefined || b === undefined || a === b;

/** Some clients write reasoning into the text, between tags. */
function isSameText(ours: Message, theirs: Message): boolean {
  const same = (content: string, reasoning = "") =>
    content.trim() === ours.content.trim() &&
    (reasoning.trim() === "" || reasoning.trim() === (ours.reasoning ?? "").trim());
  if (same(theirs.content, theirs.reasoning)) return true;
  const [, moved, text] = /^\s*<think>([\s\S]*?)<\/think>([\s\S]*)$/.exec(theirs.content) ?? [];
  return moved !== undefined && same(text!, theirs.reasoning ?? moved);
}

function isSameCalls(ours: readonly ToolCall[], theirs: readonly ToolCall[]): boolean {
  if (ours.length !== theirs.length) return false;
  return theirs.every((call, index) => {
    const meant = ours.find(({ id }) => id !== undefined && id === call.id) ?? ours[index]!;
    return meant.name === call.name && isSameJson(argumentsText(meant), argumentsText(call));
  });
}

/** Whether two texts are the same JSON; what is none is compared as text. */
export function isSameJson(a: string, b: string): boolean {
  if (a === b) return true;
  const [ours, theirs] = [jsonOf(a), jsonOf(b)];
  return ours && theirs ? isDeepStrictEqual(ours.value, theirs.value) : a.trim() === b.trim();
}

function jsonOf(text: string): { value: unknown } | undefined {
  if (text.trim() === "") return { value: {} };
  try {
    // -0 is 0, as most languages write it.
    return { value: JSON.parse(text, (_, value: unknown) => (value === 0 ? 0 : value)) };
  } catch {
    return undefined;
  }
}
