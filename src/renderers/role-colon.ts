// Conversations for base models, which have no chat format: `User: …`, a blank line, `Assistant:`. The turn ends where the model begins
// to write the user's next line.
import type { Tokenizer } from "../tokenizer/tokenizer.ts";
import { RendererError } from "./errors.ts";
import { type Extension, rewrites } from "./extension.ts";
import type { Message, ParsedResponse, RenderOptions, SupervisedExample, SupervisedOptions } from "./messages.ts";
import type { Renderer, RendererFormat } from "./renderer.ts";
import { type Segment, weigh } from "./segments.ts";

const nextUser = "User:";
const stopText = `\n\n${nextUser}`;

class RoleColonRenderer implements Renderer {
  readonly name = roleColon.name;
  readonly tokenizer: Tokenizer;
  readonly stop: string[] = [stopText];
  readonly hasExtensionProperty = true;
  /** The token that begins a sequence, for the models that have one. */
  readonly #start: readonly number[];

  constructor(tokenizer: Tokenizer) {
    this.tokenizer = tokenizer;
    const { bos_token: bos } = tokenizer.specialTokens;
    const id = bos === undefined ? undefined : tokenizer.tokenId(bos);
    this.#start = id === undefined ? [] : [id];
  }

  buildGenerationPrompt(messages: readonly Message[], options: RenderOptions = {}): number[] {
    const segments = this.#render(messages, options);
    return [...segments.flatMap(({ tokens }) => tokens), ...this.#header("assistant", segments.length === 0)];
  }

  /** An answer ends with the beginning of what the user says next, as the model wrote it. */
  extend(
    _messages: readonly Message[],
    answer: ArrayLike<number>,
    added: readonly Message[],
    options: RenderOptions = {},
  ): Extension {
    if (!this.tokenizer.decode(answer).endsWith(stopText)) return { tokens: undefined, rewritten: rewrites.unfinished };
    if (added[0]?.role !== "user") return { tokens: undefined, rewritten: rewrites.moved };
    const [, ...behind] = this.#render(added, options).flatMap((segment) => [segment.tokens]);
    return { tokens: [...behind.flat(), ...this.#header("assistant", false)], rewritten: undefined };
  }

  buildSupervisedExample(messages: readonly Message[], options: SupervisedOptions = {}): SupervisedExample {
    const segments = this.#render(messages, options);
    // The end of the last answer is what the model writes to end its turn.
    if (messages.at(-1)?.role === "assistant") segments.at(-1)!.tokens.push(...this.#encode(nextUser));
    return weigh(segments, messages, options.trainOn ?? "last_assistant_message");
  }

  parseResponse(tokens: ArrayLike<number>): ParsedResponse {
    const ids = Array.from(tokens);
    const end = ids.findIndex((id) => this.tokenizer.endTokens.includes(id));
    const text = this.tokenizer.decode(end < 0 ? ids : ids.slice(0, end));
    const stop = text.indexOf(stopText);
    return {
      message: { role: "assistant", content: (stop < 0 ? text : text.slice(0, stop)).trim() },
      termination: stop < 0 && end < 0 ? "malformed" : "stop_sequence",
    };
  }

  #render(messages: readonly Message[], { tools }: RenderOptions): Segment[] {
    if ((tools?.length ?? 0) > 0) this.#refuse("tools cannot be declared");
    return messages.flatMap((message, index): Segment[] => {
      if (message.role === "tool" || message.toolCalls?.length) this.#refuse(`message ${index} is about a tool`);
      if (message.reasoning) this.#refuse(`message ${index} has reasoning`);
      return [
        { message: index, part: "header", tokens: this.#header(message.role, index === 0) },
        { message: index, part: "content", tokens: this.#encode(` ${message.content}\n\n`) },
      ];
    });
  }

  #header(role: string, first: boolean): number[] {
    const name = `${role[0]!.toUpperCase()}${role.slice(1)}:`;
    return first ? [...this.#start, ...this.tokenizer.encode(name)] : this.#encode(name);
  }

  #encode(text: string): number[] {
    return this.tokenizer.encode(text, { continues: true });
  }

  #refuse(what: string): never {
    throw new RendererError(
      "renderer/no-chat-format",
      `${this.name} writes plain text for a model without a chat format, and ${what}. Use a chat model.`,
    );
  }
}

export const roleColon: RendererFormat = {
  name: "role_colon",
  thinking: { off: "role_colon" },
  suits: (model) => /-base(-|$)|^base-/.test(model),
  create: (tokenizer) => new RoleColonRenderer(tokenizer),
};
