// `./whet sample`: one problem, answered by a checkpoint of a run, or by several and the base model beside each other. Each answer is
// printed when it is there; its program is taken out and, on request, run on tests. With an environment: an episode, turn by turn.

import { z } from "zod";
import { countOf } from "../../core/count.ts";
import { ConfigError } from "../../core/errors.ts";
import { whet } from "../../core/program.ts";
import { Random } from "../../core/random.ts";
import { visible, visibleLine } from "../../core/visible.ts";
import { extractCode, type GradeResult, type NormalizedTest } from "../../grading/index.ts";
import { TrainConfig } from "../../rl/config.ts";
import { taskOf } from "../../rl/tasks.ts";
import type { Logger } from "../../runs/log.ts";
import type { ParsedArguments } from "../arguments/options.ts";
import { askedRun, askedRunKey, askingKeys, settingsOfRun } from "../arguments/run-settings.ts";
import { describeRunOptions } from "../arguments/shown-defaults.ts";
import { commandOf } from "../command.ts";
import type { GraderConnection } from "../parts/grader.ts";
import { findProblem, type GivenProblem, givenId } from "../problems/find-problem.ts";
import { serveAsked } from "../serve/openai.ts";
import { interruptible } from "../terminal/interrupt.ts";
import { stderrLogger } from "../terminal/loggers.ts";
import { describeFailure, verdictLine } from "../text/failure.ts";
import { playEpisodesOf } from "../text/play-episodes.ts";
import { type Asked, type AskPlan, planAsking, withWeights } from "../weights/asked-weights.ts";
import { sayRun } from "../weights/find-run.ts";

const SampleOptions = TrainConfig.pick({ ...askingKeys, train_data: true }).extend({
  run: askedRunKey,
  checkpoint: z
    .array(z.string())
    .default([])
    .describe("who answers: a checkpoint's name, a tinker:// path, another run, base; commas separate several"),
  n: z.int().min(1).max(1000).default(1).describe("answers of each"),
  temperature: z.number().min(0).optional().describe("0: greedy. Default 0 for one answer, 1 for several"),
  tests: z
    .string()
    .default("")
    .describe("file with tests to run the programs on: JSON, in any form that data sets use"),
  grade: z.boolean().default(false).describe("run the programs on the problem's own tests"),
  serve: z
    .boolean()
    .default(false)
    .describe("answer over the OpenAI API instead, until Ctrl-C: for evaluation harnesses and chat front-ends"),
  port: z
    .int()
    .min(0)
    .max(65535)
    .default(0)
    .describe("with serve: where; 0: any free one. The host is always 127.0.0.1"),
  api_key: z.string().default("").describe("with serve: what clients must send; else one is made and printed"),
  json: z
    .boolean()
    .default(false)
    .describe("one JSON object per answer, with the ids and log-probabilities of its tokens"),
});
type SampleOptions = z.output<typeof SampleOptions>;

/** Without lines on how it goes: the answers themselves come at once. */
const logger: Logger = { ...stderrLogger, info: () => {} };

export const command = commandOf(SampleOptions, {
  usage: [
    "sample [RUN] PROBLEM [key=value …]",
    "sample env=FILE [RUN] [PROBLEM] [key=value …]",
    "sample [RUN] serve=true [key=value …]",
  ],
  about: [
    "PROBLEM is a text in quotes, a file (text, or problems as JSON lines), the id of a problem of the run's data, or - for stdin. The prompt is",
    "the one that training uses. Answers go to stdout as they come. Without a run, the base model answers.",
    "With env= it plays an episode of the problem that has the id PROBLEM, or of the first one, and prints it turn by turn.",
  ],
  words: Number.POSITIVE_INFINITY,
  describeKeys: (args, parse) => describeRunOptions(SampleOptions, args, parse, runFor),
  async run(parsed) {
    const { options, given, words } = parsed;
    if (options.serve && words.length > 1) throw new ConfigError("config/one-problem", onlyARun);
    if (options.serve) {
      const run = askedRun(options.run || (words[0] ?? ""), options.checkpoint, given);
      return interruptible((signal) => sampleAll("", { ...options, run }, given, signal));
    }
    const word = words.at(-1) ?? "";
    if (words.length > (options.run === "" ? 2 : 1))
      throw new ConfigError(
        "config/one-problem",
        `Several words were given ("${words[0]}", "${words[1]}" …). Put the problem into quotes.`,
      );
    const run = runFor(parsed);
    if (options.run === "" && run !== "") sayRun(run);
    return interruptible((signal) => sampleAll(word, { ...options, run }, given, signal));
  },
});

const onlyARun = `serve=true takes a run and no problem: ${whet} sample RUN serve=true.`;

/** With two words, the first is the run. */
function runFor({ options, given, words }: ParsedArguments<typeof SampleOptions>): string {
  const named = options.run || (words.length > 1 ? words[0]! : "");
  return askedRun(named, options.checkpoint, given);
}

interface Sample {
  text: string;
  prompt: Int32Array;
  tokens: Int32Array;
  logprobs: Float32Array | undefined;
  truncated: boolean;
  seconds: number;
  program: string | null;
  verdict: GradeResult | undefined;
}

