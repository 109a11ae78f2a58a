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
  /** Names it in the run's files; no other problem of the list has it. */
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

/** Refuses problems that are none, before anything is begun: programs without types give all kinds of things. */
export function checkProblems(problems: unknown, list: "problems" | "testProblems"): void {
  if (!Array.isArray(problems))
    throw new ConfigError(
      "config/no-problems",
      `${list} is ${shown(problems)}. Give a list, such as [{ id: "p0", prompt: "…" }].`,
    );
  const ids = new Map<string, number>();
  for (const [index, problem] of (problems as unknown[]).entries()) {
    const { id, prompt, source } = (problem ?? {}) as Record<string, unknown>;
    const where = `${list}[${index}]`;
    if (typeof id !== "string" || id === "")
      throw new ConfigError(
        "config/problem-ids",
        `${where}.id is ${shown(id)}. Give every problem an id that is text and not empty, such as "${typeof id === "number" ? id : `p${index}`}".`,
      );
    if (ids.has(id))
      throw new ConfigError(
        "config/problem-ids",
        `${list}[${ids.get(id)}] and ${where} both have the id ${JSON.stringify(id)}. Give each problem of the list its own.`,
      );
    ids.set(id, index);
    if (!isPrompt(prompt))
      throw new ConfigError(
        "config/problem-prompt",
        `${where}.prompt (id ${JSON.stringify(id)}) is ${shown(prompt)}. Give a question as text, or a list of messages such as { role: "user", content: "…" }.`,
      );
    if (source !== undefined && typeof source !== "string")
      throw new ConfigError(
        "config/problem-source",
        `${where}.source (id ${JSON.stringify(id)}) is ${shown(source)}. Give text, or leave it out.`,
      );
  }
}

const isPrompt = (prompt: unknown): boolean =>
  typeof prompt === "string" ||
  (Array.isArray(prompt) &&
    prompt.length > 0 &&
    prompt.every((message: unknown) => {
      const { role, content } = (message ?? {}) as Record<string, unknown>;
      return typeof role === "string" && typeof content === "string";
    }));

/** A value in a message: short, with its type where the value alone does not tell. */
const shown = (value: unknown) =>
  value === undefined ? "missing" : `${(JSON.stringify(value) ?? String(value)).slice(0, 60)} (${typeof value})`;

/** The problems as tasks, in their own order. */
export function ownTasks(problems: readonly TrainingProblem[], config: Limits, renderer: Renderer): Task[] {
  return problems.map((problem, datasetIndex) => {
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
      problem,
    };
  });
}

/** What is asked: the last that the user says. */
const questionOf = (problem: TrainingProblem): string =>
  messagesOf(problem).findLast(({ role }) => role === "user")?.content ?? "";

/** Its prompt as a conversation. */
export const messagesOf = ({ prompt }: TrainingProblem): readonly Message[] =>
  typeof prompt === "string" ? [{ role: "user", content: prompt }] : prompt;

/** Its tests; refuses a problem whose tests are none. */
export function testsOf({ id, tests, source = "own" }: TrainingProblem): readonly NormalizedTest[] {
  const normalized = normalizeTests(tests, { source, metadata: {} });
  if (normalized.reason === null) return normalized.tests;
  throw new ConfigError(
    "config/problem-tests",
    `The tests of problem ${JSON.stringify(id)} cannot be used (${normalized.reason}): ${dropReasonTexts[normalized.reason]}. Change them, or give a reward function.`,
  );
}

/**
 * Changes when a problem does, in any of its fields: a run is not resumed on others. What cannot be compared from one process to the next,
 * such as a function, does not count.
 */
export function problemsFingerprint(problems: readonly TrainingProblem[]): string {
  const hash = createHash("sha256");
  for (const problem of problems) hash.update(`${JSON.stringify(comparable(problem, []))}\n`);
  return hash.digest("hex").slice(0, 16);
}

/** A value as JSON can have it: the same for equal values, and for no others. */
function comparable(value: unknown, above: readonly unknown[]): unknown {
  if (typeof value === "bigint") return { bigint: String(value) };
  if (typeof value === "number") return Number.isFinite(value) ? value : { number: String(value) };
  if (typeof value !== "object" || value === null) return value;
  if (above.includes(value)) return { above: above.indexOf(value) };
  const inside = (part: unknown) => comparable(part, [...above, value]);
  if (value instanceof Date || value instanceof RegExp || value instanceof URL)
    return { [value.constructor.name]: String(value instanceof Date ? value.getTime() : value) };
  if (value instanceof Map) return { map: [...value].map((entry) => entry.map(inside)) };
  if (value instanceof Set) return { set: [...value].map(inside) };
  if (Array.isArray(value)) return value.map(inside);
  if (value instanceof ArrayBuffer) return { bytes: Buffer.from(value).toString("base64") };
  if (ArrayBuffer.isView(value))
    return { bytes: Buffer.from(value.buffer, value.byteOffset, value.byteLength).toString("base64") };
  const entries = Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1));
  return Object.fromEntries(entries.map(([key, part]) => [key, inside(part)]));
}
