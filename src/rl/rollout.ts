// One group under one policy version: sample G answers to a problem, then judge each. It knows no queue and no timer; what it did is
// in the journal before it returns, and what the journal already has is not done again.
import type { SamplingClient } from "../client/index.ts";
import { untilAborted } from "../client/wait.ts";
import type { Renderer } from "../renderers/index.ts";
import type { Arrays, Grade, NewEvent } from "../runs/events.ts";
import { maxQuestionCharacters, maxResponseCharacters, type RecordedGroup } from "../runs/rollouts.ts";
import { linkedController } from "./cancellation.ts";
import { joinTurns, RolloutError, type Sequence } from "./datums.ts";
import type { Policy } from "./policies.ts";
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

type SampledAnswer = Answer & Pick<Completion, "sequences">;

/** One problem's completions, in the order of the samples. */
export interface Group {
  problem: string;
  source: string;
  /** Position in the endless order of the data. */
  datasetIndex: number;
  prompt: Int32Array;
  /** The policy version that answered. */
  policy: number;
  completions: Completion[];
  /** When it was sampled, and when its answers were judged: milliseconds since the epoch. */
  sampled: Period;
  judged: Period;
}

export interface Period {
  start: number;
  end: number;
}

/** Where a group stands in the run. */
export interface Place {
  phase: "train" | "eval";
  /** The batch; of an evaluation, the policy version it measures. */
  batch: number;
  group: number;
}

/** What the journal has of a group, its tokens included unless they were thinned away. */
export interface RememberedGroup extends RecordedGroup {
  hasArrays: boolean;
  arrays(): Arrays;
}

/** Rolls out one group. The pipeline and evaluations know nothing else of what happens inside. */
export type RollOut = (place: Place, task: Task, policy: Policy, signal: AbortSignal) => Promise<Group>;

/** Gives one answer its verdict and reward. */
export type Judge = (task: Task, answer: Answer, signal: AbortSignal, place: Place) => Promise<Grade>;

/** Makes what rolls out the groups of training, or of evaluations. Another kind of group than `sampleAndJudge`'s stands in its place. */
export type RollOuts = (context: RolloutContext) => RollOut;

/** What the loop gives to what rolls out groups. */
export interface RolloutContext {
  /** Makes an event durable. Of the arrays, those in `given` are the journal's from then on. */
  record(event: NewEvent, arrays?: Arrays, given?: readonly (Int32Array | Float32Array)[]): Promise<void>;
  /** Writes down what nothing waits for. */
  note?(event: NewEvent): void;
  /** What an earlier process left of a group. */
  recorded?(place: Place, task: Task): RememberedGroup | undefined;
  samples: number;
  temperature: number;
  /** Undefined leaves randomness to the server. */
  seedFor(place: Place, task: Task): number | undefined;
  /** Called when a request for samples goes out, and when it has ended. */
  sampling?(change: 1 | -1): void;
}

interface RolloutParts extends RolloutContext {
  renderer: Renderer;
  judge: Judge;
}

/** The usual group: G samples of one prompt, each judged as soon as all are there. */
export const sampleAndJudge =
  (renderer: Renderer, judge: Judge): RollOuts =>
  (context) =>
    judgedSamples({ renderer, judge, ...context });

function judgedSamples(parts: RolloutParts): RollOut {
  return async (place, task, policy, signal) => {
    const recorded = parts.recorded?.(place, task);
    // One controller a group: the first failure stops the siblings.
    const own = linkedController(signal);
    try {
      const { answers, ...sampled } = recorded
        ? recall(recorded, parts.renderer)
        : await sampleGroup(place, task, policy, parts, own.signal);
      const graded = await Promise.all(
        answers.map(async (answer, sample) => {
          const known = recorded?.graded[sample];
          if (known) return known;
          const start = Date.now();
          // A judge may be anybody's function: one that never comes to an end must not keep the run from its own.
          own.signal.throwIfAborted();
          const grade = await untilAborted(parts.judge(task, answer, own.signal, place), own.signal);
          const verdict = { ...place, sample, grade, start, end: Date.now() };
          await parts.record({ type: "graded", ...verdict });
          return verdict;
        }),
      );
      return judged(sampled, answers, graded);
    } catch (error) {
      own.abort(error);
      throw error;
    } finally {
      own.unlink();
    }
  };
}

type SampledGroup = Omit<Group, "completions" | "judged"> & { answers: SampledAnswer[] };

/** Answers and their verdicts, put together. */
export function judged(
  sampled: Omit<Group, "completions" | "judged">,
  answers: readonly SampledAnswer[],
  graded: readonly { grade: Grade; start: number; end: number }[],
): Group {
  const { end } = sampled.sampled;
  return {
    ...sampled,
    completions: answers.map(({ text: _, ...answer }, sample) => ({ ...answer, grade: graded[sample]!.grade })),
    judged: {
      start: graded.reduce((first, { start }) => Math.min(first, start), Number.POSITIVE_INFINITY),
      end: graded.reduce((last, verdict) => Math.max(last, verdict.end), end),
    },
  };
}

