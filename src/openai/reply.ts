// Answers in the form of the OpenAI API: whole, and as the events of a stream.
import type { Said } from "./said.ts";

export type Finish = "stop" | "length" | "tool_calls";

export interface TokenLogprob {
  token: string;
  logprob: number;
  bytes: number[];
  top_logprobs: never[];
}

export interface Choice {
  said: Said;
  finish: Finish;
  logprobs?: readonly TokenLogprob[] | undefined;
}

/** What was answered. */
export interface Reply {
  id: string;
  model: string;
  created: number;
  choices: readonly Choice[];
  usage: { prompt_tokens: number; completion_tokens: number; total_tokens: number };
}

type Json = Record<string, unknown>;

const wireCalls = ({ calls }: Said) =>
  calls.map(({ id, name, arguments: text }) => ({ id, type: "function", function: { name, arguments: text } }));

const logprobsOf = ({ logprobs }: Choice): Json => ({
  logprobs: logprobs ? { content: logprobs, refusal: null } : null,
});

/** One JSON object. */
export function wholeReply({ choices, usage, ...head }: Reply): Json {
  return {
    ...head,
    object: "chat.completion",
    choices: choices.map((choice, index) => {
      const { said, finish } = choice;
      const message: Json = {
        role: "assistant",
        content: said.content === "" && said.calls.length > 0 ? null : said.content,
      };
      if (said.reasoning) message["reasoning_content"] = said.reasoning;
      if (said.calls.length > 0) message["tool_calls"] = wireCalls(said);
      return { index, message, finish_reason: finish, ...logprobsOf(choice) };
    }),
    usage,
  };
}

/** The same as chunks, reasoning first. */
export function* streamedReply({ choices, usage, ...head }: Reply, withUsage: boolean): Generator<Json> {
  const chunk = (index: number, delta: Json, finish: Finish | null = null, more: Json = {}): Json => ({
    ...head,
    object: "chat.completion.chunk",
    choices: [{ index, delta, finish_reason: finish, ...more }],
    ...(withUsage && { usage: null }),
  });
  for (const [index, choice] of choices.entries()) {
    const { said, finish } = choice;
    yield chunk(index, { role: "assistant", content: "" });
    if (said.reasoning) yield chunk(index, { reasoning_content: said.reasoning });
    if (said.content !== "") yield chunk(index, { content: said.content }, null, logprobsOf(choice));
    for (const [position, call] of wireCalls(said).entries())
      yield chunk(index, { tool_calls: [{ index: position, ...call }] });
    yield chunk(index, {}, finish);
  }
  if (withUsage) yield { ...head, object: "chat.completion.chunk", choices: [], usage };
}
