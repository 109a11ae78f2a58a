// The conversation as an environment sees it: replies to read, messages to add, and an end at the limits.
import type { Message } from "../../renderers/index.ts";
import { plainArguments } from "../../renderers/tool-calls.ts";
import type { StopReason } from "../../runs/events.ts";
import { EpisodeOver, messagesTo, type Turn } from "../conversation.ts";
import type { EpisodeState } from "./episode-state.ts";
import type { Call, Toolbox } from "./tools.ts";

/** One answer of the model. */
export interface Reply {
  /** Without reasoning, calls and control tokens. */
  text: string;
  /** What it thought, where the format has that; else "". */
  reasoning: string;
  /** The calls of tools that it made. */
  toolCalls: readonly Call[];
  /** What looked like a call and could not be read. */
  malformed: readonly string[];
  /** Whether it was cut off at the longest answer allowed. */
  truncated: boolean;
  /** Counted from 1. */
  turn: number;
}

/** Malformed calls in a row that are answered with a correction. */
const maxCorrections = 2;

/** A conversation with the model. `for await (const reply of chat)` goes on while there is something to answer, up to a limit. */
export class Chat implements AsyncIterable<Reply> {
  readonly #state: EpisodeState;
  /** The tools as they are now. */
  readonly #toolsNow: () => Promise<Toolbox | undefined>;
  #after: Turn | undefined;
  #added: Message[];
  #turns = 0;
  #malformedInARow = 0;
  #last: Reply | undefined;
  /** Those that the last answer was shown. */
  #tools: Toolbox | undefined;
  /** Calls whose results are there. */
  readonly #answered = new Set<string>();

  /** Made by the loop. */
  constructor(
    state: EpisodeState,
    tools: () => Promise<Toolbox | undefined>,
    messages: readonly Message[],
    after?: Turn,
    turns = 0,
  ) {
    this.#state = state;
    this.#toolsNow = tools;
    this.#added = [...messages];
    this.#after = after;
    this.#turns = turns;
  }

