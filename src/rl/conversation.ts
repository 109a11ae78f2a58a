// A conversation with the policy: a tree of turns whose tokens are those that the sampler was given and gave back. Messages are a view of
// it; sampled tokens are never rendered, decoded or parsed again into tokens. Each junction between two turns is decided by itself: what
// is said next is appended to the tokens that are there, or, where the chat format writes earlier turns otherwise, a new sequence begins.

import { concat } from "../core/arrays.ts";
import { WhetstoneError } from "../core/errors.ts";
import { entryOf } from "../core/maps.ts";
import { Recent } from "../core/recent.ts";
import type { Message, Renderer, RenderOptions, ToolDeclaration } from "../renderers/index.ts";
import type { StopReason } from "../runs/events.ts";
import type { TrainConfig } from "./config.ts";
import { toolChanges } from "./tool-changes.ts";

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
  /** The turn that its conversation goes on from, whether its tokens do or not. */
  readonly after: Turn | undefined;
  /** What was said since then; undefined where its prompt was given as tokens. */
  readonly added: readonly Message[] | undefined;
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
    const going = this.#junction(after, added, tools);
    const junction = after ? going : { ...going, rewritten };
    const { context, parent } = junction;
    const prompt = parent ? concat(Int32Array, [...pathTo(parent), context]) : context;
    const { max_tokens: limit, min_generation: least, context_window: window } = this.#limits;
    const most = Math.min(maxTokens ?? limit, limit);
    const room = window - prompt.length;
    if (room < Math.min(least, most)) throw new EpisodeOver("context");
    const request = { ...junction, prompt, added, tools, signal, maxTokens: Math.min(most, room) };
    return this.#sample(request, { after, added, isDelivered });
  }

  /** The first turn, for a prompt that is tokens already. */
  askTokens(prompt: Int32Array, maxTokens: number, signal?: AbortSignal): Promise<Turn> {
    const nothing = { parent: undefined, rewritten: undefined, tools: undefined };
    const request = { ...nothing, context: prompt, prompt, added: [], maxTokens, signal };
    return this.#sample(request, { after: undefined, added: undefined, isDelivered: true });
  }

  /** All tokens up to a turn's end. */
  pathOf(turn: Turn): Int32Array {
    return concat(Int32Array, pathTo(turn));
  }

  /** What to show the model next, and which tokens it stands behind. */
  #junction(
    after: Turn | undefined,
    added: readonly Message[],
    tools: readonly ToolDeclaration[] | undefined,
  ): Pick<Turn, "context" | "parent" | "rewritten"> {
    const options = tools && tools.length > 0 ? { tools } : {};
    const said = after ? messagesTo(after) : [];
    try {
      const begins = after ? this.#extend(after, said, added, tools) : undefined;
      if (typeof begins === "object") return begins;
      const context = promptOf(this.#renderer, [...said, ...added], options);
      return { context, parent: undefined, rewritten: begins };
    } catch (error) {
      // A format that refuses what the model wrote ends the conversation; the caller must correct what the caller wrote.
      if (after && isRefusal(error) && refuses(this.#renderer, answered(said), options))
        throw new EpisodeOver("malformed", error.message);
      throw error;
    }
  }

  /** What is appended to a turn; or why nothing is, in words. */
  #extend(
    after: Turn,
    said: readonly Message[],
    added: readonly Message[],
    tools: readonly ToolDeclaration[] = [],
  ): Pick<Turn, "context" | "parent" | "rewritten"> | string {
    const changes = toolChanges(this.#tools.get(after) ?? [], tools);
    if (changes !== undefined) return `the list of tools is another: ${changes}`;
    if (added.some(({ role }) => role === "assistant")) return "an answer was added that the model did not give";
    if (added.some(({ role }) => role === "system")) return "a system message was added";
    const { tokens, rewritten } = this.#renderer.extend(said, after.tokens, added, tools.length > 0 ? { tools } : {});
    if (tokens && (rewritten === undefined || this.#limits.history === "keep"))
      return { context: Int32Array.from(tokens), parent: after, rewritten: undefined };
    return rewritten ?? "the new messages cannot be appended";
  }

  async #sample(
    { parent, ...request }: Pick<Turn, "parent"> & Omit<Draw, "parent">,
    place: Pick<Turn, "after" | "added" | "isDelivered">,
  ): Promise<Turn> {
    const drawn = await this.#draw({ ...request, parent: parent?.index ?? null });
    const { context, rewritten, tools } = request;
    const turn: Turn = { ...drawn, ...place, parent, context, rewritten };
    this.#tools.set(turn, tools);
    this.turns.push(turn);
    return turn;
  }
}

/** The tokens up to a turn's end, piece by piece: of a thousand turns, none keeps those of all before it. */
function pathTo(turn: Turn): Int32Array[] {
  const pieces: Int32Array[] = [];
  for (let at: Turn | undefined = turn; at; at = at.parent) pieces.push(at.tokens, at.context);
  return pieces.reverse();
}

/** The conversation up to a turn, its answer included. */
export function messagesTo(turn: Turn): Message[] {
  const pieces: (readonly Message[])[] = [];
  for (let at: Turn | undefined = turn; at; at = at.after) {
    if (!at.added) throw new Error("a turn whose prompt was given as tokens cannot be gone on from");
    pieces.push([at.answer], at.added);
  }
  return pieces.reverse().flat();
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
const prompts = new WeakMap<Renderer, Recent<string, Int32Array>>();

function promptOf(renderer: Renderer, messages: readonly Message[], options: RenderOptions): Int32Array {
  const known = entryOf(prompts, renderer, () => new Recent<string, Int32Array>(maxPrompts));
  const key = JSON.stringify([messages, options]);
  const prompt = known.get(key) ?? Int32Array.from(renderer.buildGenerationPrompt(messages, options));
  known.delete(key);
  known.set(key, prompt);
  return prompt;
}
