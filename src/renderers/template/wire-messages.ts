// Messages as chat templates expect them: the names of the OpenAI API, reasoning under both names that templates read.
import { RendererError } from "../errors.ts";
import { contentOf, type Message, type ToolCall, type ToolDeclaration } from "../messages.ts";
import { parseJson } from "./json-values.ts";

export function toWireMessages(messages: readonly Message[], argumentsAsText: boolean): Record<string, unknown>[] {
  let pending: (string | undefined)[] = [];
  return withCallIds(messages).map((message, index) => {
    checkRole(message, index);
    const wire: Record<string, unknown> = { role: message.role, content: contentOf(message) };
    if (message.reasoning !== undefined) {
      wire["reasoning_content"] = message.reasoning;
      wire["thinking"] = message.reasoning;
    }
    if (message.toolCalls?.length) {
      wire["tool_calls"] = message.toolCalls.map((call) => ({
        id: call.id,
        type: "function",
        function: { name: call.name, arguments: argumentsOf(call, argumentsAsText) },
      }));
      pending = message.toolCalls.map(({ id }) => id);
    }
    if (message.role === "tool") {
      const id = message.toolCallId ?? pending[0];
      if (id !== undefined) wire["tool_call_id"] = id;
      if (pending[0] === id) pending.shift();
    }
    return wire;
  });
}

/** Calls that have no id get one by their name and their place among all calls. */
export function withCallIds(messages: readonly Message[]): readonly Message[] {
  let calls = 0;
  return messages.map((message) => {
    if (!message.toolCalls?.length) return message;
    const before = calls;
    calls += message.toolCalls.length;
    const named = (call: ToolCall, place: number) => ({ id: `functions.${call.name}:${before + place}`, ...call });
    return { ...message, toolCalls: message.toolCalls.map(named) };
  });
}

/** Tool declarations, with the number spelling of those that are given as text. */
export function toWireTools(tools: readonly ToolDeclaration[] | undefined): unknown[] | undefined {
  if (!tools || tools.length === 0) return undefined;
  return tools.map((tool) => (typeof tool === "string" ? parseJson(tool, "A tool declaration") : tool));
}

/** Some templates write arguments as they stand and need text; most go through them and need values. */
function argumentsOf(call: ToolCall, asText: boolean): unknown {
  if (typeof call.arguments === "string") return asText ? call.arguments : parseJson(call.arguments, "A tool call");
  return asText ? JSON.stringify(call.arguments) : call.arguments;
}

/** Roles come from outside: the type says nothing of them. */
export function checkRole({ role }: Message, index: number): void {
  if (["system", "user", "assistant", "tool"].includes(role)) return;
  throw new RendererError(
    "renderer/unknown-role",
    `Message ${index} has the role ${JSON.stringify(role)}. Use system, user, assistant or tool.`,
  );
}
