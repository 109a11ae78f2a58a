// Answers in the form of the OpenAI API: whole, and as the events of a stream.
import type { Message } from "../renderers/index.ts";
import { argumentsText } from "./conversation.ts";

export interface TokenLogprob {
  token: string;
  logprob: number;
  bytes: number[];
  top_logprobs: never[];
}

export interface Choice {
  message: Message;
  /** Whether it ended at the longest answer allowed. */
  isCut: boolean;
  logprobs?: readonly TokenLogprob[] | undefined;
}

/** What was answered. */
export interface Reply {
  id: string;
  model: string;
  created: number;
  choices: readonly Choice[];
  promptTokens: number;
  /** Of all choices. */
  completionTokens: number;
}

type Json = Record<string, unknown>;

const wireCalls = ({ toolCalls = [] }: Message) =>
  toolCalls.map((call) => ({
    id: call.id,
    type: "function",
    function: { name: call.name, arguments: argumentsText(call) },
  }));

const finishOf = ({ message, isCut }: Choice) => (isCut ? "length" : message.toolCalls?.length ? "tool_calls" : "stop");

const logprobsOf = ({ logprobs }: Choice): Json => ({
  logprobs: logprobs ? { content: logprobs, refusal: null } : null,
});

const headOf = ({ id, model, created }: Reply, object: string): Json => ({ id, model, created, object });

const usageOf = ({ promptTokens, completionTokens }: Reply) => ({
  prompt_tokens: promptTokens,
  completion_tokens: completionTokens,
  total_tokens: promptTokens + completionTokens,
});

/** One JSON object. */
export const wholeReply = (reply: Reply): Json => ({
  ...headOf(reply, "chat.completion"),
  choices: reply.choices.map((choice, index) => {
    const { content, reasoning } = choice.message;
    const calls = wireCalls(choice.message);
    const message = {
      role: "assistant",
      content: content === "" && calls.length > 0 ? null : content,
      ...(reasoning && { reasoning_content: reasoning }),
      ...(calls.length > 0 && { tool_calls: calls }),
    };
    return { index, message, finish_reason: finishOf(choice), ...logprobsOf(choice) };
  }),
  usage: usageOf(reply),
});

/** The same as chunks, reasoning first. */
export function* streamedReply(reply: Reply, withUsage: boolean): Generator<Json> {
  const head = headOf(reply, "chat.completion.chunk");
  const chunk = (index: number, delta: Json, finish: string | null = null, more: Json = {}): Json => ({
    ...head,
    choices: [{ index, delta, finish_reason: finish, ...more }],
    ...(withUsage && { usage: null }),
  });
  for (const [index, choice] of reply.choices.entries()) {
    const { content, reasoning } = choice.message;
    yield chunk(index, { role: "assistant", content: "" });
    if (reasoning) yield chunk(index, { reasoning_content: reasoning });
    if (content !== "") yield chunk(index, { content }, null, logprobsOf(choice));
    for (const [position, call] of wireCalls(choice.message).entries())
      yield chunk(index, { tool_calls: [{ index: position, ...call }] });
    yield chunk(index, {}, finishOf(choice));
  }
  if (withUsage) yield { ...head, choices: [], usage: usageOf(reply) };
}