async function sampleGroup(
  place: Place,
  task: Task,
  policy: Policy,
  parts: RolloutParts,
  signal: AbortSignal,
): Promise<SampledGroup> {
  const { sampler, version } = await policy.open();
  const seed = parts.seedFor(place, task);
  const start = Date.now();
  const promptTokens = task.prompt.length;
  const { samples } = parts;
  parts.note?.({
    type: "group-requested",
    ...place,
    samples,
    promptTokens,
    maxTokens: task.maxTokens,
  });
  parts.sampling?.(1);
  let answers: SampledAnswer[];
  let cachedTokens: number;
  try {
    ({ answers, cachedTokens } = await sample(sampler, task, seed, parts, signal));
  } finally {
    parts.sampling?.(-1);
  }
  const end = Date.now();
  const tokens = joined(
    Int32Array,
    answers.map((answer) => answer.tokens),
  );
  const logprobs = joined(
    Float32Array,
    answers.map((answer) => answer.logprobs),
  );
  await parts.record(
    {
      type: "group-sampled",
      ...place,
      policy: version,
      problem: task.id,
      source: task.source,
      ...(task.question !== undefined && { question: task.question.slice(0, maxQuestionCharacters) }),
      datasetIndex: task.datasetIndex,
      seed: seed ?? null,
      temperature: parts.temperature,
      promptTokens,
      cachedTokens: Math.min(cachedTokens, promptTokens),
      samples: answers.map(({ tokens, truncated, text }) => ({
        tokens: tokens.length,
        truncated,
        text: text.slice(0, maxResponseCharacters),
      })),
      start,
      end,
    },
    { prompt: task.prompt, tokens, logprobs },
    [tokens, logprobs],
  );
  return {
    problem: task.id,
    source: task.source,
    datasetIndex: task.datasetIndex,
    prompt: task.prompt,
    policy: version,
    answers,
    sampled: { start, end },
  };
}

async function sample(
  sampler: SamplingClient,
  task: Task,
  seed: number | undefined,
  { renderer, samples, temperature }: RolloutParts,
  signal: AbortSignal,
): Promise<{ answers: SampledAnswer[]; cachedTokens: number }> {
  const response = await sampler.sample({
    prompt: task.prompt,
    numSamples: samples,
    samplingParams: { maxTokens: task.maxTokens, temperature, stop: renderer.stop, seed },
    signal,
  });
  if (response.sequences.length !== samples) {
    throw new RolloutError(
      "rl/sample-count",
      `The server returned ${response.sequences.length} samples where ${samples} were asked for. Update the server.`,
    );
  }
  const answers = response.sequences.map(({ tokens, logprobs, stopReason }) => {
    if (!logprobs)
      throw new RolloutError("rl/logprob-count", "The server returned samples without logprobs; training needs them.");
    const { message, reasoningOpen = false } = renderer.parseResponse(tokens);
    const truncated = stopReason === "length" || reasoningOpen;
    return { ...behind(task.prompt, tokens, logprobs), text: message.content, truncated };
  });
  return { answers, cachedTokens: response.promptCacheHitTokens };
}

/** A group's answers as an earlier process wrote them down. */
export function recall(
  { sampled, arrays }: Pick<RememberedGroup, "sampled" | "arrays">,
  renderer?: Renderer,
): SampledGroup {
  const { prompt, tokens, logprobs } = arrays() as { prompt: Int32Array; tokens: Int32Array; logprobs: Float32Array };
  let offset = 0;
  const answers = sampled.samples.map(({ tokens: count, truncated, text }): SampledAnswer => {
    const own = tokens.subarray(offset, offset + count);
    const answer = { ...behind(prompt, own, logprobs.subarray(offset, offset + count)), truncated };
    offset += count;
    // A long answer's text is cut in the journal, its tokens are not.
    const whole = text.length < maxResponseCharacters || !renderer;
    return { ...answer, text: whole ? text : renderer.parseResponse(own).message.content };
  });
  const { problem, source, datasetIndex, policy, start, end } = sampled;
  return { problem, source, datasetIndex, prompt, policy, answers, sampled: { start, end } };
}

/** A completion behind its prompt. */
function behind(
  prompt: Int32Array,
  tokens: Int32Array,
  logprobs: Float32Array,
): Pick<Completion, "sequences" | "tokens" | "logprobs"> {
  const sequence = joinTurns([{ context: prompt, tokens, logprobs }]);
  return {
    sequences: [sequence],
    tokens: sequence.tokens.subarray(prompt.length),
    logprobs: sequence.logprobs.subarray(prompt.length - 1),
  };
}

function joined<Item extends Int32Array | Float32Array>(
  kind: new (length: number) => Item,
  parts: readonly Item[],
): Item {
  const whole = new kind(parts.reduce((sum, part) => sum + part.length, 0));
  let offset = 0;
  for (const part of parts) {
    whole.set(part, offset);
    offset += part.length;
  }
  return whole;
}
