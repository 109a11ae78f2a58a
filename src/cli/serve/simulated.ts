// The simulated engine of `./whet serve`, from its options: a tokenizer makes its completions text, and a file of problems with their
// solutions makes some of them right.
import { existsSync } from "node:fs";
import { resolve } from "node:path";
import { z } from "zod";
import { ConfigError } from "../../core/errors.ts";
import { readJsonLines } from "../../core/jsonl.ts";
import { languageNamed } from "../../core/languages/languages.ts";
import { decodeSimulatedTokens, SimulatedEngine, type SimulatedEngineOptions } from "../../engine/simulated/engine.ts";
import { hashOf } from "../../engine/simulated/script.ts";
import { modelText, type ServerOptions } from "../../server/index.ts";
import { loadTokenizer, type Tokenizer } from "../../tokenizer/index.ts";

const forms = "none, constant:20, uniform:5:50, exponential:30, lognormal:MEDIAN:SIGMA";

export const simulatedOptions = {
  seed: z.int().default(0).describe("simulated: base weights, answers, latencies and unseeded draws"),
  sampling_latency: z.string().default("none").describe(`simulated: milliseconds per sampled prompt: ${forms}`),
  training_latency: z.string().default("none").describe("simulated: the same, for each training request"),
  sync_latency: z.string().default("none").describe("simulated: the same, for making a sampler of new weights"),
  save_latency: z.string().default("none").describe("simulated: the same, for saving and loading"),
  time_scale: z.number().min(0).default(1).describe("simulated: multiplies every latency"),
  vocab_size: z.int().min(16).optional().describe("simulated: token ids; the tokenizer's, or 512, unless given"),
  context_window: z.int().min(16).default(32768).describe("simulated: most tokens of prompt and completion"),
  tokenizer: z
    .string()
    .optional()
    .describe("simulated: a bundled model, folder or hub id; completions are text then, with an answer at the end"),
  completion_tokens: z.string().default("lognormal:64:0.5").describe("simulated: with a tokenizer, their lengths"),
  solve_rate: z.string().default("uniform:0:1").describe("simulated: per prompt, the share of right answers"),
  answers: z
    .string()
    .optional()
    .describe("simulated: JSON lines with problem and solutions, from which right answers are taken"),
};
type Options = z.output<z.ZodObject<typeof simulatedOptions>> & { model_name?: string | undefined };

/** What the server needs of it. Wrong options are refused here, before anything else happens. */
export async function simulatedParts(options: Options): Promise<Pick<ServerOptions, "createEngine" | "text">> {
  const tokenizer = options.tokenizer === undefined ? undefined : await loadTokenizer(options.tokenizer);
  if (!tokenizer && options.answers !== undefined)
    throw new ConfigError("config/bad-value", "answers= needs tokenizer=, to know a problem by its text. Give both.");
  if (tokenizer && options.vocab_size !== undefined && options.vocab_size < tokenizer.vocabSize)
    throw new ConfigError(
      "config/bad-value",
      `vocab_size=${options.vocab_size} is less than the ${tokenizer.vocabSize} ids of tokenizer=${options.tokenizer}. Leave it out.`,
    );
  const engineOptions: SimulatedEngineOptions = {
    seed: options.seed,
    samplingLatency: options.sampling_latency,
    trainingLatency: options.training_latency,
    syncLatency: options.sync_latency,
    saveLatency: options.save_latency,
    timeScale: options.time_scale,
    maxContextLength: options.context_window,
    ...(options.model_name !== undefined && { modelName: options.model_name }),
    ...((options.vocab_size ?? tokenizer?.vocabSize) !== undefined && {
      vocabSize: options.vocab_size ?? tokenizer!.vocabSize,
    }),
    ...(tokenizer && { tokenizerId: options.tokenizer!, script: scriptOf(options, tokenizer) }),
  };
  new SimulatedEngine(engineOptions);
  return {
    createEngine: async () => new SimulatedEngine(engineOptions),
    text: () => (tokenizer ? modelText(tokenizer) : { decode: decodeSimulatedTokens }),
  };
}

function scriptOf(options: Options, tokenizer: Tokenizer): NonNullable<SimulatedEngineOptions["script"]> {
  const filler: number[] = [];
  // Words only: filler must not open a code block or a thought.
  for (let id = 0; id < tokenizer.vocabSize; id++)
    if (!tokenizer.isSpecial(id) && /^ ?[a-z]+$/i.test(tokenizer.decode([id]))) filler.push(id);
  const fenced = (code: string, tag = "python") => tokenizer.encode(`\n\`\`\`${tag}\n${code}\n\`\`\``);
  return {
    length: options.completion_tokens,
    solveRate: options.solve_rate,
    filler,
    endToken: tokenizer.tokenId("<|im_end|>") ?? tokenizer.tokenId("<|endoftext|>") ?? tokenizer.vocabSize - 1,
    rightAnswers: options.answers === undefined ? () => [] : solutionsIn(resolve(options.answers), tokenizer, fenced),
    wrongAnswers: [fenced("pass"), fenced("print(0)")],
    malformedAnswers: [tokenizer.encode(" I do not know.")],
  };
}

/** Finds the problem that a prompt is about by its text. */
function solutionsIn(
  path: string,
  tokenizer: Tokenizer,
  fenced: (code: string, tag?: string) => number[],
): (prompt: Int32Array) => readonly (readonly number[])[] {
  if (!existsSync(path)) throw new ConfigError("config/bad-value", `answers=${path} does not exist. Name a file.`);
  const problems = readJsonLines(path).flatMap((line) => {
    const { problem, solutions } = line as { problem?: unknown; solutions?: unknown };
    return typeof problem === "string" && Array.isArray(solutions) && solutions.length > 0
      ? [{ problem, solutions: solutions.map(String) }]
      : [];
  });
  if (problems.length === 0)
    throw new ConfigError(
      "config/bad-value",
      `answers=${path} holds no line with "problem" and "solutions". Name a JSONL problem set with both.`,
    );
  const known = new Map<number, readonly (readonly number[])[]>();
  return (prompt) => {
    const key = hashOf(prompt);
    const before = known.get(key);
    if (before) return before;
    const text = tokenizer.decode(prompt);
    const found = problems
      .filter(({ problem }) => text.includes(problem))
      .reduce<(typeof problems)[number] | undefined>(
        (best, entry) => (best && best.problem.length >= entry.problem.length ? best : entry),
        undefined,
      );
    // The fence that the question shows says which language is wanted.
    const tag = /\n```(\w+)\n(?![\s\S]*\n```\w)/.exec(text)?.[1];
    const named = tag !== undefined && languageNamed(tag) !== undefined ? tag : undefined;
    const answers = (found?.solutions ?? []).map((code) => fenced(code, named));
    known.set(key, answers);
    return answers;
  };
}
