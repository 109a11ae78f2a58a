// Supervised training in the loop: answers that are given, and not sampled, as groups of one. What follows is as for sampled ones: the
// journal has them before they are trained on, a killed run goes on, evaluations measure Pass@1.
import { existsSync } from "node:fs";
import { ConfigError } from "../core/errors.ts";
import { readJsonLines } from "../core/jsonl.ts";
import { languageOf, languagesNamed } from "../core/languages/languages.ts";
import type { Problem } from "../data/index.ts";
import type { Message, Renderer } from "../renderers/index.ts";
import type { Grade } from "../runs/events.ts";
import { maxResponseCharacters } from "../runs/rollouts.ts";
import { behind } from "./completion.ts";
import type { TrainConfig } from "./config.ts";
import { ownTaskSource } from "./own-problems.ts";
import { groupOf, type RollOuts } from "./rollout.ts";
import { describeTask, messagesOf, type TaskSource } from "./tasks.ts";

/** What is to be answered, and the answer: tokens as the model would have to write them. */
export interface Demonstration {
  prompt: Int32Array;
  answer: Int32Array;
  text: string;
}

/** A conversation that ends with what is to be learned. */
export interface Conversation {
  id: string;
  source: string;
  messages: readonly Message[];
}

type Limits = Pick<
  TrainConfig,
  "context_window" | "system_role" | "language" | "max_tokens" | "min_generation" | "seed"
>;

/** The verdict on a given answer, which is right by definition. */
const given: Grade = {
  verdict: "pass",
  status: "given",
  reward: 1,
  formatOk: true,
  passed: 0,
  total: 0,
  ran: 0,
  wallMs: 0,
  queueMs: 0,
  cached: false,
  flags: [],
  codeHash: null,
};

/** Trains on what tasks demonstrate; evaluations ask the model, as always. */
export const demonstrate =
  (evaluated: RollOuts): RollOuts =>
  (context) => {
    const asks = evaluated(context);
    return async (place, task, policy, signal) => {
      if (place.phase === "eval") return asks(place, task, policy, signal);
      signal.throwIfAborted();
      const { prompt, answer, text } = task.demonstrate!();
      const logprobs = new Float32Array(answer.length);
      const start = Date.now();
      const at = { start, end: start };
      const sampled = {
        type: "group-sampled" as const,
        ...place,
        ...at,
        policy: policy.version,
        ...describeTask(task),
        seed: null,
        temperature: 0,
        promptTokens: 0,
        cachedTokens: 0,
        given: true as const,
        samples: [{ tokens: answer.length, truncated: false, text: text.slice(0, maxResponseCharacters) }],
      };
      if (!context.recorded?.(place, task)) {
        await context.record(sampled, { prompt, tokens: answer, logprobs });
        await context.record({ type: "graded", ...place, ...at, sample: 0, grade: given });
      }
      const completion = { ...behind(prompt, answer, logprobs), truncated: false, grade: given };
      return groupOf(sampled, { prompt, completions: [completion], verdicts: [at], sampledUntil: start });
    };
  };

/** The last assistant message of a conversation behind what comes before it, as the model's format writes both. */
function demonstrationOf(messages: readonly Message[], renderer: Renderer): Demonstration {
  const { tokens, weights } = renderer.buildSupervisedExample(messages, { trainOn: "last_assistant_message" });
  const start = weights.indexOf(1);
  const end = weights.lastIndexOf(1) + 1;
  return {
    prompt: Int32Array.from(tokens.slice(0, start)),
    answer: Int32Array.from(tokens.slice(start, end)),
    text: messages.at(-1)!.content,
  };
}

/** Conversations that end with what the assistant is to say, in an order that the seed decides. */
export function demonstrationSource(rows: readonly Conversation[], config: Limits, renderer: Renderer): TaskSource {
  const problems = rows.map((row) => ({ ...row, prompt: row.messages.slice(0, -1) }));
  const tasks = ownTaskSource(problems, { ...config, min_generation: 1 }, renderer);
  return {
    size: tasks.size,
    batch: async (offset, count) =>
      (await tasks.batch(offset, count)).map((task) => ({
        ...task,
        demonstrate: () => demonstrationOf((task.problem as unknown as Conversation).messages, renderer),
      })),
  };
}

/** Those of a data set's problems that have a reference solution: the first one, in a code block, is the answer. */
export async function solvedProblems(problems: readonly Problem[], config: Limits): Promise<Conversation[]> {
  const rows: Conversation[] = [];
  for (const problem of problems) {
    const [solution] = await problem.loadSolutions();
    if (solution === undefined) continue;
    const { id, source, languages = languagesNamed(config.language) } = problem;
    const content = `\`\`\`${languageOf(languages?.[0]).tags[0]}\n${solution.trim()}\n\`\`\``;
    rows.push({ id, source, messages: [...messagesOf(problem, config), { role: "assistant", content }] });
  }
  return rows;
}

/** The conversations of a file of JSON lines; undefined where its first row has no `messages`. */
export function readConversations(path: string): Conversation[] | undefined {
  if (!/\.jsonl$/.test(path) || !existsSync(path)) return undefined;
  const rows = readJsonLines(path) as Record<string, unknown>[];
  if (!Array.isArray(rows[0]?.["messages"])) return undefined;
  return rows.map(({ id, messages, source }, index) => {
    const isWhole =
      Array.isArray(messages) &&
      messages.length > 1 &&
      messages.every((message) => typeof message?.role === "string" && typeof message?.content === "string") &&
      messages.at(-1).role === "assistant";
    if (!isWhole)
      throw new ConfigError(
        "config/bad-conversation",
        `${path}, line ${index + 1}: messages are to be a list such as [{"role":"user","content":"…"},{"role":"assistant","content":"…"}] that ends with the assistant's. Mend the line, or take it out.`,
      );
    return { id: typeof id === "string" ? id : `line-${index + 1}`, source: String(source ?? "own"), messages };
  });
}

/** Leaves out conversations that are longer than the window. */
export const thatFit = (rows: readonly Conversation[], { context_window }: Limits, renderer: Renderer) =>
  rows.filter(({ messages }) => renderer.buildSupervisedExample(messages).tokens.length <= context_window);
