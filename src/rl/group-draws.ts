// What is drawn from the policy for one group. Equal first prompts are one request; each further turn is one of its own. A draw is in the
// journal before it is returned, and a draw that the journal already has is returned for the same prompt instead of sampling again.
import { createHash } from "node:crypto";
import { concat } from "../core/arrays.ts";
import { Random } from "../core/random.ts";
import { untilAborted } from "../core/wait.ts";
import type { Message, Renderer } from "../renderers/index.ts";
import type { EventOf, Grade } from "../runs/events.ts";
import { maxResponseCharacters } from "../runs/rollouts.ts";
import { behind, type TurnRow } from "./completion.ts";
import { Conversation, type Draw, type Drawn, type Limits } from "./conversation.ts";
import { RolloutError } from "./datums.ts";
import { isEqual, isPrompt, mostCommon, type Row, rowsOf, sampledUntil } from "./group-rows.ts";
import type { OpenPolicy, Policy } from "./policies.ts";
import type { RememberedGroup } from "./remembered-groups.ts";
import type { GroupFacts, Place, RolloutContext, RolloutFormat, Seat } from "./rollout.ts";
import { describeTask, type Task } from "./tasks.ts";

interface Parts extends Omit<RolloutContext, "recorded">, RolloutFormat {
  place: Place;
  task: Task;
  policy: Policy;
  recorded: RememberedGroup | undefined;
  signal: AbortSignal;
  /** Ends the group: what went wrong is no environment's to deal with. */
  abort(error: unknown): void;
}

/** The group's event is in the journal. */
interface Begun {
  sampled: GroupFacts & Pick<EventOf<"group-sampled">, "seed">;
  prompt: Int32Array;
}

export class GroupDraws {
  readonly #parts: Parts;
  readonly #rows: Row[][];
  /** The first prompt of each sample; null: it asked for nothing. */
  readonly #first = new Map<number, Draw | null>();
  readonly #begin: (begun: Begun | Promise<Begun>) => void;
  /** Resolves when the group's event is written down: nothing else of it is written before. */
  readonly begun: Promise<Begun>;
  readonly #effects: Map<string, unknown>;
  #opened: Promise<OpenPolicy> | undefined;
  /** When the last answer came. */
  sampledUntil = 0;
  /** What ended the group, where that is no environment's doing. */
  failure: { error: unknown } | undefined;

  constructor(parts: Parts) {
    const { recorded, samples } = parts;
    this.#parts = parts;
    let begin: (begun: Begun | Promise<Begun>) => void = () => {};
    this.begun = new Promise((resolve) => {
      begin = resolve;
    });
    this.begun.catch(() => {});
    this.#begin = begin;
    this.#effects = recorded?.effects ?? new Map();
    this.#rows = recorded ? rowsOf(recorded) : Array.from({ length: samples }, () => []);
    if (!recorded) return;
    this.sampledUntil = sampledUntil(recorded);
    begin({ sampled: recorded.sampled, prompt: recorded.arrays()["prompt"] as Int32Array });
  }

  /** How many samples the group has. */
  get samples(): number {
    return this.#parts.recorded?.sampled.samples.length ?? this.#parts.samples;
  }

  rowsOf(sample: number): readonly TurnRow[] {
    return this.#rows[sample]!;
  }

