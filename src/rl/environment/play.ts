// Plays one episode of an environment: runs its function with a conversation, under limits, and makes a grade of how it ended. An outage
// of the environment's is begun again, then left out; whatever else it throws is left out, counted and quoted, and is never a reward.

import { messageOf } from "../../core/errors.ts";
import { Random } from "../../core/random.ts";
import { sleep, untilAborted } from "../../core/wait.ts";
import type { EndpointServer } from "../../openai/index.ts";
import type { Grade, StopReason } from "../../runs/events.ts";
import { linkedController } from "../cancellation.ts";
import type { TrainConfig } from "../config.ts";
import { type Conversation, EpisodeOver, messagesTo, type Turn } from "../conversation.ts";
import { messagesOf, type TrainingProblem } from "../own-problems.ts";
import { TrainError } from "../resume.ts";
import type { Played, Player, Seat } from "../rollout.ts";
import type { Task } from "../tasks.ts";
import { Chat } from "./chat.ts";
import { EpisodeEndpoint } from "./endpoint.ts";
import { type Ending, type Environment, type Episode, maxTurnsOf, type ToolEpisode } from "./environment.ts";
import { EpisodeLog } from "./episode-log.ts";
import { withPlace } from "./place.ts";
import { isUnavailable, readCommonTools, readTools, type Toolbox, type ToolSet } from "./tools.ts";
import { gradeOf, NoVerdict, type Reward, readVerdict, ungraded } from "./verdict.ts";

