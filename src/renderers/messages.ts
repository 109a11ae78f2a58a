// What a conversation is made of, before it is tokens.

/** Who speaks. */
export type Role = "system" | "user" | "assistant" | "tool";

/** A call of a function by the model. */
export interface ToolCall {
  /** Of the function. */
  name: string;
  /** Some formats (Kimi, Mistral) write it; where it is missing, one is made from the name and the position. */
  id?: string;
  /** The arguments as an object, or as JSON text that is written as it stands. */
  arguments: Readonly<Record<string, unknown>> | string;
}

/** One message of a conversation. */
export interface Message {
  /** Who speaks. */
  role: Role;
  /** What is said. */
  content: string;
  /** Assistant only: the text of the think block. Undefined: the block, if there is one, stands in `content`. */
  reasoning?: string;
  /** Assistant only. */
  toolCalls?: readonly ToolCall[];
  /** Tool only: the id of the call that this answers, for the formats that write it. */
  toolCallId?: string;
  /** Assistant only, from parsing: what looks like a call and cannot be read, with its marks. It is written behind the content, as text. */
  unparsedToolCalls?: readonly string[];
  /** Only with `trainOn: "customized"`, and there on every message: whether its content is trained on. */
  trainable?: boolean;
}

/** What a message says: calls that could not be read are text of the model like any other. */
export const contentOf = ({ content, unparsedToolCalls = [] }: Message): string =>
  [content, ...unparsedToolCalls].filter((part, index) => part !== "" || index === 0).join("\n");

/** A tool the model may call, in the JSON of the OpenAI API; as text where number spelling (`5.0`) must survive. */
export type ToolDeclaration = Readonly<Record<string, unknown>> | string;

/** Which tokens a supervised example trains on. Headers are left out, except in `all_tokens`. */
export const trainOnModes = [
  "last_assistant_message",
  "last_assistant_turn",
  "all_assistant_messages",
  "all_messages",
  "all_tokens",
  "all_user_and_system_messages",
  "customized",
] as const;

/** Which messages are learned from. */
export type TrainOn = (typeof trainOnModes)[number];

/** A conversation to learn from. */
export interface SupervisedExample {
  /** The whole conversation. */
  tokens: number[];
  /** 0 or 1 per token. The target of position i is token i + 1, so a loss drops the first weight. */
  weights: number[];
  /** What a person should know before training on this. */
  warnings: string[];
}

/** What a model's answer says. */
export interface ParsedResponse {
  /** The answer as a message. */
  message: Message;
  /** `stop_sequence`: the model ended its turn. `malformed`: it did not, e.g. because it ran out of tokens. */
  termination: "stop_sequence" | "malformed";
  /** True: the response ends within its reasoning, so there is no answer: it was cut off, whatever ended it. */
  reasoningOpen?: boolean;
}

/** How much a model is asked to think; "" leaves it to the model's own default. */
export const thinkingModes = ["", "on", "off", "low", "medium", "high"] as const;

/** Whether a model thinks before it answers. */
export type Thinking = (typeof thinkingModes)[number];

/** What a rendered conversation has besides its messages. */
export interface RenderOptions {
  /** Functions that the model may call. */
  tools?: readonly ToolDeclaration[];
}

/** What is learned of a conversation. */
export interface SupervisedOptions extends RenderOptions {
  /** Default `last_assistant_message`. */
  trainOn?: TrainOn;
}
