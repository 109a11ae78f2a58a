// An episode's endpoint: what an agent asks over the OpenAI API becomes turns of the episode's conversation, and what was sampled is its
// answer. An answer that its client did not get counts for nothing; a client that asks the same again gets it.
import { sleep } from "../../core/wait.ts";
import {
  type Address,
  type Asked,
  type ChatModel,
  type ChatRequest,
  callId,
  EndpointError,
  type EndpointServer,
  ended,
  type KnownTurn,
  match,
  placeOfCall,
  type Reply,
  readMessages,
  systemChanged,
  toClient,
  toolsOf,
  turnOf,
} from "../../openai/index.ts";
import type { Message } from "../../renderers/index.ts";
import type { StopReason } from "../../runs/events.ts";
import { EpisodeOver, type Turn } from "../conversation.ts";
import type { Endpoint } from "./environment.ts";
import type { EpisodeState } from "./episode-state.ts";

/** The policy's name and its temperature, which hold whatever an agent asks for. */
type Served = Pick<Endpoint, "model"> & { temperature: number };

interface Node extends KnownTurn {
  turn: Turn;
  /** Why its conversation began anew. */
  changed: string | undefined;
  /** Answers that went on from it. */
  used: number;
}

/** How long the same request, asked twice at once, waits for the first one's client to leave. */
const graceMs = 50;

export class EpisodeEndpoint implements ChatModel {
  readonly #state: EpisodeState;
  readonly #served: Served;
  readonly #nodes: Node[] = [];
  /** Answers whose clients left before they had them, by request. */
  readonly #left = new Map<string, Promise<Node>[]>();
  /** Requests under way, by what they ask. */
  readonly #open = new Map<string, number>();
  #address: (Address & { close(): void }) | undefined;
  #asked = 0;
  #retries = 0;
  #isOver = false;

  private constructor(state: EpisodeState, served: Served) {
    this.#state = state;
    this.#served = served;
  }

  /** It ends by `close`, and with the episode's signal. */
  static async open(server: EndpointServer, state: EpisodeState, served: Served): Promise<EpisodeEndpoint> {
    const endpoint = new EpisodeEndpoint(state, served);
    endpoint.#address = await server.add(endpoint);
    const { signal } = state.limits;
    if (signal.aborted) endpoint.close();
    else signal.addEventListener("abort", endpoint.close, { once: true });
    return endpoint;
  }

