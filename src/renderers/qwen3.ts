// The chat format of the Qwen3 family: ChatML with think blocks and JSON tool calls, token for token what the models' own templates
// write. Header, content and end of a message are encoded apart, so that a prompt is always a token prefix of its continuation. The
// one difference to encoding the whole text at once: content that begins with a newline is not merged with the header's newline.
import type { Tokenizer } from "../tokenizer/tokenizer.ts";
import { RendererError } from "./errors.ts";
import { type Extension, isBlank, rewrites } from "./extension.ts";
import {
  contentOf,
  type Message,
  type ParsedResponse,
  type RenderOptions,
  type SupervisedExample,
  type SupervisedOptions,
  type ToolCall,
} from "./messages.ts";
import { readAssistant, untilStop } from "./parse.ts";
import { isQuery, splitReasoning, thinkBlock, thinkTags, trimStartNewlines } from "./reasoning.ts";
import type { Renderer, RendererFormat } from "./renderer.ts";
import { type Segment, warningsOf, weigh } from "./segments.ts";
import { spacedJson } from "./template/json-values.ts";
import { checkRole } from "./template/wire-messages.ts";
import { type CallFormat, callFormatOf } from "./tool-calls.ts";
import { withToolDeclarations } from "./tools.ts";

export interface Qwen3Options {
  /** `never`: the model has no think blocks. `on`: it opens one itself. `off`: the prompt holds an empty one. */
  thinking: "never" | "on" | "off";
  /** Drop the reasoning of turns before the last question, as the model's template does. Default true. */
  stripThinkingFromHistory?: boolean;
}

export class Qwen3Renderer implements Renderer {
  readonly name: string;
  readonly tokenizer: Tokenizer;
  readonly stop: number[];
  readonly hasExtensionProperty: boolean;
  readonly #thinking: Qwen3Options["thinking"];
  readonly #strip: boolean;
  readonly #start: number;
  readonly #end: number;
  readonly #calls: CallFormat;