  /** A sample, to be played. */
  seatOf(sample: number): Seat {
    const { place, task, signal, renderer, limits, record } = this.#parts;
    const rows = this.#rows[sample]!;
    const room: Limits = limits
      ? { ...limits, max_tokens: (place.phase === "eval" && limits.eval_max_tokens) || limits.max_tokens }
      : {
          max_tokens: task.maxTokens,
          context_window: Number.POSITIVE_INFINITY,
          min_generation: 1,
          history: "template",
        };
    const converse = () => new Conversation(renderer, (request) => this.#draw(sample, request), room);
    return {
      place,
      task,
      sample,
      signal,
      judgedFrom: undefined,
      conversation: converse(),
      restart: () => {
        for (const row of rows) row.isClaimed = false;
        return converse();
      },
      diverged: () => rows.filter(({ isClaimed, tokens }) => !isClaimed && tokens.length > 0).length,
      once: async <Result>(key: string, effect: () => Result | Promise<Result>) => {
        const name = `${sample} ${key}`;
        if (this.#effects.has(name)) return this.#effects.get(name) as Result;
        const value = (await effect()) ?? null;
        await this.begun;
        await record({ type: "side-effect", ...place, sample, key, value });
        this.#effects.set(name, value);
        return value as Result;
      },
    };
  }

  /** A sample's play has ended, and asks for nothing more. */
  isOver(sample: number): void {
    this.#arrive(sample, null);
  }

  /** Writes a verdict down, with what the answer's length makes of it. */
  async judged(sample: number, given: Grade, start: number) {
    const { place, record, shape } = this.#parts;
    const longest = Math.max(0, ...this.rowsOf(sample).map(({ tokens }) => tokens.length));
    const grade = shape?.(given, longest) ?? given;
    const verdict = { ...place, sample, grade, start, end: Date.now() };
    await record({ type: "graded", ...verdict });
    return verdict;
  }

  async #draw(sample: number, request: Draw): Promise<Drawn> {
    const { signal, renderer, abort } = this.#parts;
    signal.throwIfAborted();
    const wait = <T>(promise: Promise<T>) => untilAborted(promise, signal, request.signal);
    try {
      let row = this.#claim(sample, request.prompt);
      if (!row) {
        this.#arrive(sample, request);
        await wait(this.begun);
        row = this.#claim(sample, request.prompt) ?? (await wait(this.#drawOne(sample, request)));
      }
      row.isClaimed = true;
      const { turn, tokens, logprobs, truncated } = row;
      if (!row.answer || request.tools) {
        const { message } = renderer.parseResponse(tokens, request.tools ? { tools: request.tools } : {});
        row.answer = message;
      }
      return { index: turn, tokens, logprobs, truncated, answer: row.answer };
    } catch (error) {
      if (!request.signal?.aborted && !signal.aborted) {
        this.failure ??= { error };
        abort(error);
      }
      throw error;
    }
  }

  /** A turn that was drawn for this prompt and not asked for yet. */
  #claim(sample: number, prompt: Int32Array): Row | undefined {
    const rows = this.#rows[sample]!;
    const row = rows.find((one) => !one.isClaimed && isPrompt(prompt, rows, one));
    if (row) row.isClaimed = true;
    return row;
  }

