// An environment: problems, what happens with each, and what that is worth. One object says all of it; there is nothing to inherit from.
import { ConfigError } from "../../core/errors.ts";
import type { Failure } from "../../grading/index.ts";
import type { Message } from "../../renderers/index.ts";
import type { StopReason } from "../../runs/events.ts";
import type { TrainingProblem } from "../own-problems.ts";
import type { Chat } from "./chat.ts";
import type { ToolSet } from "./tools.ts";
import type { Verdict } from "./verdict.ts";

/** How an episode ended, for those who judge it. */
export interface Ending<Problem extends TrainingProblem = TrainingProblem> {
  /** The problem as it was given. */
  problem: Problem;
  /** The last answer, without reasoning and control tokens; or the text that `run` returned. */
  text: string;
  /** The last answer as the model wrote it. */
  tokens: Int32Array;
  /** Whether the last answer was cut off at the longest allowed. */
  truncated: boolean;
  /** The whole conversation. */
  messages: readonly Message[];
  /** Why it ended: `done`, or the limit that it ran into. */
  stop: StopReason;
  /** Answers of the model. */
  turns: number;
  /** Aborted when the run is stopped at once, or the episode's time is over. */
  signal: AbortSignal;
}

/** Judges one ending. */
export type RewardFunction<Problem extends TrainingProblem = TrainingProblem> = (
  ending: Ending<Problem>,
) => Verdict | Promise<Verdict>;

/** The name under which reward functions know an ending. */
export type RewardRequest<Problem extends TrainingProblem = TrainingProblem> = Ending<Problem>;

/** Where an agent finds the policy: chat completions, streamed or not, with tools. What it samples there is trained on. */
export interface Endpoint {
  /** As `OPENAI_BASE_URL`. */
  baseURL: string;
  /** As `OPENAI_API_KEY`; it ends with the episode. */
  apiKey: string;
  /** The name of the model; any other one is answered too. */
  model: string;
}

/** What `run` gets. */
export interface Episode<Problem extends TrainingProblem = TrainingProblem> {
  /** The problem as it was given. */
  problem: Problem;
  /** The conversation; it begins with the problem's prompt. */
  chat: Chat;
  /** The policy as an OpenAI-compatible server of this episode alone, for agents as they are. */
  endpoint: Endpoint;
  /** Aborted when the run is stopped at once, or the episode's time is over. Give it to whatever takes long. */
  signal: AbortSignal;
  /** A number in [0, 1), the same again when an episode is run again. */
  random(): number;
  /** Runs a side effect once: its result, which must be JSON, is written down and given again when an episode is run again. */
  once<Result>(key: string, effect: () => Result | Promise<Result>): Promise<Result>;
  /** Writes something down: numbers become figures of the run (`env/KEY`, their mean), everything else is shown with the episode. */
  log(key: string, value: unknown): void;
  /** Grades an answer, or a program as `{ code }`, by the problem's tests, in the sandbox. It is a verdict, and says which tests failed. */
  grade(answer: string | { code: string }, problem?: TrainingProblem): Promise<Graded>;
  /** Runs an answer on the examples of the problem's statement, which the model may be shown; undefined where it has none. */
  tryExamples(answer: string | { code: string }): Promise<Tried | undefined>;
  /** Runs a Python program in the sandbox. */
  python(code: string, options?: { stdin?: string }): Promise<Executed>;
}

/** What tools get of an episode: all but the conversation. */
export type ToolEpisode<Problem extends TrainingProblem = TrainingProblem> = Omit<
  Episode<Problem>,
  "chat" | "endpoint"
>;

/** A verdict of the product's own grader. Where the sandbox gives none, the episode ends without one. */
export interface Graded {
  /** What the answer is worth. */
  reward: number;
  /** Whether every test passed. */
  correct: boolean;
  /** Whether the code stood in the answer as it was asked for. */
  wellFormed: boolean;
  /** `pass`, `wrong_answer`, `time_limit` … */
  status: string;
  /** Tests that passed, and all of them. */
  passed: number;
  /** See `passed`. */
  total: number;
}

/** How an answer did on the examples of a statement. */
export interface Tried extends Graded {
  /** The first one that failed. */
  failure?: Pick<Failure, "input" | "expected" | "printed"> | undefined;
}

/** What a program did in the sandbox. */
export interface Executed {
  /** `finished`, `runtime-error`, `time-limit` … */
  status: string;
  /** What it printed. */
  stdout: string;
  /** What it printed as errors. */
  stderr: string;
}

