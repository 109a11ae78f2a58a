// The interface of a chat format: conversations to token ids and back.
import type { Tokenizer } from "../tokenizer/tokenizer.ts";
import type { Message, ParsedResponse, RenderOptions, SupervisedExample, SupervisedOptions } from "./messages.ts";

/** One chat format on one tokenizer. Message content is untrusted: control tokens written in it stay plain text. */
export interface Renderer {
  readonly name: string;
  readonly tokenizer: Tokenizer;
  /** Sampling stops at these; each is one token. */
  readonly stopTokens: readonly number[];
  /**
   * True: the prompt of each turn begins with the prompt and completion of the turn before, so several turns can be one training
   * sequence. False: earlier turns are rewritten (their reasoning is dropped), and each turn needs its own sequence.
   */
  readonly hasExtensionProperty: boolean;

  /** The tokens after which the model writes the next assistant message. */
  buildGenerationPrompt(messages: readonly Message[], options?: RenderOptions): number[];
  /** A finished conversation and which of its tokens to train on. */
  buildSupervisedExample(messages: readonly Message[], options?: SupervisedOptions): SupervisedExample;
  /** Reads sampled tokens, the stop token included where one was sampled. */
  parseResponse(tokens: ArrayLike<number>): ParsedResponse;
}
