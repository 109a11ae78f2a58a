// Plays one episode of an environment: runs its function with a conversation, under limits, and makes a grade of how it ended. An outage
// of the environment's is begun again, then left out; whatever else it throws is left out, counted and quoted, and is never a reward.

import { messageOf } from "../../core/errors.ts";
import { Random } from "../../core/random.ts";
import { sleep, untilAborted } from "../../core/wait.ts";
import type { EndpointServer } from "../../openai/index.ts";
import type { Grade } from "../../runs/events.ts";
import { type LinkedController, linkedController } from "../cancellation.ts";
import type { TrainConfig } from "../config.ts";
import { type Conversation, EpisodeOver, messagesTo } from "../conversation.ts";
import { messagesOf, type TrainingProblem } from "../own-problems.ts";
import { TrainError } from "../resume.ts";
import type { Played, Player, Seat } from "../rollout.ts";
import type { Task } from "../tasks.ts";
import { Chat } from "./chat.ts";
import { EpisodeEndpoint } from "./endpoint.ts";
import { type Ending, type Environment, type Episode, maxTurnsOf, type ToolEpisode } from "./environment.ts";
import { EpisodeState } from "./episode-state.ts";
import { withPlace } from "./place.ts";
import { isUnavailable, readCommonTools, readTools, type Toolbox, type ToolSet } from "./tools.ts";
import { gradeOf, NoVerdict, type Reward, readVerdict, ungraded } from "./verdict.ts";

/** What episodes may use of the run. */
export interface EnvironmentServices<Problem extends TrainingProblem = TrainingProblem> {
  /** What judges and runs programs for one of them. */
  code(seat: Seat): Pick<Episode<Problem>, "grade" | "tryExamples" | "python">;
  /** Where agents reach the policy. */
  endpoints: EndpointServer;
}

type PlayConfig = Pick<
  TrainConfig,
  "max_turns" | "max_tool_calls" | "episode_timeout" | "seed" | "model_name" | "temperature" | "eval_temperature"
>;

/** Times that an episode is begun, where its environment says it is unavailable. */
const maxAttempts = 3;
const pauseMs = 1000;

/** Plays the episodes of an environment. */
export function playerOf<Problem extends TrainingProblem>(
  environment: Environment<Problem>,
  config: PlayConfig,
  services: EnvironmentServices<Problem>,
): Player<Ending<Problem>> {
  const play = (seat: Seat) => new Play(environment, config, services, seat).run();
  if (!environment.rewardGroup) return { play };
  const { rewardGroup } = environment;
  return { play, compare: (task, played, signal) => judgeTogether(rewardGroup, task, played, signal) };
}

async function judgeTogether<Problem extends TrainingProblem>(
  rewardGroup: NonNullable<Environment<Problem>["rewardGroup"]>,
  task: Task,
  played: readonly Played<Ending<Problem>>[],
  signal: AbortSignal,
): Promise<Grade[]> {
  const endings = played.flatMap(({ ending }) => (ending ? [ending] : []));
  let verdicts: readonly unknown[];
  try {
    verdicts = endings.length > 0 ? await rewardGroup(endings) : [];
  } catch (error) {
    signal.throwIfAborted();
    return played.map(({ grade }) => ({ ...ungraded(messageOf(error), 0), ...episodeOf(grade) }));
  }
  if (!Array.isArray(verdicts) || verdicts.length !== endings.length)
    throw new TrainError(
      "rl/bad-reward",
      `rewardGroup gave ${Array.isArray(verdicts) ? `${verdicts.length} verdicts` : String(verdicts)} for ${endings.length} endings of problem ${JSON.stringify(task.id)}. Return one for each, in their order.`,
    );
  let next = 0;
  return played.map(({ grade, ending }) => {
    if (!ending) return grade;
    const verdict = readVerdict(verdicts[next++], "rewardGroup", task.id);
    const more = (grade.episode?.rewards ?? []).reduce((sum, reward) => sum + reward, 0);
    const judged = { ...gradeOf(verdict, grade.wallMs, more), ...episodeOf(grade) };
    if (judged.episode && verdict.metrics)
      judged.episode = { ...judged.episode, metrics: { ...judged.episode.metrics, ...verdict.metrics } };
    return judged;
  });
}

const episodeOf = ({ episode }: Grade): Pick<Grade, "episode"> => (episode ? { episode } : {});

