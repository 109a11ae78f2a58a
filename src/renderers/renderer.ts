// The interface of a chat format: conversations to token ids and back.
import type { Tokenizer } from "../tokenizer/tokenizer.ts";
import type { Extension } from "./extension.ts";
import type {
  Message,
  ParsedResponse,
  RenderOptions,
  SupervisedExample,
  SupervisedOptions,
  Thinking,
} from "./messages.ts";

/** One chat format on one tokenizer. Message content is untrusted: control tokens written in it stay plain text. */
export interface Renderer {
  /** The name by which `getRenderer` finds it. */
  readonly name: string;
  /** What turns its text into tokens. */
  readonly tokenizer: Tokenizer;
  /** Sampling stops at these: tokens, or texts where the format has no token for the end of a turn. */
  readonly stop: number[] | string[];
  /**
   * True: the prompt of each turn begins with the prompt and completion of the turn before, so several turns can be one training
   * sequence. False: earlier turns are rewritten (their reasoning is dropped), and each turn needs its own sequence.
   */
  readonly hasExtensionProperty: boolean;

  /** The tokens after which the model writes the next assistant message. */
  buildGenerationPrompt(messages: readonly Message[], options?: RenderOptions): number[];
  /**
   * The next prompt after an answer, as tokens behind those that were sampled: nothing is written or tokenized twice. `messages` ends
   * with the answer as `parseResponse` read it, `answer` are its tokens with their stop token, `added` is what others say then.
   */
  extend(
    messages: readonly Message[],
    answer: ArrayLike<number>,
    added: readonly Message[],
    options?: RenderOptions,
  ): Extension;
  /** A finished conversation and which of its tokens to train on. */
  buildSupervisedExample(messages: readonly Message[], options?: SupervisedOptions): SupervisedExample;
  /** Reads sampled tokens, the stop token included where one was sampled; the tools that were declared give parameters their types. */
  parseResponse(tokens: ArrayLike<number>, options?: RenderOptions): ParsedResponse;
}

/** Settings of a renderer. */
export interface RendererSettings {
  /** For the thinking formats: drop the reasoning of earlier turns, as the model's template does. Default true. */
  stripThinkingFromHistory?: boolean;
  /** How much to think, where the format has such a setting. */
  thinking?: Thinking;
  /** Variables of a chat template, e.g. `{ preserve_thinking: true }`. */
  templateSettings?: Readonly<Record<string, unknown>>;
  /** The day that a chat template may write into its prompts. Default: now. */
  now?: Date;
}

/** A kind of renderer, as the registry knows it. */
export interface RendererFormat {
  name: string;
  /** Whether a model, by its name without the owner and in lower case, was trained with this format. */
  suits(model: string): boolean;
  /** Which format to use for each way of thinking; undefined where the format itself takes the setting. */
  thinking?: Partial<Record<Thinking, string>>;
  /** `name` is what was asked for: the format's own, or an alias of it. */
  create(tokenizer: Tokenizer, settings: RendererSettings, name: string): Renderer;
}
