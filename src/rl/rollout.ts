// One group under one policy version: sample G answers to a problem, or play G episodes of several turns, then judge each. It knows no
// queue and no timer; what it did is in the journal before it returns, and what the journal already has is not done again.
import { Random } from "../core/random.ts";
import { untilAborted } from "../core/wait.ts";
import type { Renderer } from "../renderers/index.ts";
import type { Arrays, EventOf, Grade, NewEvent } from "../runs/events.ts";
import type { Period } from "../runs/timing.ts";
import { linkedController } from "./cancellation.ts";
import { completionOf } from "./completion.ts";
import type { TrainConfig } from "./config.ts";
import type { Conversation, Limits } from "./conversation.ts";
import type { Sequence } from "./datums.ts";
import { GroupDraws } from "./group-draws.ts";
import type { Policy } from "./policies.ts";
import type { RememberedGroup } from "./remembered-groups.ts";
import type { Task } from "./tasks.ts";

/** What a judge sees. */
export interface Answer {
  tokens: Int32Array;
  /** The sampler's log-probability of each token. */
  logprobs: Float32Array;
  /** Without reasoning and control tokens. */
  text: string;
  truncated: boolean;
}

/** A judged answer. Its text is written down and let go: a batch of long answers is large. */
export interface Completion extends Omit<Answer, "text"> {
  /**
   * As training takes it. The model's own tokens in all of them together are those of the answer, each once; an answer to a prompt is one
   * sequence, and `tokens` and `logprobs` are the ends of its arrays.
   */
  sequences: readonly Sequence[];
  grade: Grade;
}

/** One problem's completions, in the order of the samples. */
export interface Group extends Pick<Place, "batch" | "group"> {
  problem: string;
  source: string;
  /** Position in the endless order of the data. */
  datasetIndex: number;
  prompt: Int32Array;
  /** The policy version that answered. */
  policy: number;
  /** True: its answer was given and not sampled. */
  given?: boolean;
  completions: Completion[];
  /** When it was sampled, and when its answers were judged: milliseconds since the epoch. */
  sampled: Period;
  judged: Period;
}

/** Where a group stands in the run. */
export interface Place {
  phase: "train" | "eval";
  /** The batch; of an evaluation, the policy version it measures. */
  batch: number;
  group: number;
}

/** Rolls out one group. The pipeline and evaluations know nothing else of what happens inside. */
export type RollOut = (place: Place, task: Task, policy: Policy, signal: AbortSignal) => Promise<Group>;

/** Gives one answer its verdict and reward. */
export type Judge = (task: Task, answer: Answer, signal: AbortSignal, place: Place) => Promise<Grade>;

/** Makes what rolls out the groups of training, or of evaluations. */
export type RollOuts = (context: RolloutContext) => RollOut;

/** What the loop gives to what rolls out groups. */
export interface RolloutContext {
  /** Makes an event durable. Ownership of the arrays in `given` moves to the journal. */
  record(event: NewEvent, arrays?: Arrays, given?: readonly (Int32Array | Float32Array)[]): Promise<void>;
  /** Writes down what nothing waits for. */
  note?(event: NewEvent): void;
  /** What an earlier process left of a group. */
  recorded?(place: Place, task: Task): RememberedGroup | undefined;
  samples: number;
  temperature: number;
  /** Undefined leaves randomness to the server. */
  seedFor(place: Place, task: Task): number | undefined;
  /** What a verdict becomes by the length of its answer; of several answers, of the longest. */
  shape?(grade: Grade, tokens: number): Grade;
  /** Called when a request for samples goes out, and when it has ended. */
  sampling?(change: 1 | -1): void;
}

/**
 * What a phase asks of the policy. An evaluation's seeds are the same at every step, so that two differ by the policy alone; without
 * `fixedSeeds` the server draws its own.
 */
export function drawsOf(
  phase: Place["phase"],
  config: Pick<
    TrainConfig,
    "completions_per_prompt" | "temperature" | "eval_num_samples" | "eval_temperature" | "seed"
  >,
  fixedSeeds = true,
): Pick<RolloutContext, "samples" | "temperature" | "seedFor"> {
  const { seed } = config;
  const seeded = (random: Random) => (fixedSeeds ? random.uint32() : undefined);
  if (phase === "eval")
    return {
      samples: config.eval_num_samples,
      temperature: config.eval_temperature,
      seedFor: (_, task) => seeded(new Random("evaluation", seed, task.id)),
    };
  return {
    samples: config.completions_per_prompt,
    temperature: config.temperature,
    seedFor: ({ batch, group }) => seeded(new Random("sample", seed, batch, group)),
  };
}

/** One sample of a group, to be played. */
export interface Seat {
  place: Place;
  task: Task;
  sample: number;
  /** With the policy that the group began with. */
  conversation: Conversation;
  signal: AbortSignal;
  /** When judging began; set by who plays. */
  judgedFrom: number | undefined;
  /** Starts the episode over; where it asks the same, it gets what was drawn before. */
  restart(): Conversation;
  /** Turns drawn by an earlier process, or before a restart, that were not asked for this time. */
  diverged(): number;
  /** Runs a side effect, unless its result is written down already. */
  once<Result>(key: string, effect: () => Result | Promise<Result>): Promise<Result>;
}

