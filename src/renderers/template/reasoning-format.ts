// How a model's family writes its reasoning: between two tags in its text, or as messages of a channel of their own.
import type { Tokenizer } from "../../tokenizer/tokenizer.ts";
import type { RenderOptions, ToolCall } from "../messages.ts";
import { type PromptTail, type ReadResponse, readAssistant, toMessage } from "../parse.ts";
import { type ReasoningTags, thinkTags } from "../reasoning.ts";
import { type CallFormat, jsonArguments } from "../tool-calls.ts";

export interface ReasoningFormat {
  /** Further tokens at which a turn ends: the model waits for someone else. */
  stops: readonly string[];
  read(tokens: readonly number[], tokenizer: Tokenizer, tools: RenderOptions["tools"]): ReadResponse;
}

/** Tags by family; the first whose closing tag is in a template is the template's. */
const knownTags: readonly ReasoningTags[] = [
  thinkTags,
  { open: "<|channel>thought\n", close: "<channel|>" },
  { open: "[THINK]", close: "[/THINK]" },
  { open: "<seed:think>", close: "</seed:think>" },
];

/** What encloses reasoning in the conversations of a template, if anything does. */
export function reasoningTags(source: string): ReasoningTags | undefined {
  return knownTags.find(({ close }) => source.includes(close));
}

/** True for templates that write each message into a channel (gpt-oss). */
export const hasChannels = (source: string) => source.includes("<|channel|>") && source.includes("<|message|>");

/** What the end of a prompt says about reasoning. */
export function promptTail(prompt: string, tags: ReasoningTags | undefined): PromptTail {
  if (!tags) return "none";
  const end = prompt.trimEnd();
  if (end.endsWith(tags.close)) return "closed";
  return end.endsWith(tags.open.trimEnd()) ? "open" : "none";
}

/** Reasoning between tags, or none; and how a prompt leaves it. */
export interface TaggedReasoning {
  tags: ReasoningTags | undefined;
  tail: PromptTail;
}

export function taggedReasoning(reasoning: TaggedReasoning, calls: CallFormat): ReasoningFormat {
  return {
    stops: [],
    read: (tokens, tokenizer, tools) => readAssistant(tokens, tokenizer, { ...reasoning, calls, tools }),
  };
}

/**
 * Messages of an analysis channel, then one of the final channel: `<|channel|>analysis<|message|>…<|end|><|start|>assistant` and so on. The
 * marks are control tokens, so they are looked for as tokens: the same characters in the model's text are text.
 */
export const channelReasoning: ReasoningFormat = {
  stops: ["<|call|>"],
  read: (tokens, tokenizer) => {
    const [start, channel, body] = ["<|start|>", "<|channel|>", "<|message|>"].map((mark) => tokenizer.tokenId(mark));
    const reasoning: string[] = [];
    const unparsedToolCalls: string[] = [];
    let answer: string | undefined;
    const toolCalls: ToolCall[] = [];
    for (const part of splitAt(tokens, start)) {
      const begins = part.indexOf(body ?? -1);
      const named = part.indexOf(channel ?? -1);
      const header = tokenizer.decode(part.slice(0, begins < 0 ? undefined : begins));
      const name = tokenizer.decode(part.slice(named + 1, begins < 0 ? undefined : begins)).trim();
      // Text outside of a channel is no answer, but it is kept.
      const loose = named < 0 ? header : "";
      const text = begins < 0 ? loose : tokenizer.decode(part.slice(begins + 1), { skipSpecial: true });
      const recipient = / to=([^\s<]+)/.exec(` ${header}`)?.[1];
      if (recipient !== undefined) {
        const call = recipient.startsWith("functions.") && jsonArguments(text);
        if (call) toolCalls.push({ name: recipient.slice("functions.".length), arguments: call });
        else unparsedToolCalls.push(tokenizer.decode(part));
      } else if (begins >= 0 && name.startsWith("final")) answer = (answer ?? "") + text;
      else if (text !== "") reasoning.push(text);
    }
    const { message } = toMessage({ text: [answer ?? ""], reasoning, toolCalls, unparsedToolCalls });
    const answered = answer !== undefined || toolCalls.length + unparsedToolCalls.length > 0;
    return answered ? { message } : { message, reasoningOpen: true };
  },
};

function splitAt(tokens: readonly number[], mark: number | undefined): number[][] {
  const parts: number[][] = [[]];
  for (const token of tokens) {
    if (token === mark) parts.push([]);
    else parts.at(-1)!.push(token);
  }
  return parts;
}
