// From data sets to tasks: prompts as tokens, tests as the grader reads them, problems that cannot be used left out and counted.
import { createHash } from "node:crypto";
import { canCall, type LanguageName, languagesNamed } from "../core/languages/languages.ts";
import { entryOf } from "../core/maps.ts";
import { type Dataset, type LoadProgress, loadDataset, type Problem, type Split } from "../data/index.ts";
import { buildMessages } from "../data/question.ts";
import { testsHint } from "../grading/hints.ts";
import { type DropReason, dropReasonTexts, type NormalizedTest, normalizeTests } from "../grading/index.ts";
import { callOf, hinted } from "../grading/signature.ts";
import type { Renderer } from "../renderers/index.ts";
import { maxQuestionCharacters } from "../runs/rollouts.ts";
import type { TrainConfig } from "./config.ts";
import type { Demonstration } from "./demonstrations.ts";
import { stratifiedSubset } from "./evaluate.ts";
import type { TrainingProblem } from "./own-problems.ts";

/** A problem made ready for the model and the judge. */
export interface Task {
  id: string;
  source: string;
  /** What is asked, as people read it: without instructions and chat format. */
  question?: string;
  /** Position in the endless order of the data; of an evaluation, in its list. */
  datasetIndex: number;
  prompt: Int32Array;
  /** Most tokens of one completion: the config's limit, or what the context window leaves. */
  maxTokens: number;
  loadTests(): Promise<readonly NormalizedTest[]>;
  /** Languages that an answer may be in; undefined: the grader's. */
  languages?: readonly LanguageName[] | undefined;
  /** The problem as an environment sees it. */
  problem?: TrainingProblem;
  /** Supervised training: the answer that is to be learned. */
  demonstrate?(): Demonstration;
}

/** What a group's event says of its problem. */
export const describeTask = ({ id, source, question, datasetIndex }: Task) => ({
  problem: id,
  source,
  ...(question !== undefined && { question: question.slice(0, maxQuestionCharacters) }),
  datasetIndex,
});

/** The training problems in their seeded order, without end. */
export interface TaskSource {
  readonly size: number;
  batch(offset: number, count: number): Promise<Task[]>;
}

/** What the check of a problem's tests keeps: the function they call, if they call one. */
interface TestFacts {
  call: ReturnType<typeof callOf>;
}

/** The version of the rules behind `checkTests`; findings of another version are made again. */
const checkVersion = "normalize-2";

export interface TaskOptions {
  renderer: Renderer;
  signal?: AbortSignal;
  onProgress?: (split: Split, progress: LoadProgress) => void;
}

type DataConfig = Pick<
  TrainConfig,
  | "train_data"
  | "test_data"
  | "seed"
  | "max_tests_bytes"
  | "blocked_ids"
  | "language"
  | "system_role"
  | "max_tokens"
  | "context_window"
  | "min_generation"
>;

/** Loads one split; every problem that stays can be rendered, sampled and graded. */
export function loadProblems(config: DataConfig, split: Split, options: TaskOptions): Promise<Dataset> {
  return loadDataset(split === "train" ? config.train_data : config.test_data, {
    split,
    seed: config.seed,
    maxTestsBytes: config.max_tests_bytes,
    blockedIds: config.blocked_ids,
    checkTests: (raw, { source, metadata }) => {
      const { tests, reason } = normalizeTests(raw, { source, metadata });
      return { reason, facts: { call: callOf(tests) } satisfies TestFacts };
    },
    checkVersion,
    explainReason: (reason) => (reason in dropReasonTexts ? dropReasonTexts[reason as DropReason] : undefined),
    hintForTests: testsHint,
    unfit: ({ facts, languages = languagesNamed(config.language) ?? [] }) =>
      (facts as TestFacts).call && !languages.every(canCall) ? "no_calls" : null,
    promptFits: (problem) => promptFits(problem, config, options.renderer),
    ...(options.signal ? { signal: options.signal } : {}),
    onProgress: (progress) => options.onProgress?.(split, progress),
  });
}

/** The training problems as tasks, in the data set's order. */
export function taskSource(dataset: Dataset, config: DataConfig, renderer: Renderer): TaskSource {
  return {
    size: dataset.size,
    batch: (offset, count) =>
      Promise.resolve(
        dataset
          .batch(offset, count)
          .map((problem, index) => taskOf(problem, offset + index, config, renderer, config.max_tokens)),
      ),
  };
}