/** What episodes may use of the run. */
export interface EnvironmentServices<Problem extends TrainingProblem = TrainingProblem> {
  grade(seat: Seat): Episode<Problem>["grade"];
  tryExamples(seat: Seat): Episode<Problem>["tryExamples"];
  python(seat: Seat): Episode<Problem>["python"];
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
  const play = (seat: Seat) => new Play(environment, config, services, seat).toItsEnd();
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
  readonly #problem: Problem;
  readonly #started = performance.now();
  readonly #log = new EpisodeLog();
  readonly #counts = { toolCalls: 0, toolErrors: 0, malformed: 0, sampledMs: 0 };
  readonly #rewards = new Map<Turn, number>();
  #conversation: Conversation;
  #stop: StopReason = "done";
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
    this.#problem = seat.task.problem as Problem;
    this.#conversation = seat.conversation;
  }

  async toItsEnd(): Promise<Played<Ending<Problem>>> {
    const { signal } = this.#seat;
    const own = linkedController(signal);
    const timeout = setTimeout(() => own.abort(new EpisodeOver("timeout")), 1000 * this.#config.episode_timeout);
    try {
      for (let attempt = 1; ; attempt++) {
        try {
          const played = await untilAborted(this.#once(own.signal), own.signal);
          if (this.#trouble) throw this.#trouble;
          return played;
        } catch (caught) {
          signal.throwIfAborted();
          const error = this.#trouble ?? caught;
          if (own.signal.aborted)
            return this.#left("timeout", `the episode took longer than ${this.#config.episode_timeout} s`);
          if (error instanceof TrainError) throw error;
          if (error instanceof NoVerdict) return this.#left(error.status, error.message);
          if (!isUnavailable(error)) return this.#left("error", withPlace(error));
          if (attempt === maxAttempts) return this.#left("unavailable", messageOf(error));
        }
        await sleep(pauseMs * 4 ** (attempt - 1), own.signal).catch(() => {});
        this.#begin();
      }
    } finally {
      clearTimeout(timeout);
      own.abort(new EpisodeOver(this.#stop));
      own.unlink();
    }
  }

  /** From the start, with nothing of what was before but what was drawn and done. */
  #begin(): void {
    this.#conversation = this.#seat.restart();
    this.#log.clear();
    this.#rewards.clear();
    this.#stop = "done";
    Object.assign(this.#counts, { toolCalls: 0, toolErrors: 0, malformed: 0 });
  }

  async #once(signal: AbortSignal): Promise<Played<Ending<Problem>>> {
    const { run, reward, rewardGroup } = this.#environment;
    const { task } = this.#seat;
    const episode = this.#episode(signal);
    const chat = await this.#newChat(episode);
    let given: unknown;
    if (run) given = await this.#run(run, chat, episode);
    else for await (const _ of chat);
    signal.throwIfAborted();
    this.#seat.judgedFrom ??= Date.now();
    const said = typeof given === "string" && (reward || rewardGroup) ? given : undefined;
    if (said !== undefined) given = undefined;
    const ending = this.#ending(chat, signal, said);
    if (rewardGroup) return { grade: this.#grade({ reward: 0 }), ending };
    if (given === undefined && reward) given = await reward(ending);
    // What was given turn by turn is a verdict too.
    if (given === undefined && (this.#rewards.size > 0 || this.#stop !== "done")) given = 0;
    return { grade: this.#grade(readVerdict(given, run ? "run" : "reward", task.id)), ending };
  }

  async #run(
    run: NonNullable<Environment<Problem>["run"]>,
    chat: Chat,
    episode: ToolEpisode<Problem>,
  ): Promise<unknown> {
    const endpoint = await this.#newEndpoint(episode.signal);
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

  #episode(signal: AbortSignal): ToolEpisode<Problem> {
    const random = new Random("episode", ...this.#seed());
    return {
      problem: this.#problem,
      signal,
      random: () => random.float(),
      once: this.#seat.once,
      log: (key, value) => this.#log.write(key, value),
      grade: this.#kept(this.#services.grade(this.#seat)),
      tryExamples: this.#kept(this.#services.tryExamples(this.#seat)),
      python: this.#kept(this.#services.python(this.#seat)),
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

  /** What is the run's own trouble stays that, whatever the environment makes of it. */
  #kept<Given extends unknown[], Result>(call: (...given: Given) => Promise<Result>) {
    return async (...given: Given): Promise<Result> => {
      try {
        return await call(...given);
      } catch (error) {
        if (error instanceof TrainError || error instanceof NoVerdict) this.#trouble ??= error;
        throw error;
      }
    };
  }

  #newEndpoint(signal: AbortSignal): Promise<EpisodeEndpoint> {
    const { model_name: model, temperature, eval_temperature } = this.#config;
    const isEvaluation = this.#seat.place.phase === "eval";
    return EpisodeEndpoint.open(this.#services.endpoints, {
      conversation: this.#conversation,
      model,
      temperature: isEvaluation ? eval_temperature : temperature,
      maxTurns: maxTurnsOf(this.#environment, this.#config),
      signal,
      counts: this.#counts,
      note: (key, value) => this.#log.write(key, value),
      stopped: (reason) => {
        this.#stop = reason;
      },
    });
  }

  #seed(): (string | number)[] {
    const { place, task, sample } = this.#seat;
    const { seed } = this.#config;
    // An evaluation plays the same episodes of every policy.
    return place.phase === "eval" ? [seed, "eval", task.id, sample] : [seed, place.batch, place.group, sample];
  }

  async #newChat(episode: ToolEpisode<Problem>): Promise<Chat> {
    const environment = this.#environment;
    const config = this.#config;
    return new Chat(
      {
        conversation: this.#conversation,
        tools: this.#kept(await this.#toolsOf(episode)),
        maxTurns: maxTurnsOf(environment, config),
        maxToolCalls: config.max_tool_calls || (environment.maxToolCalls ?? 30),
        signal: episode.signal,
        counts: this.#counts,
        rewards: this.#rewards,
        stopped: (reason) => {
          this.#stop = reason;
        },
      },
      messagesOf(this.#problem),
    );
  }

  #ending(chat: Chat, signal: AbortSignal, said: string | undefined): Ending<Problem> {
    const turns = this.#conversation.turns.filter(({ isDelivered }) => isDelivered);
    const last = turns.at(-1);
    return {
      problem: this.#problem,
      text: said ?? last?.answer.content ?? "",
      tokens: last?.tokens ?? new Int32Array(),
      truncated: last?.truncated ?? false,
      messages: chat.isBegun || !last ? chat.messages : messagesTo(last),
      stop: this.#stop,
      turns: turns.length,
      signal,
    };
  }

  /** An episode that is left out of baseline and loss. */
  #left(status: string, message: string): Played<Ending<Problem>> {
    this.#stop = status === "timeout" ? "timeout" : "stopped";
    const grade = ungraded(message, performance.now() - this.#started, status);
    return { grade: { ...grade, episode: this.#record(grade.wallMs) } };
  }

  #grade(verdict: Reward): Grade {
    const wallMs = performance.now() - this.#started - this.#counts.sampledMs;
    const more = [...this.#rewards.values()].reduce((sum, reward) => sum + reward, 0);
    const grade = gradeOf(verdict, wallMs, this.#environment.rewardGroup ? 0 : more);
    const { turns } = this.#conversation;
    const isOneAnswer = turns.length === 1 && turns[0]!.index === 0 && !this.#environment.tools;
    // Nothing else is to be said of an answer and its reward.
    if (isOneAnswer && this.#log.isEmpty && !verdict.metrics && !this.#environment.run) return grade;
    return { ...grade, episode: this.#record(wallMs, verdict.metrics) };
  }

  #record(wallMs: number, metrics: Readonly<Record<string, number>> = {}): NonNullable<Grade["episode"]> {
    const delivered = this.#conversation.turns.filter(({ isDelivered }) => isDelivered);
    const { toolCalls, toolErrors, malformed } = this.#counts;
    const first = delivered[0];
    return {
      stop: this.#stop,
      turns: delivered.map(({ index }) => index),
      rewards: this.#rewards.size > 0 ? delivered.map((turn) => this.#rewards.get(turn) ?? 0) : [],
      contextTokens: delivered.reduce((sum, turn) => sum + (turn === first ? 0 : turn.context.length), 0),
      rewrites: delivered.flatMap(({ rewritten }) => (rewritten === undefined ? [] : [rewritten])),
      toolCalls,
      toolErrors,
      malformed,
      diverged: this.#seat.diverged(),
      ownMs: Math.max(0, wallMs),
      metrics: { ...this.#log.figures, ...metrics },
      log: this.#log.texts,
    };
  }
}
