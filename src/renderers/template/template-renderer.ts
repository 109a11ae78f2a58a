// The renderer of every model that has a chat template: the template writes the conversation, and what else is needed (stop tokens,
// where reasoning ends, what to train on) is found out by rendering small conversations with it.
import type { AddedToken, Tokenizer } from "../../tokenizer/tokenizer.ts";
import { RendererError } from "../errors.ts";
import type { Extension } from "../extension.ts";
import type { Message, ParsedResponse, RenderOptions, SupervisedExample, SupervisedOptions } from "../messages.ts";
import { untilStop } from "../parse.ts";
import type { Renderer, RendererFormat, RendererSettings } from "../renderer.ts";
import { callFormatOf } from "../tool-calls.ts";
import type { Piece } from "./control-text.ts";
import { decidingPart } from "./deciding.ts";
import { extendTemplate } from "./extend.ts";
import { ChatTemplate, type TemplateOptions } from "./jinja.ts";
import {
  channelReasoning,
  hasChannels,
  promptTail,
  type ReasoningFormat,
  reasoningTags,
  type TaggedReasoning,
  taggedReasoning,
} from "./reasoning-format.ts";
import { superviseTemplate } from "./supervise.ts";
import { type ThinkingChoices, thinkingChoices, thinkingSettings } from "./thinking.ts";
import { toWireMessages, toWireTools } from "./wire-messages.ts";

const probe = "WhetstoneProbe";
const user = (content: string): Message => ({ role: "user", content });
const assistant = (content: string): Message => ({ role: "assistant", content });

export class TemplateRenderer implements Renderer {
  readonly name: string;
  readonly tokenizer: Tokenizer;
  readonly stop: number[];
  readonly hasExtensionProperty: boolean;
  /** The ways of thinking that the template knows. */
  readonly thinking: ThinkingChoices;
  readonly template: ChatTemplate;
  /** The control token that ends an assistant message; undefined where only the next message's beginning does. */
  readonly endOfTurn: string | undefined;
  /** What encloses reasoning, and what the prompt ends with. */
  readonly reasoning: TaggedReasoning;
  readonly #settings: Readonly<Record<string, unknown>>;
  readonly #added = new Map<string, AddedToken>();
  readonly #format: ReasoningFormat;
  readonly #argumentsAsText: boolean;