  /** Once all samples have asked for something, or ended, the most common first prompt is drawn for all that asked for it. */
  #arrive(sample: number, ask: Draw | null): void {
    if (this.#parts.recorded || this.#first.has(sample)) return;
    this.#first.set(sample, ask);
    if (this.#first.size === this.#parts.samples) this.#begin(this.#drawFirst());
  }

  async #drawFirst(): Promise<Begun> {
    const { place, task, samples, temperature, record } = this.#parts;
    const asks = Array.from({ length: samples }, (_, sample) => this.#first.get(sample) ?? undefined);
    const common = mostCommon(asks.filter((ask) => ask !== undefined));
    const askers = asks.flatMap((ask, sample) => (ask && common && isEqual(ask.prompt, common.prompt) ? [sample] : []));
    const prompt = common?.prompt ?? task.prompt;
    const seed = this.#parts.seedFor(place, task);
    const start = Date.now();
    const { version } = await this.#open();
    const drawn = common ? await this.#request({ ...common, samples: askers.length, seed }) : undefined;
    const answers = asks.map((_, sample) => drawn?.answers[askers.indexOf(sample)]);
    const tokens = concat(
      Int32Array,
      answers.map((answer) => answer?.tokens ?? new Int32Array()),
    );
    const logprobs = concat(
      Float32Array,
      answers.map((answer) => answer?.logprobs ?? new Float32Array()),
    );
    const end = this.#ended();
    const sampled = {
      type: "group-sampled" as const,
      ...place,
      policy: version,
      ...describeTask(task),
      seed: seed ?? null,
      temperature,
      promptTokens: drawn ? prompt.length : 0,
      cachedTokens: Math.min(drawn?.cachedTokens ?? 0, prompt.length),
      samples: answers.map((answer) =>
        answer
          ? { tokens: answer.tokens.length, truncated: answer.truncated, ...textsOf(answer.answer) }
          : { tokens: 0, truncated: false, text: "" },
      ),
      start,
      end,
    };
    await record(sampled, { prompt, tokens, logprobs }, [tokens, logprobs]);
    for (const [sample, answer] of answers.entries())
      if (answer) {
        const row = { turn: 0, parent: null, context: prompt, isClaimed: false };
        this.#rows[sample]!.push({ ...answer, ...behind(prompt, answer.tokens, answer.logprobs), ...row });
      }
    return { sampled, prompt };
  }

  /** A turn by itself. Its seed follows from what is asked, not from when. */
  async #drawOne(sample: number, request: Draw): Promise<Row> {
    const { place, record } = this.#parts;
    const { prompt, parent, context, added, rewritten } = request;
    const rows = this.#rows[sample]!;
    const { sampled } = await this.begun;
    const name = createHash("sha256").update(new Uint8Array(prompt.buffer, prompt.byteOffset, prompt.byteLength));
    const before = rows.filter((row) => isPrompt(prompt, rows, row)).length;
    const seed =
      sampled.seed === null ? undefined : new Random("turn", sampled.seed, sample, name.digest("hex"), before).uint32();
    const turn = 1 + rows.reduce((last, row) => Math.max(last, row.turn), 0);
    const row: Row = {
      turn,
      parent,
      context,
      tokens: new Int32Array(),
      logprobs: new Float32Array(),
      isClaimed: true,
      truncated: false,
      answer: undefined,
    };
    // Its number is taken before anything is waited for: an episode may ask for several turns at once.
    rows.push(row);
    const start = Date.now();
    try {
      const { answers, cachedTokens } = await this.#request({
        ...request,
        samples: 1,
        seed,
        turn: `${sample} ${turn}`,
      });
      const { version } = await this.#open();
      Object.assign(row, answers[0]!);
      await record(
        {
          type: "turn-sampled",
          ...place,
          sample,
          turn,
          parent,
          policy: version,
          seed: seed ?? null,
          promptTokens: prompt.length,
          cachedTokens: Math.min(cachedTokens, prompt.length),
          added: added.map(({ role, content }) => ({ role, content: content.slice(0, maxResponseCharacters) })),
          ...(rewritten !== undefined && { rewritten }),
          tokens: row.tokens.length,
          truncated: row.truncated,
          ...textsOf(row.answer!),
          start,
          end: this.#ended(),
        },
        { context, tokens: row.tokens, logprobs: row.logprobs },
      );
      return row;
    } catch (error) {
      rows.splice(rows.indexOf(row), 1);
      throw error;
    }
  }

  async #request(request: Draw & { samples: number; seed: number | undefined; turn?: string }) {
    const { prompt, maxTokens, tools, samples, seed, turn, signal: own } = request;
    const { place, renderer, temperature, note, sampling, signal } = this.#parts;
    const { sampler } = await this.#open();
    const asked = { samples, promptTokens: prompt.length, maxTokens };
    note?.({ type: "group-requested", ...place, ...asked, ...(turn !== undefined && { turn }) });
    sampling?.(1);
    try {
      const samplingParams = { maxTokens, temperature, stop: renderer.stop, seed };
      const ends = turn === undefined || !own ? signal : AbortSignal.any([signal, own]);
      const response = await sampler.sample({ prompt, numSamples: samples, samplingParams, signal: ends });
      return {
        answers: answersOf(response.sequences, samples, renderer, tools),
        cachedTokens: response.promptCacheHitTokens,
      };
    } finally {
      sampling?.(-1);
    }
  }

  #open(): Promise<OpenPolicy> {
    this.#opened ??= this.#parts.policy.open();
    return this.#opened;
  }

  #ended(): number {
    this.sampledUntil = Math.max(this.sampledUntil, Date.now());
    return this.sampledUntil;
  }
}

function answersOf(
  sequences: readonly { tokens: Int32Array; logprobs?: Float32Array | undefined; stopReason: string }[],
  samples: number,
  renderer: Renderer,
  tools: Draw["tools"],
) {
  if (sequences.length !== samples)
    throw new RolloutError(
      "rl/sample-count",
      `The server returned ${sequences.length} samples where ${samples} were asked for. Update the server.`,
    );
  return sequences.map(({ tokens, logprobs, stopReason }) => {
    if (!logprobs)
      throw new RolloutError("rl/logprob-count", "The server returned samples without logprobs; training needs them.");
    const { message, reasoningOpen = false } = renderer.parseResponse(tokens, tools ? { tools } : {});
    return { tokens, logprobs, truncated: stopReason === "length" || reasoningOpen, answer: message };
  });
}

/** What an answer says, for people. */
function textsOf({ content, toolCalls = [] }: Message): { text: string; calls?: string[] } {
  const cut = (text: string) => text.slice(0, maxResponseCharacters);
  const calls = toolCalls.map(({ name, arguments: given }) =>
    cut(`${name}(${typeof given === "string" ? given : JSON.stringify(given)})`),
  );
  return { text: cut(content), ...(calls.length > 0 && { calls }) };
}
