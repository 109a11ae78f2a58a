// What is said, as the messages of chat formats, and answers as clients see them.
import type { Message } from "../renderers/index.ts";
import { contentOf } from "../renderers/messages.ts";
import type { Said } from "./said.ts";

/** A message as a client gave it; `formatId` gives the id that the model's own format knows a call by. */
export function toMessage(
  { role, content, reasoning, calls, callId }: Said,
  formatId: (id: string | undefined) => string | undefined = (id) => id,
): Message {
  if (role === "tool") {
    const id = formatId(callId);
    return { role, content, ...(id !== undefined && { toolCallId: id }) };
  }
  if (role !== "assistant") return { role, content };
  const toolCalls = calls.map(({ id, name, arguments: text }) => ({
    name,
    arguments: text.trim() === "" ? "{}" : text,
    ...(id !== undefined && { id }),
  }));
  return { role, content, ...(reasoning ? { reasoning } : {}), ...(toolCalls.length > 0 && { toolCalls }) };
}

/** An answer as its client sees it: what looked like a call and could not be read is text. */
export function toSaid(answer: Message, idOf: (position: number) => string): Said {
  const { reasoning, toolCalls = [] } = answer;
  return {
    role: "assistant",
    content: contentOf(answer),
    reasoning,
    calls: toolCalls.map(({ name, arguments: given }, position) => ({
      id: idOf(position),
      name,
      arguments: typeof given === "string" ? given : JSON.stringify(given),
    })),
  };
}