  constructor(tokenizer: Tokenizer, settings: RendererSettings = {}, name = templateFormat.name) {
    const source = tokenizer.chatTemplate;
    if (source === undefined) {
      throw new RendererError(
        "renderer/no-chat-template",
        `The files of ${tokenizer.name} have no chat template, and renderer_name=${name} writes prompts with it. ` +
          "Put chat_template.jinja beside tokenizer.json, or use role_colon for a base model.",
      );
    }
    this.name = name;
    const controls = controlTokens(tokenizer, source);
    const unflagged = controls.filter(({ special }) => !special).map(({ content }) => content);
    this.tokenizer = unflagged.length > 0 ? tokenizer.withControlTokens(unflagged) : tokenizer;
    for (const token of controls) this.#added.set(token.content, token);
    this.template = this.#readTemplate(source, {
      name: tokenizer.name,
      controlTokens: [...this.#added.keys()],
      specialTokens: tokenizer.specialTokens,
      ...(settings.now ? { now: settings.now } : {}),
    });
    const tags = reasoningTags(source);
    const channels = hasChannels(source);
    this.thinking = thinkingChoices(this.template, channels || tags !== undefined);
    this.#settings = {
      ...settings.templateSettings,
      ...thinkingSettings(this.thinking, settings.thinking ?? "", tokenizer.name),
    };
    this.#argumentsAsText = this.#needsArgumentsAsText();
    this.reasoning = { tags, tail: promptTail(this.#plain([user(probe)], true), tags) };
    this.#format = channels ? channelReasoning : taggedReasoning(this.reasoning, callFormatOf(source));
    const ends = this.#findEnds();
    this.endOfTurn = ends.endOfTurn;
    this.stop = this.#findStops(ends.tokens);
    this.hasExtensionProperty = this.#keepsTurns();
  }

  buildGenerationPrompt(messages: readonly Message[], options: RenderOptions = {}): number[] {
    return this.encode(this.render(messages, options, true));
  }

  extend(
    messages: readonly Message[],
    answer: ArrayLike<number>,
    added: readonly Message[],
    options: RenderOptions = {},
  ): Extension {
    return extendTemplate(this, decidingPart(messages), answer, added, options);
  }

  buildSupervisedExample(messages: readonly Message[], options: SupervisedOptions = {}): SupervisedExample {
    return superviseTemplate(this, messages, options);
  }

  parseResponse(tokens: ArrayLike<number>, { tools }: RenderOptions = {}): ParsedResponse {
    const { ids, termination } = untilStop(tokens, this.stop);
    return { ...this.#format.read(ids, this.tokenizer, tools), termination };
  }

  /** The conversation as the template writes it, its control tokens marked. */
  render(messages: readonly Message[], options: RenderOptions, addGenerationPrompt: boolean): string {
    return this.template.render({
      messages: toWireMessages(messages, this.#argumentsAsText),
      tools: toWireTools(options.tools),
      addGenerationPrompt,
      settings: this.#settings,
    });
  }

  /** The same without what follows the last answer's end: a newline, or the end of the whole text, which no model writes. */
  renderFinished(messages: readonly Message[], options: RenderOptions): string {
    const rendered = this.render(messages, options, false);
    const pieces = this.template.controls.split(rendered);
    const position = pieces.findLastIndex((piece) => "token" in piece && piece.token === this.endOfTurn);
    const rest = pieces.slice(position + 1);
    const isTail = rest.every((piece) =>
      "token" in piece ? this.tokenizer.specialTokens["eos_token"] === piece.token : piece.text.trim() === "",
    );
    if (position < 0 || !isTail) return rendered;
    return rendered.slice(0, rendered.length - rest.reduce((sum, { length }) => sum + length, 0));
  }

  /** The tokens of a rendered text, or of a part of one; `continues` where the part does not begin the sequence. */
  encode(rendered: string, { continues = false } = {}): number[] {
    const pieces = this.template.controls.split(rendered);
    return pieces.flatMap((piece, index) => {
      if ("token" in piece) return [this.#added.get(piece.token)!.id];
      const text = this.#withoutBlanks(piece.text, pieces[index - 1], pieces[index + 1]);
      return this.tokenizer.encode(text, { continues: continues || index > 0 });
    });
  }

  /** Some tokens take the blanks beside them with them. */
  #withoutBlanks(text: string, before: Piece | undefined, after: Piece | undefined): string {
    const takes = (piece: Piece | undefined, side: "lstrip" | "rstrip") =>
      piece !== undefined && "token" in piece && this.#added.get(piece.token)![side] === true;
    const start = takes(before, "rstrip") ? text.trimStart() : text;
    return takes(after, "lstrip") ? start.trimEnd() : start;
  }

  #plain(messages: readonly Message[], prompt: boolean): string {
    return this.template.controls.plain(this.render(messages, {}, prompt));
  }

  /** The control tokens that follow an answer: its end, or the beginnings of whatever comes next. */
  #findEnds(): { endOfTurn: string | undefined; tokens: string[] } {
    const after = (messages: readonly Message[]): string | undefined => {
      try {
        const pieces = this.template.controls.split(this.render(messages, {}, false));
        const answer = pieces.findIndex((piece) => "text" in piece && piece.text.includes(probe));
        return pieces.slice(answer + 1).find((piece) => "token" in piece)?.token;
      } catch {
        return undefined;
      }
    };
    const asked = [user("?"), assistant(probe)];
    const endOfTurn = after(asked);
    if (endOfTurn !== undefined) return { endOfTurn, tokens: [endOfTurn] };
    const next = [after([...asked, user("?")]), after([...asked, { role: "tool", content: "?" }])];
    return { endOfTurn, tokens: next.filter((token) => token !== undefined) };
  }

  #findStops(ends: readonly string[]): number[] {
    const written = [...ends, ...this.#format.stops].map((token) => this.tokenizer.tokenId(token));
    const stops = [...new Set([...written, ...this.tokenizer.endTokens])].filter((id) => id !== undefined);
    if (stops.length > 0) return stops;
    throw new RendererError(
      "renderer/no-stop",
      `The chat template of ${this.tokenizer.name} writes no control token after an answer, and the model's files name no end token, so ` +
        "sampling would not know where to stop. Put generation_config.json with eos_token_id beside tokenizer.json.",
    );
  }

  /** Whether each prompt begins with the prompt and the answer of the turn before. */
  #keepsTurns(): boolean {
    const reasons = this.#format === channelReasoning || (this.reasoning.tags && this.reasoning.tail !== "closed");
    const answer = reasons ? { ...assistant("A"), reasoning: probe } : assistant("A");
    const turns = [user("?"), answer, user("!"), answer];
    try {
      return [1, 3].every((index) => {
        const answered = this.renderFinished(turns.slice(0, index + 1), {});
        const prompt = this.render(turns.slice(0, index), {}, true);
        const next = this.render([...turns.slice(0, index + 1), user("and?")], {}, true);
        const shown = !reasons || answered.slice(prompt.length).includes(probe);
        return shown && next.startsWith(answered) && answered.startsWith(prompt);
      });
    } catch {
      return false;
    }
  }

  #needsArgumentsAsText(): boolean {
    const fails = (values: boolean) => {
      const call = {
        role: "assistant",
        content: "",
        tool_calls: [
          { id: "call00000", type: "function", function: { name: "f", arguments: values ? { a: 1 } : '{"a": 1}' } },
        ],
      };
      try {
        this.template.render({ messages: [user("?"), call], addGenerationPrompt: false, settings: this.#settings });
        return false;
      } catch {
        return true;
      }
    };
    return fails(true) && !fails(false);
  }

  /** A token that a template builds out of parts would be taken for text: better no prompt than one without its control tokens. */
  #readTemplate(source: string, options: TemplateOptions): ChatTemplate {
    let unwritten: string | undefined;
    for (const ownRoles of [false, true]) {
      const template = new ChatTemplate(source, { ...options, ownRoles });
      const rendered = template.render({ messages: toWireMessages([user(probe)], false), addGenerationPrompt: true });
      const texts = template.controls.split(rendered).flatMap((piece) => ("text" in piece ? [piece.text] : []));
      unwritten = [...this.#added.keys()].find((token) => texts.some((text) => text.includes(token)));
      if (unwritten === undefined) return template;
    }
    throw new RendererError(
      "renderer/bad-chat-template",
      `The chat template of ${this.tokenizer.name} puts the control token ${unwritten} together from parts, so it cannot be told from the ` +
        "same text in a message. Write it in one piece in chat_template.jinja.",
    );
  }
}

/**
 * The tokens that end or begin something in a conversation: those that the model's files flag as special, and those that the template
 * writes and that are no plain words. A tag such as `<think>` or `<tool_call>` is a word of the model's text.
 */
function controlTokens(tokenizer: Tokenizer, source: string): AddedToken[] {
  return tokenizer.addedTokens.filter(
    ({ special, content }) => special || (source.includes(content) && !/^<\/?[\w:-]+>$|^\/?\w+$/.test(content)),
  );
}

export const templateFormat: RendererFormat = {
  name: "template",
  suits: () => true,
  create: (tokenizer, settings, name) => new TemplateRenderer(tokenizer, settings, name),
};