class Play<Problem extends TrainingProblem> {
  readonly #environment: Environment<Problem>;
  readonly #config: PlayConfig;
  readonly #services: EnvironmentServices<Problem>;
  readonly #seat: Seat;
  readonly #started = performance.now();
  readonly #own: LinkedController;
  #state: EpisodeState;
  #trouble: Error | undefined;

  constructor(
    environment: Environment<Problem>,
    config: PlayConfig,
    services: EnvironmentServices<Problem>,
    seat: Seat,
  ) {
    this.#environment = environment;
    this.#config = config;
    this.#services = services;
    this.#seat = seat;
    this.#own = linkedController(seat.signal);
    this.#state = this.#newState(seat.conversation);
  }

  async run(): Promise<Played<Ending<Problem>>> {
    const { signal } = this.#seat;
    const own = this.#own;
    const timeout = setTimeout(() => own.abort(new EpisodeOver("timeout")), 1000 * this.#config.episode_timeout);
    try {
      for (let attempt = 1; ; attempt++) {
        try {
          const played = await untilAborted(this.#attempt(), own.signal);
          if (this.#trouble) throw this.#trouble;
          return played;
        } catch (caught) {
          signal.throwIfAborted();
          const error = this.#trouble ?? caught;
          if (own.signal.aborted)
            return this.#leftOut("timeout", `the episode took longer than ${this.#config.episode_timeout} s`);
          if (error instanceof TrainError) throw error;
          if (error instanceof NoVerdict) return this.#leftOut(error.status, error.message);
          if (!isUnavailable(error)) return this.#leftOut("error", withPlace(error));
          if (attempt === maxAttempts) return this.#leftOut("unavailable", messageOf(error));
        }
        await sleep(pauseMs * 4 ** (attempt - 1), own.signal).catch(() => {});
        // From the start, with nothing of what was before but what was drawn and done.
        const { sampledMs } = this.#state;
        this.#state = Object.assign(this.#newState(this.#seat.restart()), { sampledMs });
      }
    } finally {
      clearTimeout(timeout);
      own.abort(new EpisodeOver(this.#state.stop));
      own.unlink();
    }
  }

  #newState(conversation: Conversation): EpisodeState {
    return new EpisodeState(conversation, {
      maxTurns: maxTurnsOf(this.#environment, this.#config),
      maxToolCalls: this.#config.max_tool_calls || (this.#environment.maxToolCalls ?? 30),
      signal: this.#own.signal,
    });
  }

  async #attempt(): Promise<Played<Ending<Problem>>> {
    const { run, reward, rewardGroup } = this.#environment;
    const { task } = this.#seat;
    const { signal } = this.#own;
    const state = this.#state;
    const episode = this.#episode(state);
    const tools = this.#guarded(await this.#toolsOf(episode));
    const chat = new Chat(state, tools, messagesOf(episode.problem));
    let given: unknown;
    if (run) given = await this.#run(run, state, chat, episode);
    else for await (const _ of chat);
    signal.throwIfAborted();
    this.#seat.judgedFrom ??= Date.now();
    const text = typeof given === "string" && (reward || rewardGroup) ? given : undefined;
    if (text !== undefined) given = undefined;
    const ending = this.#ending(chat, text);
    if (rewardGroup) return { grade: this.#grade({ reward: 0 }), ending };
    if (given === undefined && reward) given = await reward(ending);
    // What was given turn by turn is a verdict too.
    if (given === undefined && (state.rewards.size > 0 || state.stop !== "done")) given = 0;
    return { grade: this.#grade(readVerdict(given, run ? "run" : "reward", task.id)), ending };
  }

  async #run(
    run: NonNullable<Environment<Problem>["run"]>,
    state: EpisodeState,
    chat: Chat,
    episode: ToolEpisode<Problem>,
  ): Promise<unknown> {
    const { model_name: model, temperature, eval_temperature } = this.#config;
    const isEvaluation = this.#seat.place.phase === "eval";
    const served = { model, temperature: isEvaluation ? eval_temperature : temperature };
    const endpoint = await EpisodeEndpoint.open(this.#services.endpoints, state, served);
    try {
      return await run({ ...episode, chat, endpoint: endpoint.address });
    } catch (error) {
      // A limit that the function did not look at is an end like any other.
      if (error instanceof EpisodeOver && error.stop !== "timeout") return undefined;
      // An agent ends in its own way where the endpoint says that a limit is reached.
      if (endpoint.isOver) return undefined;
      throw error;
    } finally {
      endpoint.close();
    }
  }

  #episode({ limits, log }: EpisodeState): ToolEpisode<Problem> {
    const random = new Random("episode", ...this.#seed());
    const { grade, tryExamples, python } = this.#services.code(this.#seat);
    return {
      problem: this.#seat.task.problem as Problem,
      signal: limits.signal,
      random: () => random.float(),
      once: this.#seat.once,
      log: (key, value) => log.write(key, value),
      grade: this.#guarded(grade),
      tryExamples: this.#guarded(tryExamples),
      python: this.#guarded(python),
    };
  }

  /** What gives the tools as they are now: an episode's own may change on the way. */
  async #toolsOf(episode: ToolEpisode<Problem>): Promise<() => Promise<Toolbox | undefined>> {
    const { tools } = this.#environment;
    if (typeof tools !== "function")
      return () => (tools ? readCommonTools(tools as ToolSet) : Promise.resolve(undefined));
    const own = await tools(episode.problem, episode);
    return () => readTools(own);
  }

  /** Remembers an error of the run itself, even where the environment catches it. */
  #guarded<Given extends unknown[], Result>(call: (...given: Given) => Promise<Result>) {
    return async (...given: Given): Promise<Result> => {
      try {
        return await call(...given);
      } catch (error) {
        if (error instanceof TrainError || error instanceof NoVerdict) this.#trouble ??= error;
        throw error;
      }
    };
  }

  #seed(): (string | number)[] {
    const { place, task, sample } = this.#seat;
    const { seed } = this.#config;
    // An evaluation plays the same episodes of every policy.
    return place.phase === "eval" ? [seed, "eval", task.id, sample] : [seed, place.batch, place.group, sample];
  }

  #ending(chat: Chat, text: string | undefined): Ending<Problem> {
    const { delivered, stop, limits } = this.#state;
    const last = delivered.at(-1);
    return {
      problem: this.#seat.task.problem as Problem,
      text: text ?? last?.answer.content ?? "",
      tokens: last?.tokens ?? new Int32Array(),
      truncated: last?.truncated ?? false,
      messages: chat.isBegun || !last ? chat.messages : messagesTo(last),
      stop,
      turns: delivered.length,
      signal: limits.signal,
    };
  }

  /** An episode that is left out of baseline and loss. */
  #leftOut(status: string, message: string): Played<Ending<Problem>> {
    this.#state.stop = status === "timeout" ? "timeout" : "stopped";
    const grade = ungraded(message, performance.now() - this.#started, status);
    return { grade: { ...grade, episode: this.#record(grade.wallMs) } };
  }

  #grade(verdict: Reward): Grade {
    const { sampledMs, rewards, conversation, log } = this.#state;
    const wallMs = performance.now() - this.#started - sampledMs;
    const more = [...rewards.values()].reduce((sum, reward) => sum + reward, 0);
    const grade = gradeOf(verdict, wallMs, this.#environment.rewardGroup ? 0 : more);
    const { turns } = conversation;
    const isOneAnswer = turns.length === 1 && turns[0]!.index === 0 && !this.#environment.tools;
    // An answer and its reward have no more to record.
    if (isOneAnswer && log.isEmpty && !verdict.metrics && !this.#environment.run) return grade;
    return { ...grade, episode: this.#record(wallMs, verdict.metrics) };
  }

  #record(wallMs: number, metrics: Readonly<Record<string, number>> = {}): NonNullable<Grade["episode"]> {
    const { delivered, stop, rewards, toolCalls, toolErrors, malformed, log } = this.#state;
    return {
      stop,
      turns: delivered.map(({ index }) => index),
      rewards: rewards.size > 0 ? delivered.map((turn) => rewards.get(turn) ?? 0) : [],
      contextTokens: delivered.slice(1).reduce((sum, { context }) => sum + context.length, 0),
      rewrites: delivered.flatMap(({ rewritten }) => rewritten ?? []),
      toolCalls,
      toolErrors,
      malformed,
      diverged: this.#seat.diverged(),
      ownMs: Math.max(0, wallMs),
      metrics: { ...log.figures, ...metrics },
      log: log.texts,
    };
  }
}
