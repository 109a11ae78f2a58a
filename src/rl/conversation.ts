// A conversation with the policy: a tree of turns whose tokens are those that the sampler was given and gave back. Messages are a view of
// it; sampled tokens are never rendered, decoded or parsed again into tokens. Each junction between two turns is decided by itself: what
// is said next is appended to the tokens that are there, or, where the chat format writes earlier turns otherwise, a new sequence begins.

import { isDeepStrictEqual } from "node:util";
import { concat } from "../core/arrays.ts";
import { WhetstoneError } from "../core/errors.ts";
import type { Message, Renderer, RenderOptions, ToolDeclaration } from "../renderers/index.ts";
import type { StopReason } from "../runs/events.ts";
import type { TrainConfig } from "./config.ts";

/** One answer of the policy, and what it was shown before. */
export interface Turn {
  /** Counted within the episode; it names the turn in the journal. */
  readonly index: number;
  /** The turn whose tokens it goes on from; undefined: it begins a sequence. */
  readonly parent: Turn | undefined;
  /** What the model was shown behind those tokens: all of its prompt where there is no parent. */
  readonly context: Int32Array;
  readonly tokens: Int32Array;
  readonly logprobs: Float32Array;
  /** The conversation up to here, this answer included; undefined where its prompt was given as tokens. */
  readonly messages: readonly Message[] | undefined;
  readonly answer: Message;
  readonly truncated: boolean;
  /** Why it begins a sequence although it goes on from another turn. */
  readonly rewritten: string | undefined;
  /** Whether whoever asked got it: only such turns are trained on. */
  isDelivered: boolean;
}

/** What is asked next. */
export interface Ask {
  /** The turn that it goes on from; undefined: the conversation begins. */
  after?: Turn | undefined;
  /** What is said since then. */
  added: readonly Message[];
  tools?: readonly ToolDeclaration[] | undefined;
  /** At most this many tokens, where that is less than the run's limit. */
  maxTokens?: number | undefined;
  signal?: AbortSignal | undefined;
  /** False: the turn counts only once its `isDelivered` is set. Default true. */
  isDelivered?: boolean;
  /** Without `after`: why a conversation that had begun begins a sequence. */
  rewritten?: string | undefined;
}

/** A request for one answer, as the rollout sees it. */
export interface Draw {
  prompt: Int32Array;
  parent: number | null;
  context: Int32Array;
  maxTokens: number;
  added: readonly Message[];
  rewritten: string | undefined;
  tools: readonly ToolDeclaration[] | undefined;
  signal: AbortSignal | undefined;
}

/** What was drawn: now, or by an earlier process under the same prompt. */
export interface Drawn {
  index: number;
  tokens: Int32Array;
  logprobs: Float32Array;
  truncated: boolean;
  /** As it was parsed. */
  answer: Message;
}

/** The run's limits for one conversation. */
export type Limits = Pick<TrainConfig, "max_tokens" | "context_window" | "min_generation" | "history">;

/** An episode's limit is reached: no further turn is sampled. */
export class EpisodeOver extends Error {
  /** Which limit it was. */
  readonly stop: StopReason;
  constructor(stop: StopReason, message = `the episode is over (${stop})`) {
    super(message);
    this.name = "EpisodeOver";
    this.stop = stop;
  }
}

/** No token stands for more bytes than this on average, in any text that is worth training on. */
const bytesPerToken = 32;

export class Conversation {
  readonly #renderer: Renderer;
  readonly #draw: (request: Draw) => Promise<Drawn>;
  readonly #limits: Limits;
  readonly #paths = new WeakMap<Turn, Int32Array>();
  readonly #tools = new WeakMap<Turn, readonly ToolDeclaration[] | undefined>();
  /** In the order in which they came. */
  readonly turns: Turn[] = [];

  constructor(renderer: Renderer, draw: (request: Draw) => Promise<Drawn>, limits: Limits) {
    this.#renderer = renderer;
    this.#draw = draw;
    this.#limits = limits;
  }