/** What `run` returns: a verdict, the text that `reward` is to judge, or nothing where `reward` judges the last answer. */
// biome-ignore lint/suspicious/noConfusingVoidType: a function that gives its rewards turn by turn returns nothing
export type Ran = Verdict | string | undefined | void;

/** What an environment is made of. */
export interface EnvironmentOptions<Problem extends TrainingProblem = TrainingProblem> {
  /** What is put to the model: a list, or what gives one. */
  problems: readonly Problem[] | (() => readonly Problem[] | Promise<readonly Problem[]>);
  /** Measured every `eval_every` steps and at the end. */
  testProblems?: readonly Problem[] | (() => readonly Problem[] | Promise<readonly Problem[]>) | undefined;
  /**
   * Tools that the model may call; a function where each episode has its own, with state or with what the episode offers. Those of an
   * episode are read again for each answer: one that they gain, lose or change begins a new sequence.
   */
  tools?: ToolSet | ((problem: Problem, episode: ToolEpisode<Problem>) => ToolSet | Promise<ToolSet>) | undefined;
  /** What happens in an episode. Left out: the model answers, tools run as it calls them, and `reward` judges the end. */
  run?: ((episode: Episode<Problem>) => Promise<Ran> | Ran) | undefined;
  /** Judges how an episode ended; not needed where `run` returns a verdict. */
  reward?: RewardFunction<Problem> | undefined;
  /** Judges the episodes of one problem together, in their order, in place of `reward`. */
  rewardGroup?: ((endings: readonly Ending<Problem>[]) => readonly Verdict[] | Promise<readonly Verdict[]>) | undefined;
  /** Answers of an episode at most; default 10. */
  maxTurns?: number | undefined;
  /** Calls of tools in an episode at most; default 30. */
  maxToolCalls?: number | undefined;
}

/** What env= begins with where it names a Python environment. */
export const verifiersPrefix = "verifiers:";

/** Recognises environments of other copies of this package. */
const mark = Symbol.for("whetstone.environment");

/** An environment, ready for `./whet train env=FILE` and `runTraining({ environment })`. */
export interface Environment<Problem extends TrainingProblem = TrainingProblem>
  extends Readonly<EnvironmentOptions<Problem>> {
  /** Says what this is. */
  readonly [mark]: true;
}

/** Makes an environment. Throws where something is wrong with it. */
export function environment<Problem extends TrainingProblem>(
  options: EnvironmentOptions<Problem>,
): Environment<Problem> {
  const bad = (what: string): never => {
    throw new ConfigError("config/bad-environment", what);
  };
  if (typeof options !== "object" || options === null)
    return bad("environment() wants an object: environment({ problems, reward }).");
  const given = options as unknown as Record<string, unknown>;
  const known = ["problems", "testProblems", "tools", "run", "reward", "rewardGroup", "maxTurns", "maxToolCalls"];
  const unknown = Object.keys(given).find((name) => !known.includes(name));
  if (unknown !== undefined) bad(`environment({ ${unknown} }) is not known. Known are ${known.join(", ")}.`);
  if (!Array.isArray(given["problems"]) && typeof given["problems"] !== "function")
    bad(
      `environment({ problems }) is ${JSON.stringify(given["problems"])}. Give a list, such as [{ id: "p0", prompt: "…" }], or a function that gives one.`,
    );
  if (given["tools"] !== undefined && !["object", "function"].includes(typeof given["tools"]))
    bad(
      `environment({ tools }) is ${JSON.stringify(given["tools"])}. Give tools by their names, or a function that makes them.`,
    );
  for (const name of ["run", "reward", "rewardGroup"])
    if (given[name] !== undefined && typeof given[name] !== "function")
      bad(`environment({ ${name} }) is ${JSON.stringify(given[name])}. Give a function.`);
  if (!options.run && !options.reward && !options.rewardGroup)
    bad(
      "The environment says nowhere what an answer is worth. Give reward, rewardGroup, or a run that returns a verdict.",
    );
  for (const name of ["maxTurns", "maxToolCalls"] as const) {
    const value = given[name];
    if (value !== undefined && !(Number.isInteger(value) && (value as number) > 0))
      bad(`environment({ ${name} }) is ${JSON.stringify(value)}. Give a whole number from 1 on.`);
  }
  return { ...options, [mark]: true };
}

/** Answers of an episode at most. */
export const maxTurnsOf = (
  { maxTurns = 10, run, tools }: Pick<Environment, "maxTurns"> & { run?: unknown; tools?: unknown },
  { max_turns: asked }: { max_turns: number },
): number => (run || tools ? asked || maxTurns : 1);

/** Whether a value is an environment. */
export const isEnvironment = (value: unknown): value is Environment =>
  typeof value === "object" && value !== null && mark in value;