async function sampleAll(
  word: string,
  options: SampleOptions,
  given: ReadonlySet<string>,
  signal: AbortSignal,
): Promise<number> {
  const settings = await settingsOfRun(options.run, options, given);
  const config = { ...settings, eval_max_problems: 0, eval_num_samples: options.n };
  if (word === "" && config.env === "" && !options.serve)
    throw new ConfigError(
      "config/one-problem",
      `No problem was given. Write ${whet} sample RUN "the problem's text", or the name of a file or problem.`,
    );
  const plans: AskPlan[] = [];
  for (const name of new Set(options.checkpoint.length > 0 ? options.checkpoint : [""]))
    plans.push(await planAsking(name, options.run, config, options, given));
  return withWeights(plans, logger, signal, (all) => ask(all, word, { config, options, signal }));
}

async function ask(
  all: readonly Asked[],
  word: string,
  { config, options, signal }: { config: TrainConfig; options: SampleOptions; signal: AbortSignal },
): Promise<number> {
  if (options.serve) return serveAsked(all, options, signal);
  if (config.env !== "" || config.agent !== "") {
    let isGraded = true;
    for (const asked of all) isGraded = (await playEpisodesOf(asked, word, options, signal)) && isGraded;
    return isGraded ? 0 : 1;
  }
  const { bench, renderer } = all[0]!;
  const problem = await findProblem(word, options, bench, renderer);
  const tests = await problem.tests?.();
  const grading = tests && (await bench.grading());
  if (!options.json) printQuestion(problem.problem);
  const counts: string[] = [];
  let ungraded = 0;
  for (const asked of all) {
    const verdicts = await sampleFrom(asked, { problem, tests, grading, options, signal });
    const graded = verdicts.filter((verdict) => verdict !== "ungraded").length;
    ungraded += verdicts.length - graded;
    const passed = verdicts.filter((verdict) => verdict === "pass").length;
    counts.push(`${asked.label}: ${passed} of ${graded} passed`);
  }
  if (grading && !options.json && all.length * options.n > 1) console.log(counts.join("\n"));
  return grading && ungraded > 0 ? 1 : 0;
}

/** What is asked; a text that was given has no name. */
function printQuestion({ id, question }: GivenProblem["problem"]): void {
  const heading = id === givenId ? "── problem" : `── problem ${visibleLine(id, 120)}`;
  console.log([heading, visible(question).trim(), ""].join("\n"));
}

/** Each answer is a request of its own, so that the first one is shown when it is there and not when the last one is. */
async function sampleFrom(
  { label, sampler, renderer, bench: { config } }: Asked,
  parts: {
    problem: GivenProblem;
    tests: readonly NormalizedTest[] | undefined;
    grading: GraderConnection | undefined;
    options: SampleOptions;
    signal: AbortSignal;
  },
): Promise<GradeResult["verdict"][]> {
  const { problem, tests, grading, options, signal } = parts;
  const temperature = options.temperature ?? (options.n === 1 ? 0 : 1);
  const task = taskOf(problem.problem, 0, config, renderer, config.eval_max_tokens || config.max_tokens);
  if (task.maxTokens < 1)
    throw new ConfigError(
      "config/prompt-too-long",
      `The problem takes ${task.prompt.length} tokens of context_window=${config.context_window}: no room is left for an answer. Shorten it.`,
    );
  return Promise.all(
    Array.from({ length: options.n }, async (_, index) => {
      const started = performance.now();
      const { sequences } = await sampler.sample({
        prompt: task.prompt,
        numSamples: 1,
        samplingParams: {
          maxTokens: task.maxTokens,
          temperature,
          stop: renderer.stop,
          seed: new Random("sample", config.seed, problem.problem.id, index).uint32(),
        },
        signal,
      });
      const { tokens, logprobs, stopReason } = sequences[0]!;
      const { message, reasoningOpen = false } = renderer.parseResponse(tokens);
      const text = message.content;
      const truncated = stopReason === "length" || reasoningOpen;
      const seconds = (performance.now() - started) / 1000;
      const verdict =
        grading && tests
          ? await grading.grader.grade(
              { problem: { id: task.id, tests, languages: task.languages }, response: text, truncated },
              { signal },
            )
          : undefined;
      const program = extractCode(text);
      print(
        label,
        index,
        { text, prompt: task.prompt, tokens, logprobs, truncated, seconds, program, verdict },
        options,
      );
      return verdict?.verdict ?? "ungraded";
    }),
  );
}

function print(label: string, index: number, sample: Sample, options: SampleOptions): void {
  const { text, prompt, tokens, logprobs, truncated, seconds, program, verdict } = sample;
  if (options.json) {
    const { verdict: word, status, passed, total, message, failure } = verdict ?? {};
    const ids = { prompt_tokens: [...prompt], tokens: [...tokens], logprobs: [...(logprobs ?? [])] };
    const line = { from: label, sample: index, text, program, truncated, seconds, ...ids };
    console.log(JSON.stringify(verdict ? { ...line, verdict: word, status, passed, total, message, failure } : line));
    return;
  }
  const which = options.n === 1 ? "" : `, answer ${index + 1} of ${options.n}`;
  const lines =
    program === null ? "none: the answer has no closed code block" : countOf(program.split("\n").length, "line");
  console.log(
    [
      `── ${label}${which}, ${countOf(tokens.length, "token")}, ${seconds.toFixed(1)} s`,
      visible(text).trimEnd(),
      "",
      `   program   ${lines}${truncated ? "; the answer was cut at the token limit" : ""}`,
      ...(verdict
        ? [
            `   verdict   ${verdictLine(verdict)}`,
            ...(verdict.failure ? [describeFailure(verdict.failure, verdict.total)] : []),
          ]
        : []),
      "",
    ].join("\n"),
  );
}
