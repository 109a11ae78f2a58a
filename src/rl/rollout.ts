// Rollouts: sample G completions for each task and grade each one as soon as it is there, so that grading overlaps sampling. The two
// stages meet in a bounded queue.
import type { SamplingClient } from "../client/index.ts";
import { messageOf } from "../core/errors.ts";
import { BoundedQueue } from "../core/queue.ts";
import type { GradeResult, Grader, NormalizedTest } from "../grading/index.ts";
import type { Renderer } from "../renderers/index.ts";
import type { StepTimer } from "../runs/timing.ts";
import { RolloutError } from "./datums.ts";

/** A problem made ready for the model and the grader. */
export interface Task {
  id: string;
  source: string;
  prompt: Int32Array;
  /** Most tokens of one completion: the config's limit, or what the context window leaves. */
  maxTokens: number;
  loadTests(): Promise<readonly NormalizedTest[]>;
}

export interface Completion {
  tokens: Int32Array;
  /** The sampler's log-probability of each token. */
  logprobs: Float32Array;
  /** The answer as text, without reasoning and control tokens. */
  text: string;
  truncated: boolean;
  grade: GradeResult;
}

/** One task's completions, in the order of the samples. */
export interface Group {
  task: Task;
  completions: Completion[];
}

export interface SampleSettings {
  samplesPerTask: number;
  temperature: number;
  /** A seed for a task of this rollout, or undefined to leave randomness to the server. */
  seedFor(task: Task, index: number): number | undefined;
}

export interface RolloutParts {
  renderer: Renderer;
  grader: Grader;
  timer: StepTimer;
  signal: AbortSignal;
  /** How long a sandbox may be away before completions are left ungraded. */
  patienceMs: number;
  /** Called when a completion is graded, with how many are done. */
  onGraded?(done: number, total: number): void;
  /** Called when the sandbox does not answer and the loop waits for it. */
  onWaiting?(message: string): void;
}

interface SampledGroup {
  index: number;
  completions: Omit<Completion, "grade">[];
}

/** Samples every task at once and grades the completions as they arrive. Groups come back in the order of the tasks. */
export async function rollOut(
  sampler: SamplingClient,
  tasks: readonly Task[],
  settings: SampleSettings,
  parts: RolloutParts,
): Promise<Group[]> {
  const queue = new BoundedQueue<SampledGroup>(tasks.length);
  const groups: Group[] = [];
  let graded = 0;

  const sampling = parts.timer.measure("sample", () =>
    Promise.all(
      tasks.map(async (task, index) => {
        const completions = await sampleTask(sampler, task, index, settings, parts);
        await queue.push({ index, completions });
      }),
    ),
  );
  let sampledAt = performance.now();
  // A failed sample ends the grading of the others too; the error rises from `sampling`.
  const sampled = sampling.then(
    () => {
      sampledAt = performance.now();
      queue.close();
    },
    (error) => queue.fail(error),
  );

  const grading = parts.timer.measure("grade", async () => {
    const running: Promise<void>[] = [];
    for await (const { index, completions } of queue) {
      const task = tasks[index]!;
      running.push(
        task.loadTests().then(async (tests) => {
          const finished = completions.map(async (completion): Promise<Completion> => {
            const grade = await gradePatiently(task, tests, completion, parts);
            parts.onGraded?.(++graded, tasks.length * settings.samplesPerTask);
            return { ...completion, grade };
          });
          groups[index] = { task, completions: await Promise.all(finished) };
        }),
      );
    }
    await Promise.all(running);
  });

  await Promise.all([sampling, sampled, grading]);
  parts.timer.add("grade_tail", sampledAt, performance.now());
  return groups;
}

async function sampleTask(
  sampler: SamplingClient,
  task: Task,
  index: number,
  settings: SampleSettings,
  { renderer, signal }: RolloutParts,
): Promise<Omit<Completion, "grade">[]> {
  const seed = settings.seedFor(task, index);
  const response = await sampler.sample({
    prompt: task.prompt,
    numSamples: settings.samplesPerTask,
    samplingParams: {
      maxTokens: task.maxTokens,
      temperature: settings.temperature,
      stop: renderer.stop,
      seed,
    },
    signal,
  });
  if (response.sequences.length !== settings.samplesPerTask) {
    throw new RolloutError(
      "rl/sample-count",
      `The server returned ${response.sequences.length} samples where ${settings.samplesPerTask} were asked for. Update the server.`,
    );
  }
  return response.sequences.map(({ tokens, logprobs, stopReason }) => {
    if (!logprobs)
      throw new RolloutError("rl/logprob-count", "The server returned samples without logprobs; training needs them.");
    const { message, reasoningOpen = false } = renderer.parseResponse(tokens);
    return { tokens, logprobs, text: message.content, truncated: stopReason === "length" || reasoningOpen };
  });
}

/**
 * Grades one completion; when the sandbox fails, waits and tries again until the patience is spent. What is still ungraded then has
 * no reward and is left out of training.
 */
async function gradePatiently(
  task: Task,
  tests: readonly NormalizedTest[],
  completion: Omit<Completion, "grade">,
  { grader, signal, patienceMs, onWaiting }: RolloutParts,
): Promise<GradeResult> {
  const deadline = Date.now() + patienceMs;
  for (let pauseMs = 1000; ; pauseMs = Math.min(15_000, pauseMs * 2)) {
    const grade = await grader.grade(
      {
        problem: { id: task.id, tests },
        response: completion.text,
        truncated: completion.truncated,
      },
      { signal },
    );
    if (grade.verdict !== "ungraded" || Date.now() + pauseMs > deadline) return grade;
    onWaiting?.(`the sandbox gave no verdict (${grade.message ?? grade.status}); trying again in ${pauseMs / 1000} s`);
    await new Promise<void>((resolve, reject) => {
      const timer = setTimeout(resolve, pauseMs);
      signal.addEventListener(
        "abort",
        () => {
          clearTimeout(timer);
          reject(signal.reason instanceof Error ? signal.reason : new Error(messageOf(signal.reason)));
        },
        { once: true },
      );
    });
  }
}