  constructor(name: string, tokenizer: Tokenizer, options: Qwen3Options) {
    this.name = name;
    this.tokenizer = tokenizer;
    this.#thinking = options.thinking;
    this.#strip = options.stripThinkingFromHistory ?? true;
    this.hasExtensionProperty = this.#thinking === "never" || !this.#strip;
    this.#start = this.#controlToken("<|im_start|>");
    this.#end = this.#controlToken("<|im_end|>");
    this.stop = [this.#end];
    this.#calls = callFormatOf(tokenizer.chatTemplate);
  }

  buildGenerationPrompt(messages: readonly Message[], options: RenderOptions = {}): number[] {
    const segments = this.#render(messages, options);
    return [...segments.flatMap(({ tokens }) => tokens), ...this.#prompt(segments.length === 0)];
  }

  extend(
    messages: readonly Message[],
    answer: ArrayLike<number>,
    added: readonly Message[],
    options: RenderOptions = {},
  ): Extension {
    if (answer[answer.length - 1] !== this.#end) return { tokens: undefined, rewritten: rewrites.unfinished };
    if (added.length === 0) return { tokens: undefined, rewritten: rewrites.nothingAdded };
    const last = messages.length - 1;
    const whole = [...messages, ...added];
    const behind = this.#render(whole, options, { from: last }).filter(({ message }) => message > last);
    const [showed, shows] = [this.#blocksOf(messages.slice(0, -1)), this.#blocksOf(whole)];
    // The format takes what looks like reasoning out of an answer's text.
    const cut =
      this.#thinking !== "never" &&
      messages[last]!.reasoning === undefined &&
      contentOf(messages[last]!).includes(thinkTags.close);
    const hidden = messages.some(
      ({ role, reasoning = "" }, index) =>
        role === "assistant" &&
        !isBlank(reasoning) &&
        (index === last || showed(index, reasoning)) &&
        !shows(index, reasoning),
    );
    return {
      tokens: [...behind.flatMap(({ tokens }) => tokens), ...this.#prompt(false)],
      rewritten: hidden ? rewrites.reasoning : cut ? rewrites.text : undefined,
    };
  }

  buildSupervisedExample(messages: readonly Message[], options: SupervisedOptions = {}): SupervisedExample {
    const trainOn = options.trainOn ?? "last_assistant_message";
    const example = weigh(this.#render(messages, options, { supervised: true }), messages, trainOn);
    return { ...example, warnings: warningsOf(this, this.name, messages, trainOn) };
  }

  parseResponse(tokens: ArrayLike<number>, { tools }: RenderOptions = {}): ParsedResponse {
    const { ids, termination } = untilStop(tokens, this.stop);
    const tags = this.#thinking === "never" ? undefined : thinkTags;
    const tail = this.#thinking === "off" ? "closed" : "none";
    return { ...readAssistant(ids, this.tokenizer, { tags, tail, calls: this.#calls, tools }), termination };
  }

  /** `from`: the messages from there on; those before them are in the tokens already. */
  #render(messages: readonly Message[], options: RenderOptions, { supervised = false, from = 0 } = {}): Segment[] {
    const segments: Segment[] = [];
    const declarations = from === 0 ? this.#toolDeclarations(messages, options) : undefined;
    const opensWithSystem = messages[0]?.role === "system";
    if (declarations !== undefined && !opensWithSystem) this.#write(segments, -1, "system", declarations);
    const shows = this.#blocksOf(messages);
    for (const [place, message] of messages.slice(from).entries()) {
      const index = from + place;
      if (index === 0 && opensWithSystem) {
        this.#write(segments, 0, "system", declarations ?? message.content);
        continue;
      }
      checkRole(message, index);
      if (message.role === "assistant") this.#writeAssistant(segments, message, index, { shows, supervised });
      else if (message.role === "tool") this.#writeToolResult(segments, messages, index);
      else this.#write(segments, index, message.role, message.content);
    }
    return segments;
  }

  #write(segments: Segment[], message: number, role: string, content: string): void {
    segments.push({ message, part: "header", tokens: this.#header(role, segments.length === 0) });
    segments.push({ message, part: "content", tokens: [...this.tokenizer.encode(content), this.#end] });
  }

  #writeAssistant(
    segments: Segment[],
    given: Message,
    index: number,
    { shows, supervised }: { shows: ShowsBlock; supervised: boolean },
  ): void {
    const message = { ...given, content: contentOf(given) };
    const { reasoning, text } = this.#reasoningOf(message, index);
    const showsBlock = this.#thinking !== "never" && shows(index, reasoning);
    const calls = (message.toolCalls ?? []).map(toolCallText).join("\n");
    const body = (showsBlock ? trimStartNewlines(text) : text) + (text !== "" && calls !== "" ? "\n" : "") + calls;
    segments.push({ message: index, part: "header", tokens: this.#header("assistant", segments.length === 0) });
    if (showsBlock && reasoning !== "" && this.#thinking === "off" && supervised) this.#refuseReasoning(index);
    if (showsBlock && reasoning === "" && this.#thinking === "off") {
      segments.push({ message: index, part: "prompted", tokens: this.tokenizer.encode(thinkBlock("")) });
      segments.push({ message: index, part: "content", tokens: [...this.tokenizer.encode(body), this.#end] });
    } else {
      const content = (showsBlock ? thinkBlock(reasoning) : "") + body;
      segments.push({ message: index, part: "content", tokens: [...this.tokenizer.encode(content), this.#end] });
    }
  }

  /** Results that follow each other share one user message. */
  #writeToolResult(segments: Segment[], messages: readonly Message[], index: number): void {
    const first = messages[index - 1]?.role !== "tool";
    const last = messages[index + 1]?.role !== "tool";
    if (first) segments.push({ message: index, part: "header", tokens: this.#header("user", segments.length === 0) });
    const text = `${first ? "" : "\n"}<tool_response>\n${messages[index]!.content}\n</tool_response>`;
    const tokens = this.tokenizer.encode(text);
    if (last) tokens.push(this.#end);
    segments.push({ message: index, part: "content", tokens });
  }

  #reasoningOf(message: Message, index: number): { reasoning: string; text: string } {
    if (this.#thinking !== "never") return splitReasoning(message);
    if (message.reasoning) this.#refuseReasoning(index);
    return { reasoning: "", text: message.content };
  }

  #refuseReasoning(index: number): never {
    throw new RendererError(
      "renderer/reasoning",
      `Message ${index} has reasoning, and ${this.name} writes none. Use the renderer qwen3, or remove the reasoning.`,
    );
  }

  /** Which of the assistant turns are written with their think block. */
  #blocksOf(messages: readonly Message[]): ShowsBlock {
    const query = this.#strip ? messages.findLastIndex(isQuery) : messages.findIndex(isQuery);
    const isShown = (index: number, reasoning: string) =>
      !this.#strip || index === messages.length - 1 || reasoning !== "";
    return (index, reasoning) => query >= 0 && index > query && isShown(index, reasoning);
  }

  #toolDeclarations(messages: readonly Message[], { tools }: RenderOptions): string | undefined {
    if (!tools || tools.length === 0) return undefined;
    const system = messages[0]?.role === "system" ? messages[0].content : undefined;
    return withToolDeclarations(this.tokenizer.chatTemplate, this.tokenizer.name, system, tools);
  }

  /** What an answer begins with. */
  #prompt(first: boolean): number[] {
    const header = this.#header("assistant", first);
    return this.#thinking === "off" ? [...header, ...this.tokenizer.encode(thinkBlock(""))] : header;
  }

  /** The newline before every message but the first belongs to its header. */
  #header(role: string, first: boolean): number[] {
    const newline = first ? [] : this.tokenizer.encode("\n");
    return [...newline, this.#start, ...this.tokenizer.encode(`${role}\n`)];
  }

  #controlToken(token: string): number {
    const id = this.tokenizer.tokenId(token);
    if (id !== undefined) return id;
    throw new RendererError(
      "renderer/missing-token",
      `The tokenizer of ${this.tokenizer.name} has no ${token}, which ${this.name} needs. Use the tokenizer of a ChatML model.`,
    );
  }
}

/** Whether an assistant turn is written with its think block, which may be empty. */
type ShowsBlock = (index: number, reasoning: string) => boolean;

function toolCallText(call: ToolCall): string {
  const parameters = typeof call.arguments === "string" ? call.arguments : spacedJson(call.arguments);
  return `<tool_call>\n{"name": ${JSON.stringify(call.name)}, "arguments": ${parameters}}\n</tool_call>`;
}

const thinking = { on: "qwen3", off: "qwen3_disable_thinking" };
const format = (name: string, options: Qwen3Options): Pick<RendererFormat, "name" | "create"> => ({
  name,
  create: (tokenizer, settings) => new Qwen3Renderer(name, tokenizer, { ...settings, ...options }),
});

const isHybrid = (model: string) =>
  /^qwen3-/.test(model) &&
  !/-base$|-thinking-|-instruct-2507|-coder|-vl-|-omni|-embedding|-reranker|-next-/.test(model);

/** The formats of this family. */
export const qwen3Formats: readonly RendererFormat[] = [
  { ...format("qwen3", { thinking: "on" }), thinking, suits: isHybrid },
  { ...format("qwen3_disable_thinking", { thinking: "off" }), thinking, suits: isHybrid },
  {
    ...format("qwen3_instruct", { thinking: "never" }),
    thinking: { off: "qwen3_instruct" },
    suits: (model) => /^nano-coder|^qwen3-.*-instruct-2507/.test(model),
  },
];
