// What is said in a conversation, apart from how a client spells it: content as null, text or parts; arguments as JSON of any spelling;
// parallel calls and their results in any order.
import { isDeepStrictEqual } from "node:util";
import { EndpointError } from "./errors.ts";
import type { WireMessage } from "./request.ts";

/** A call of a tool. */
export interface Called {
  id: string | undefined;
  name: string;
  /** As JSON text. */
  arguments: string;
}

/** One message. */
export interface Said {
  role: "system" | "user" | "assistant" | "tool";
  content: string;
  /** Undefined: nothing was said of it. */
  reasoning?: string | undefined;
  calls: readonly Called[];
  /** Of a tool's result: the call that it answers. */
  callId?: string | undefined;
}

/** Our ids name the turn that made the call, and its place there. */
export const callId = (turn: number, position: number): string => `call_${turn}_${position}`;

/** What one of our ids names. */
export function placeOfCall(id: string | undefined): { turn: number; position: number } | undefined {
  const [, turn, position] = /^call_(\d{1,9})_(\d{1,9})$/.exec(id ?? "") ?? [];
  return turn === undefined ? undefined : { turn: Number(turn), position: Number(position) };
}

/** A conversation from the wire. */
export function readMessages(messages: readonly WireMessage[]): Said[] {
  return inOrder(messages.map(readMessage));
}

function readMessage(message: WireMessage, index: number): Said {
  const { content, thought } = contentOf(message.content, index);
  const role = message.role === "developer" ? "system" : message.role;
  const calls = (message.tool_calls ?? []).map(({ id, function: { name, arguments: given } }): Called => {
    const text = typeof given === "string" ? given : JSON.stringify(given ?? {});
    return { id: id ?? undefined, name, arguments: text };
  });
  return {
    role,
    content,
    reasoning: message.reasoning_content ?? message.reasoning ?? thought,
    calls: role === "assistant" ? calls : [],
    callId: role === "tool" ? (message.tool_call_id ?? undefined) : undefined,
  };
}

function contentOf(content: WireMessage["content"], index: number): { content: string; thought: string | undefined } {
  if (content === null || content === undefined) return { content: "", thought: undefined };
  if (typeof content === "string") return { content, thought: undefined };
  let text = "";
  let thought: string | undefined;
  for (const part of content) {
    const { type } = part;
    const said = [part["text"], part["refusal"], part["reasoning"], part["thinking"]].find(
      (one) => typeof one === "string",
    );
    if (said === undefined || !["text", "refusal", "reasoning", "thinking", "input_text", "output_text"].includes(type))
      throw new EndpointError(
        400,
        "endpoint/content",
        `Message ${index} has a part of type ${JSON.stringify(type.slice(0, 40))}. This model reads text alone.`,
      );
    if (type === "reasoning" || type === "thinking") thought = (thought ?? "") + (said as string);
    else text += said as string;
  }
  return { content: text, thought };
}

/** Calls, and the results behind them, in the order in which the calls were made. */
function inOrder(messages: readonly Said[]): Said[] {
  const ordered: Said[] = [];
  for (let at = 0; at < messages.length; ) {
    const message = messages[at++]!;
    if (message.role !== "assistant" || message.calls.length === 0) {
      ordered.push(message);
      continue;
    }
    const calls = sortedBy(message.calls, ({ id }, index) => placeOfCall(id)?.position ?? index);
    const results: Said[] = [];
    while (messages[at]?.role === "tool") results.push(messages[at++]!);
    const order = new Map(calls.map(({ id }, index) => [id, index]));
    ordered.push({ ...message, calls }, ...sortedBy(results, (result) => order.get(result.callId) ?? calls.length));
  }
  return ordered;
}

function sortedBy<Item>(items: readonly Item[], keyOf: (item: Item, index: number) => number): Item[] {
  const keys = new Map(items.map((item, index) => [item, keyOf(item, index)]));
  return [...items].sort((a, b) => keys.get(a)! - keys.get(b)!);
}

/** Whether what a client sends is what was said: of the reasoning that it sends, and in any spelling of the rest. */
export function isSame(ours: Said, theirs: Said): boolean {
  if (ours.role !== theirs.role) return false;
  if (ours.role === "tool") return ours.content === theirs.content && sameId(ours.callId, theirs.callId);
  if (ours.role !== "assistant") return ours.content === theirs.content;
  return isSameText(ours, theirs) && isSameCalls(ours.calls, theirs.calls);
}

const sameId = (a: string | undefined, b: string | undefined) => a === undefined || b === undefined || a === b;

/** Some clients write reasoning into the text, between tags. */
function isSameText(ours: Said, theirs: Said): boolean {
  const same = (content: string, reasoning: string | undefined) =>
    content.trim() === ours.content.trim() &&
    ((reasoning ?? "").trim() === "" || reasoning!.trim() === (ours.reasoning ?? "").trim());
  if (same(theirs.content, theirs.reasoning)) return true;
  const [, moved, text] = /^\s*<think>([\s\S]*?)<\/think>([\s\S]*)$/.exec(theirs.content) ?? [];
  return moved !== undefined && same(text!, theirs.reasoning ?? moved);
}

function isSameCalls(ours: readonly Called[], theirs: readonly Called[]): boolean {
  if (ours.length !== theirs.length) return false;
  return theirs.every((call, index) => {
    const meant = ours.find(({ id }) => id !== undefined && id === call.id) ?? ours[index]!;
    return meant.name === call.name && isSameJson(meant.arguments, call.arguments);
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
