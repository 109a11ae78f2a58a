// Problems that a program brings itself: what is put to the model, in a seeded order without end, like a data set's.
import { createHash } from "node:crypto";
import { ConfigError } from "../core/errors.ts";
import { epochOrder } from "../data/index.ts";
import { dropReasonTexts, type NormalizedTest, normalizeTests } from "../grading/index.ts";
import type { Message, Renderer } from "../renderers/index.ts";
import type { TrainConfig } from "./config.ts";
import type { Task, TaskSource } from "./tasks.ts";

/** A problem to train on. Further fields are kept, for the reward function to use. */
export interface TrainingProblem {
  /** Names it in the run's files; no other problem has it. */
  id: string;
  /** What is put to the model: a question, or a whole conversation. */
  prompt: string | readonly Message[];
  /** Figures are also given for each source; default "own". */
  source?: string;
  /** For a run that grades by tests: as `normalizeTests` of `whetstone/grading` reads them. */
  tests?: unknown;
}

type Limits = Pick<TrainConfig, "max_tokens" | "context_window" | "min_generation" | "seed">;

/** The problems as tasks, in an order that the seed decides; each epoch has its own. */
export function ownTaskSource(problems: readonly TrainingProblem[], config: Limits, renderer: Renderer): TaskSource {
  const tasks = ownTasks(problems, config, renderer);
  const orders = new Map<number, Uint32Array>();
  const orderOf = (epoch: number): Uint32Array => {
    const known = orders.get(epoch);
    if (known) return known;
    orders.clear(); // two epochs are never mixed for long
    const order = epochOrder(tasks.length, config.seed, epoch);
    orders.set(epoch, order);
    return order;
  };
  const at = (index: number): Task => {
    const position = orderOf(Math.floor(index / tasks.length))[index % tasks.length]!;
    return { ...tasks[position]!, datasetIndex: index };
  };
  return {
    size: tasks.length,
    batch: async (offset, count) => Array.from({ length: count }, (_, index) => at(offset + index)),
  };
}

/** The problems as tasks, in their own order. */
export function ownTasks(problems: readonly TrainingProblem[], config: Limits, renderer: Renderer): Task[] {
  const ids = new Set<string>();
  return problems.map((problem, datasetIndex) => {
    if (ids.has(problem.id))
      throw new ConfigError(
        "config/problem-ids",
        `Two problems have the id ${JSON.stringify(problem.id)}. Give each its own.`,
      );
    ids.add(problem.id);
    const prompt = Int32Array.from(renderer.buildGenerationPrompt(messagesOf(problem)));
    const room = config.context_window - prompt.length;
    const least = Math.min(config.min_generation, config.max_tokens);
    if (room < least)
      throw new ConfigError(
        "config/prompt-too-long",
        `The prompt of problem ${JSON.stringify(problem.id)} has ${prompt.length} tokens and leaves ${room} of context_window=${config.context_window} for an answer; ` +
          `min_generation and max_tokens want ${least}. Shorten it, or change one of them.`,
      );
    return {
      id: problem.id,
      source: problem.source ?? "own",
      question: questionOf(problem),
      datasetIndex,
      prompt,
      maxTokens: Math.min(config.max_tokens, room),
      loadTests: async () => testsOf(problem),
    };
  });
}

/** What is asked: the last that the user says. */
const questionOf = (problem: TrainingProblem): string =>
  messagesOf(problem).findLast(({ role }) => role === "user")?.content ?? "";

const messagesOf = ({ prompt }: TrainingProblem): readonly Message[] =>
  typeof prompt === "string" ? [{ role: "user", content: prompt }] : prompt;

function testsOf({ id, tests, source = "own" }: TrainingProblem): readonly NormalizedTest[] {
  const normalized = normalizeTests(tests, { source, metadata: {} });
  if (normalized.reason === null) return normalized.tests;
  throw new ConfigError(
    "config/problem-tests",
    `The tests of problem ${JSON.stringify(id)} cannot be used (${normalized.reason}): ${dropReasonTexts[normalized.reason]}. Change them, or give a reward function.`,
  );
}

/** Changes when a problem does: a run is not resumed on others. */
export function problemsFingerprint(problems: readonly TrainingProblem[]): string {
  const hash = createHash("sha256");
  for (const { id, prompt } of problems) hash.update(`${JSON.stringify([id, prompt])}\n`);
  return hash.digest("hex").slice(0, 16);
}