  get address(): Endpoint {
    const { baseURL, apiKey } = this.#address!;
    return { baseURL, apiKey, model: this.#served.model };
  }

  get models(): readonly string[] {
    return [this.#served.model];
  }

  /** Whether an agent was told that a limit is reached. */
  get isOver(): boolean {
    return this.#isOver;
  }

  readonly close = (): void => {
    this.#say();
    this.#state.limits.signal.removeEventListener("abort", this.close);
    this.#address?.close();
  };

  /** Writes down what people, or the diagnosis, should know. */
  #note(key: string, value: string | number): void {
    this.#state.log.write(`endpoint/${key}`, value);
  }

  /** Figures for the diagnosis; of an episode that asked for nothing there are none. */
  #say(): void {
    if (this.#asked === 0) return;
    const tokens = (nodes: readonly Node[]) => nodes.reduce((sum, { turn }) => sum + turn.tokens.length, 0);
    const changes = this.#nodes.flatMap(({ changed }) => changed ?? []);
    const system = changes.filter((why) => why === systemChanged).length;
    const figures = {
      answers: this.#asked,
      system_changed: system,
      changed: changes.length - system,
      tokens: tokens(this.#nodes),
      lost_tokens: tokens(this.#nodes.filter(({ turn }) => !turn.isDelivered)),
    };
    for (const [name, value] of Object.entries(figures)) this.#note(name, value);
  }

  async answer({ request, key, gone }: Asked): Promise<{ reply: Reply; delivered(): void }> {
    if (this.#state.limits.signal.aborted) throw ended();
    this.#check(request);
    // A client that gives a request up and sends it again may be faster than the end of its first connection.
    if (!this.#left.get(key)?.length && this.#open.get(key)) await sleep(graceMs);
    const left = this.#left.get(key)?.shift();
    if (left) this.#note("retries", ++this.#retries);
    const asked = left ?? this.#ask(request);
    this.#open.set(key, (this.#open.get(key) ?? 0) + 1);
    asked.catch(() => {});
    gone.addEventListener("abort", () => this.#leave(key, asked), { once: true });
    if (gone.aborted) this.#leave(key, asked);
    const node = await asked.finally(() => this.#open.set(key, this.#open.get(key)! - 1));
    return {
      reply: this.#replyOf(node),
      delivered: () => {
        node.turn.isDelivered = true;
      },
    };
  }

  #leave(key: string, asked: Promise<Node>): void {
    this.#left.set(key, [...(this.#left.get(key) ?? []), asked]);
  }

  /** The run's settings hold; a request that asks for others is refused, or answered with a note. */
  #check({ n, logprobs, model, temperature, top_p, stop }: ChatRequest): void {
    const { model: own, temperature: ours } = this.#served;
    if (n && n > 1)
      throw new EndpointError(400, "endpoint/n", `n=${n}: an episode samples one answer at a time. Ask ${n} times.`);
    if (logprobs)
      throw new EndpointError(
        400,
        "endpoint/logprobs",
        "logprobs are kept for training and not given to agents. Leave logprobs out.",
      );
    if (stop && stop.length > 0)
      throw new EndpointError(
        400,
        "endpoint/stop",
        "stop would end answers elsewhere than training does. Leave it out: an answer ends where the model ends it.",
      );
    if (typeof temperature === "number" && temperature !== ours)
      this.#note("temperature", `the agent asks for ${temperature}; the run's holds (temperature=${ours})`);
    if (typeof top_p === "number" && top_p !== 1) this.#note("top_p", `the agent asks for ${top_p}; 1 holds`);
    if (model && model !== own) this.#note("model", `the agent asks for ${model}; ${own} answers`);
  }

  async #ask(request: ChatRequest): Promise<Node> {
    const { conversation, limits } = this.#state;
    const { signal, maxTurns } = limits;
    if (this.#asked >= maxTurns)
      throw this.#over(
        "max_turns",
        new EndpointError(
          400,
          "endpoint/max-turns",
          `The episode has had its ${maxTurns} answers (max_turns). End the agent's loop earlier, or train with max_turns=${2 * maxTurns}.`,
        ),
      );
    const { from, added, changed } = match(this.#nodes, readMessages(request.messages), ({ used }) => used);
    this.#asked++;
    if (from) {
      from.used++;
      // Who goes on from an answer has had it.
      from.turn.isDelivered = true;
    }
    const tools = toolsOf(request);
    const started = performance.now();
    try {
      const turn = await conversation.ask({
        after: from?.turn,
        added: added.map((message) => this.#messageOf(message)),
        tools: tools.length > 0 ? tools : undefined,
        maxTokens: request.max_completion_tokens ?? request.max_tokens ?? undefined,
        signal,
        isDelivered: false,
        rewritten: changed,
      });
      const answer = toClient(turn.answer, (position) => callId(turn.index, position));
      this.#state.toolCalls += answer.toolCalls?.length ?? 0;
      if (turn.answer.unparsedToolCalls) this.#state.malformed++;
      const messages = [...(from?.messages ?? []), ...added, answer];
      const node = { index: turn.index, turn, changed, messages, used: 0 };
      this.#nodes.push(node);
      return node;
    } catch (error) {
      if (signal.aborted) throw ended();
      if (!(error instanceof EpisodeOver)) throw error;
      throw this.#over(
        error.stop,
        new EndpointError(
          400,
          "endpoint/context-length-exceeded",
          "The conversation exceeds the maximum context length: it leaves no room for an answer in the window that the run has (context_window). Shorten it, or train with a larger one.",
        ),
      );
    } finally {
      this.#state.sampledMs += performance.now() - started;
    }
  }

  #over(stop: StopReason, error: EndpointError): EndpointError {
    this.#isOver = true;
    this.#state.stop = stop;
    return error;
  }

  /** An answer of the model is taken as the model gave it: what a client leaves out of it is still there. */
  #messageOf(given: Message): Message {
    const known = turnOf(this.#nodes, given);
    if (known) return known.turn.answer;
    const { toolCallId, ...message } = given;
    const id = this.#idOf(toolCallId);
    return id === undefined ? message : { ...message, toolCallId: id };
  }

  /** The id that the model's format wrote for a call; one of ours is nothing to it. */
  #idOf(id: string | undefined): string | undefined {
    const place = placeOfCall(id);
    const named = place && this.#nodes.find(({ index }) => index === place.turn);
    return named ? named.turn.answer.toolCalls?.[place.position]?.id : id;
  }

  #replyOf({ turn, messages }: Node): Reply {
    const completionTokens = turn.tokens.length;
    return {
      id: `chatcmpl-${turn.index}`,
      model: this.#served.model,
      created: 0,
      choices: [{ message: messages.at(-1)!, isCut: turn.truncated }],
      promptTokens: this.#state.conversation.pathOf(turn).length - completionTokens,
      completionTokens,
    };
  }
}