/** A played sample; `ending` is for `compare`. */
export interface Played<Ending = unknown> {
  grade: Grade;
  ending?: Ending;
}

/** What happens with one sample: the policy is asked once or often, and in the end there is a verdict. */
export interface Player<Ending = unknown> {
  play(seat: Seat): Promise<Played<Ending>>;
  /** Judges what was played of a group, together. */
  compare?(task: Task, played: readonly Played<Ending>[], signal: AbortSignal, place: Place): Promise<Grade[]>;
}

/** How groups are rolled out: by whom, in which format, within which limits. */
export interface RolloutFormat {
  renderer: Renderer;
  /** Needed by players that ask more than once. */
  limits?: Limits & { eval_max_tokens: number };
}

/** The usual group: G samples of one prompt, each judged as soon as all are there. */
export const sampleAndJudge = (renderer: Renderer, judge: Judge): RollOuts =>
  playEpisodes({ renderer }, { play: (seat) => judgeOneAnswer(seat, judge) });

async function judgeOneAnswer(seat: Seat, judge: Judge): Promise<Played> {
  const { task, conversation, place, signal } = seat;
  const { answer, ...turn } = await conversation.askTokens(task.prompt, task.maxTokens, signal);
  // A judge may be a user's function: one that never returns must not keep the run from ending.
  signal.throwIfAborted();
  seat.judgedFrom = Date.now();
  return { grade: await untilAborted(judge(task, { ...turn, text: answer.content }, signal, place), signal) };
}

/** G samples of one problem, each played to its end. */
export const playEpisodes =
  <Ending>(format: RolloutFormat, player: Player<Ending>): RollOuts =>
  (context) =>
  async (place, task, policy, signal) => {
    // One controller a group: the first failure stops the siblings.
    const own = linkedController(signal);
    const recorded = context.recorded?.(place, task);
    const parts = { ...context, ...format, place, task, policy, recorded };
    const draws = new GroupDraws({ ...parts, signal: own.signal, abort: own.abort });
    try {
      const verdicts = await playAll(draws, player, { ...parts, signal: own.signal });
      const { sampled, prompt } = await untilAborted(draws.begun, own.signal);
      const completions = verdicts.map(({ grade }, sample) => completionOf(draws.rowsOf(sample), grade));
      return groupOf(sampled, { prompt, completions, verdicts, sampledUntil: draws.sampledUntil });
    } catch (error) {
      own.abort(error);
      // What failed first is the cause: an environment may have made something else of it.
      throw draws.failure ? draws.failure.error : error;
    } finally {
      own.unlink();
    }
  };

type Verdict = Period & { grade: Grade };

async function playAll<Ending>(
  draws: GroupDraws,
  player: Player<Ending>,
  {
    place,
    task,
    recorded,
    signal,
  }: Pick<Seat, "place" | "task" | "signal"> & { recorded: RememberedGroup | undefined },
): Promise<Verdict[]> {
  const known = recorded?.graded ?? [];
  const samples = Array.from({ length: draws.samples }, (_, sample) => sample);
  const isKnown = samples.every((sample) => known[sample]);
  const play = async (sample: number): Promise<Verdict & Played<Ending>> => {
    const verdict = known[sample];
    // Where a group is judged together, it is played together.
    if (verdict && (isKnown || !player.compare)) {
      draws.isOver(sample);
      return verdict;
    }
    const seat = draws.seatOf(sample);
    const played = await player.play(seat).finally(() => draws.isOver(sample));
    signal.throwIfAborted();
    const start = seat.judgedFrom ?? Date.now();
    if (player.compare) return { ...played, start, end: Date.now() };
    // Nothing of a group is written down before its first answers are.
    await untilAborted(draws.begun, signal);
    return draws.judged(sample, played.grade, start);
  };
  const played = await Promise.all(samples.map(play));
  if (!player.compare || isKnown) return played;
  const start = Date.now();
  const grades = await untilAborted(player.compare(task, played, signal, place), signal);
  return Promise.all(grades.map((grade, sample) => draws.judged(sample, grade, start)));
}

/** What a group's event says of it. */
export type GroupFacts = Pick<
  EventOf<"group-sampled">,
  "batch" | "group" | "problem" | "source" | "datasetIndex" | "policy" | "given" | "start"
>;

/** A group by its event, its answers and when their verdicts came; `sampledUntil`: when the last answer did. */
export function groupOf(
  { batch, group, problem, source, datasetIndex, policy, given, start }: GroupFacts,
  parts: Pick<Group, "prompt" | "completions"> & { verdicts: readonly Period[]; sampledUntil: number },
): Group {
  const { prompt, completions, verdicts, sampledUntil } = parts;
  return {
    batch,
    group,
    problem,
    source,
    datasetIndex,
    prompt,
    policy,
    ...(given && { given }),
    completions,
    sampled: { start, end: sampledUntil },
    judged: {
      start: verdicts.reduce((first, verdict) => Math.min(first, verdict.start), Number.POSITIVE_INFINITY),
      end: verdicts.reduce((last, verdict) => Math.max(last, verdict.end), sampledUntil),
    },
  };
}
