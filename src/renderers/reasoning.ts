// Where the think block of an assistant message is, and when a thinking model's conversation shows it.
import type { Message } from "./messages.ts";
import { strip } from "./template/python.ts";

/** What encloses reasoning in a model's text. */
export interface ReasoningTags {
  open: string;
  close: string;
}

export const thinkTags: ReasoningTags = { open: "<think>", close: "</think>" };

/** Reasoning and answer of an assistant message; a block that stands in the content is taken out of it. */
export function splitReasoning(message: Message): { reasoning: string; text: string } {
  const { content } = message;
  if (message.reasoning !== undefined) return { reasoning: message.reasoning, text: content };
  const close = content.indexOf("</think>");
  if (close < 0) return { reasoning: "", text: content };
  const before = trimEndNewlines(content.slice(0, close));
  const open = before.lastIndexOf("<think>");
  return {
    reasoning: trimStartNewlines(open < 0 ? before : before.slice(open + "<think>".length)),
    text: trimStartNewlines(content.slice(content.lastIndexOf("</think>") + "</think>".length)),
  };
}

/** The block as the Qwen3 template writes it; empty reasoning gives the empty block that stands for "did not think". */
export function thinkBlock(reasoning: string): string {
  return `<think>\n${trimNewlines(reasoning)}\n</think>\n\n`;
}

/** A user message that asks something, as opposed to one that only carries tool results. */
export function isQuery(message: Message): boolean {
  const { role, content } = message;
  return role === "user" && !(content.startsWith("<tool_response>") && content.endsWith("</tool_response>"));
}

export const trimStartNewlines = (text: string): string => strip(text, "left", "\n");
export const trimEndNewlines = (text: string): string => strip(text, "right", "\n");
export const trimNewlines = (text: string): string => strip(text, "both", "\n");