  /** Everything that was said so far, as a view. */
  get messages(): readonly Message[] {
    return [...(this.#after ? messagesTo(this.#after) : []), ...this.#added];
  }

  /** Whether the model was asked here. */
  get isBegun(): boolean {
    return this.#after !== undefined;
  }

  /** Adds a system message; before everything else where nothing was answered yet. */
  system(content: string): void {
    const message: Message = { role: "system", content: textFor("system", content) };
    if (this.#after) this.#added.push(message);
    else this.#added.unshift(message);
  }

  /** Adds what the user says next. */
  user(content: string): void {
    this.#added.push({ role: "user", content: textFor("user", content) });
  }

  /** Adds the result of a call; results of several calls in the order of the calls. */
  tool(call: Pick<Call, "id">, result: string): void {
    const content = textFor("tool", result);
    this.#answered.add(call.id);
    // An id that the model did not write is ours alone: its format knows calls by their order.
    const isTheirs = this.#after?.answer.toolCalls?.some(({ id }) => id === call.id);
    this.#added.push({ role: "tool", content, ...(isTheirs && { toolCallId: call.id }) });
  }

  /** Gives a reward for the last turn, beside the episode's verdict. */
  reward(reward: number): void {
    if (!this.#after) throw new Error("chat.reward was called before the first reply: there is no turn to reward");
    if (!Number.isFinite(reward)) throw new Error(`chat.reward(${String(reward)}): give a finite number`);
    const { rewards } = this.#state;
    rewards.set(this.#after, (rewards.get(this.#after) ?? 0) + reward);
  }

  /** A second conversation that goes on from here by itself; its turns are trained on too. Limits on turns count for each. */
  fork(): Chat {
    return new Chat(this.#state, this.#toolsNow, this.#added, this.#after, this.#turns);
  }

  /** Asks the model. Rejects with EpisodeOver at a limit; `for await` ends there. */
  async reply(options: { maxTokens?: number } = {}): Promise<Reply> {
    const { conversation, limits } = this.#state;
    const { signal, maxTurns } = limits;
    signal.throwIfAborted();
    if (this.#turns >= maxTurns) throw this.#over("max_turns");
    const [after, added] = [this.#after, this.#added];
    this.#added = [];
    const asked = performance.now();
    let turn: Turn;
    let tools: Toolbox | undefined;
    try {
      tools = await this.#toolsNow();
      turn = await conversation.ask({
        after,
        added,
        tools: tools?.declarations,
        maxTokens: options.maxTokens,
        signal,
      });
    } catch (error) {
      this.#added = [...added, ...this.#added];
      throw error instanceof EpisodeOver ? this.#over(error.stop) : error;
    } finally {
      this.#state.sampledMs += performance.now() - asked;
    }
    this.#after = turn;
    this.#tools = tools;
    this.#turns++;
    this.#last = replyOf(turn, this.#turns);
    if (this.#last.malformed.length > 0) this.#state.malformed++;
    this.#malformedInARow = this.#last.malformed.length > 0 ? this.#malformedInARow + 1 : 0;
    return this.#last;
  }

  /** The replies, until nothing is left to answer or a limit is reached. Tools are run, and calls that cannot be read corrected, in between. */
  async *[Symbol.asyncIterator](): AsyncGenerator<Reply, void, undefined> {
    try {
      while (!this.#last || (await this.#goesOn(this.#last))) yield await this.reply();
    } catch (error) {
      if (!(error instanceof EpisodeOver)) throw error;
    }
  }

  /** Answers what the last reply asked for; false where nothing is left to answer. */
  async #goesOn(last: Reply): Promise<boolean> {
    if (last.truncated) throw this.#over("truncated");
    if (last.malformed.length > 0 && this.#added.length === 0) {
      if (this.#malformedInARow > maxCorrections) throw this.#over("malformed");
      this.user(`Your call could not be read: ${last.malformed[0]!.trim().slice(0, 500)}\nWrite it again.`);
    } else if (last.toolCalls.length > 0 && this.#tools) await this.#runTools(last.toolCalls, this.#tools);
    return this.#added.length > 0;
  }

  async #runTools(calls: readonly Call[], tools: Toolbox): Promise<void> {
    const { maxToolCalls, signal } = this.#state.limits;
    const open = calls.filter(({ id }) => !this.#answered.has(id));
    if (this.#state.toolCalls + open.length > maxToolCalls) throw this.#over("max_turns");
    this.#state.toolCalls += open.length;
    const results = await Promise.all(open.map((call) => tools.run(call, { signal })));
    const before = this.#added.filter(({ role }) => role === "tool");
    const others = this.#added.filter(({ role }) => role !== "tool");
    this.#added = before;
    for (const [index, { text, failed }] of results.entries()) {
      if (failed) this.#state.toolErrors++;
      this.tool(open[index]!, text);
    }
    this.#added.push(...others);
  }

  #over(stop: StopReason): EpisodeOver {
    this.#state.stop = stop;
    return new EpisodeOver(stop);
  }
}

/** A module in JavaScript may give anything as text. */
function textFor(method: string, content: unknown): string {
  if (typeof content === "string") return content;
  throw new TypeError(`chat.${method} was given ${JSON.stringify(content) ?? String(content)}: give text`);
}

/** Calls without an id of the format's own get one that names their turn. */
function replyOf({ answer, truncated, index }: Turn, turn: number): Reply {
  const { content, reasoning = "", toolCalls = [], unparsedToolCalls = [] } = answer;
  const calls = toolCalls.map((call, position): Call => {
    const read = plainArguments(call.arguments);
    return { id: call.id ?? `call_${index}_${position}`, name: call.name, arguments: read };
  });
  return { text: content, reasoning, toolCalls: calls, malformed: unparsedToolCalls, truncated, turn };
}