  /** Samples the next turn. Rejects with EpisodeOver where the context window leaves no room for it. */
  async ask({ after, added, tools, maxTokens, signal, isDelivered = true, rewritten }: Ask): Promise<Turn> {
    const bytes = added.reduce((sum, { content }) => sum + content.length, 0);
    if (bytes > bytesPerToken * this.#limits.context_window) throw new EpisodeOver("context");
    const messages = [...(after?.messages ?? []), ...added];
    const going = this.#junction(after, added, messages, tools);
    const junction = after ? going : { ...going, rewritten };
    const { context, parent } = junction;
    const prompt = parent ? concat(Int32Array, [this.pathOf(parent), context]) : context;
    const { max_tokens: limit, min_generation: least, context_window: window } = this.#limits;
    const most = Math.min(maxTokens ?? limit, limit);
    const room = window - prompt.length;
    if (room < Math.min(least, most)) throw new EpisodeOver("context");
    const request = { ...junction, prompt, messages, added, tools, signal, isDelivered };
    return this.#sample({ ...request, maxTokens: Math.min(most, room) });
  }

  /** The first turn, for a prompt that is tokens already. */
  askTokens(prompt: Int32Array, maxTokens: number, signal?: AbortSignal): Promise<Turn> {
    const nothing = { parent: undefined, rewritten: undefined, messages: undefined, tools: undefined };
    return this.#sample({ ...nothing, context: prompt, prompt, added: [], maxTokens, signal, isDelivered: true });
  }

  /** All tokens up to a turn's end. */
  pathOf(turn: Turn): Int32Array {
    const known = this.#paths.get(turn);
    if (known) return known;
    const before = turn.parent ? this.pathOf(turn.parent) : new Int32Array();
    const path = concat(Int32Array, [before, turn.context, turn.tokens]);
    this.#paths.set(turn, path);
    return path;
  }

  /** What to show the model next, and which tokens it stands behind. */
  #junction(
    after: Turn | undefined,
    added: readonly Message[],
    messages: readonly Message[],
    tools: readonly ToolDeclaration[] | undefined,
  ): Pick<Turn, "context" | "parent" | "rewritten"> {
    const options = tools && tools.length > 0 ? { tools } : {};
    try {
      const begins = after ? this.#extend(after, added, tools, options) : undefined;
      if (typeof begins === "object") return begins;
      const context = promptOf(this.#renderer, messages, options);
      return { context, parent: undefined, rewritten: begins };
    } catch (error) {
      // A format that refuses what the model wrote ends the conversation; the caller must correct what the caller wrote.
      if (after?.messages && isRefusal(error) && refuses(this.#renderer, answered(after.messages), options))
        throw new EpisodeOver("malformed", error.message);
      throw error;
    }
  }

  /** What is appended to a turn; or why nothing is, in words. */
  #extend(
    after: Turn,
    added: readonly Message[],
    tools: readonly ToolDeclaration[] | undefined,
    options: RenderOptions,
  ): Pick<Turn, "context" | "parent" | "rewritten"> | string {
    if (!after.messages) throw new Error("a turn whose prompt was given as tokens cannot be gone on from");
    if (!isDeepStrictEqual(tools ?? [], this.#tools.get(after) ?? [])) return "the list of tools is another";
    if (added.some(({ role }) => role === "assistant")) return "an answer was added that the model did not give";
    if (added.some(({ role }) => role === "system")) return "a system message was added";
    const { tokens, rewritten } = this.#renderer.extend(after.messages, after.tokens, added, options);
    if (tokens && (rewritten === undefined || this.#limits.history === "keep"))
      return { context: Int32Array.from(tokens), parent: after, rewritten: undefined };
    return rewritten ?? "the new messages cannot be appended";
  }

  async #sample({
    context,
    parent,
    messages,
    isDelivered,
    ...request
  }: Pick<Turn, "parent" | "messages" | "isDelivered"> & Omit<Draw, "parent">): Promise<Turn> {
    const drawn = await this.#draw({ ...request, context, parent: parent?.index ?? null });
    const said = messages && [...messages, drawn.answer];
    const { rewritten, tools } = request;
    const turn: Turn = { ...drawn, parent, context, messages: said, rewritten, isDelivered };
    this.#tools.set(turn, tools);
    this.turns.push(turn);
    return turn;
  }
}

const isRefusal = (error: unknown): error is WhetstoneError =>
  error instanceof WhetstoneError && error.code === "renderer/template-refuses";

/** A conversation with the plainest that can follow its last answer. */
function answered(messages: readonly Message[]): Message[] {
  const calls = messages.at(-1)?.toolCalls ?? [];
  const results = calls.map(
    ({ id }): Message => ({ role: "tool", content: "?", ...(id !== undefined && { toolCallId: id }) }),
  );
  return [...messages, ...(results.length > 0 ? results : [{ role: "user" as const, content: "?" }])];
}

/** Whether a format refuses a conversation. */
function refuses(renderer: Renderer, messages: readonly Message[], options: RenderOptions): boolean {
  try {
    renderer.buildGenerationPrompt(messages, options);
    return false;
  } catch (error) {
    return isRefusal(error);
  }
}

const maxPrompts = 64;
/** The prompts that were rendered last: the episodes of a group begin with the same one. */
const prompts = new WeakMap<Renderer, Map<string, Int32Array>>();

function promptOf(renderer: Renderer, messages: readonly Message[], options: RenderOptions): Int32Array {
  const known = prompts.get(renderer) ?? new Map<string, Int32Array>();
  prompts.set(renderer, known);
  const key = JSON.stringify([messages, options]);
  const prompt = known.get(key) ?? Int32Array.from(renderer.buildGenerationPrompt(messages, options));
  known.delete(key);
  known.set(key, prompt);
  for (const oldest of known.keys()) {
    if (known.size <= maxPrompts) break;
    known.delete(oldest);
  }
  return prompt;
}