/** The problems of every evaluation: a fixed subset, the same in every run of this seed. */
export function evaluationTasks(
  dataset: Dataset,
  config: DataConfig & Pick<TrainConfig, "eval_max_problems" | "eval_max_tokens">,
  renderer: Renderer,
): Task[] {
  const maxTokens = config.eval_max_tokens > 0 ? config.eval_max_tokens : config.max_tokens;
  return stratifiedSubset(dataset.problems, config.eval_max_problems, config.seed).map((problem, index) =>
    taskOf(problem, index, config, renderer, maxTokens),
  );
}

/** Names a choice of problems in config.json. */
export function idsHash(tasks: readonly Task[]): string {
  const hash = createHash("sha256");
  for (const { id } of tasks) hash.update(`${JSON.stringify(id)}\n`);
  return hash.digest("hex").slice(0, 16);
}

/** One problem, ready to be asked. */
export function taskOf(
  problem: Problem,
  datasetIndex: number,
  config: DataConfig,
  renderer: Renderer,
  maxTokens: number,
): Task {
  const { id, source } = problem;
  const messages = messagesOf(problem, config);
  // Many are never asked: those of an evaluation that does not come.
  let tokens: Int32Array | undefined;
  const prompt = () => (tokens ??= Int32Array.from(renderer.buildGenerationPrompt(messages)));
  // Read once for all answers of a group, and not kept longer than they are graded: tests can be many megabytes.
  let tests: WeakRef<readonly NormalizedTest[]> | undefined;
  return {
    id,
    source,
    problem: { id, source, prompt: messages },
    question: [problem.question, problem.starterCode].filter(Boolean).join("\n\n"),
    datasetIndex,
    get prompt() {
      return prompt();
    },
    languages: problem.languages,
    get maxTokens() {
      return Math.min(maxTokens, config.context_window - prompt().length);
    },
    loadTests: async () => {
      const known = tests?.deref();
      if (known) return known;
      const read = normalizeTests(await problem.loadTests(), { source, metadata: problem.metadata });
      tests = new WeakRef(read.tests);
      return read.tests;
    },
  };
}

/** Whether a problem's prompt leaves room for an answer. */
function promptFits(problem: Problem, config: DataConfig, renderer: Renderer): boolean {
  const room = config.context_window - Math.min(config.min_generation, config.max_tokens);
  const messages = messagesOf(problem, config);
  const most = maxTokensOf(messages, problem.question, renderer);
  return most <= room || renderer.buildGenerationPrompt(messages).length <= room;
}

type Asking = Pick<DataConfig, "system_role" | "language">;

type Messages = ReturnType<typeof messagesOf>;

/** Prompts about nothing, by renderer and text. */
const emptyPrompts = new WeakMap<Renderer, Map<string, { messages: Messages; tokens: number }>>();
/** Each is encoded once; starter code can make one of every problem. */
const maxEmptyPrompts = 128;

/**
 * No prompt has more tokens: those of the prompt about nothing, a token for each byte that is different, and some where the two meet.
 * Encoding all prompts only to learn that they fit takes a second for each few thousand.
 */
function maxTokensOf(messages: Messages, question: string, renderer: Renderer): number {
  const known = entryOf(emptyPrompts, renderer, () => new Map<string, { messages: Messages; tokens: number }>());
  const about = messages.map(({ role, content }) => ({ role, content: content.replace(question, "x") }));
  const text = JSON.stringify(about);
  if (!known.has(text) && known.size < maxEmptyPrompts)
    known.set(text, { messages: about, tokens: renderer.buildGenerationPrompt(about).length });
  const empty = known.get(text) ?? known.values().next().value!;
  const bytes = messages.map(({ content }, index) => differentBytes(content, empty.messages[index]?.content ?? ""));
  return empty.tokens + bytes.reduce((sum, count) => sum + count + 32, 0);
}

/** The bytes of `text` between what it begins and what it ends with as `other` does. */
function differentBytes(text: string, other: string): number {
  const most = Math.min(text.length, other.length);
  let start = 0;
  while (start < most && text[start] === other[start]) start++;
  let end = 0;
  while (end < most - start && text.at(-1 - end) === other.at(-1 - end)) end++;
  return Buffer.byteLength(text.slice(start, text.length - end));
}

export function messagesOf(problem: Problem, config: Asking) {
  const { question, languages = languagesNamed(config.language) } = problem;
  const { call } = problem.facts as TestFacts;
  // Starter code is Python, unless the problem itself says what it is.
  const starterCode = problem.languages || languages?.join() === "python" ? problem.starterCode : null;
  const signature = call?.signature && hinted(call.signature, problem.starterCode);
  const asked = call && { ...call, signature };
  return buildMessages({ question, starterCode, call: asked, languages }, { systemRole: config.system_role });
}
