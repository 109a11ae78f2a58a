// `./whet sample`: one problem, answered by a checkpoint of a run, or by several and the base model beside each other. Each answer is
// printed when it is there; its program is taken out and, on request, run on tests.
import { rmSync } from "node:fs";
import { z } from "zod";
import type { SamplingClient } from "../../client/index.ts";
import { countOf } from "../../core/count.ts";
import { ConfigError } from "../../core/errors.ts";
import { scratchFolder } from "../../core/files.ts";
import { whet } from "../../core/program.ts";
import { Random } from "../../core/random.ts";
import { visible, visibleLine } from "../../core/visible.ts";
import { extractCode, type GradeResult, type NormalizedTest } from "../../grading/index.ts";
import type { Renderer } from "../../renderers/index.ts";
import { TrainConfig } from "../../rl/config.ts";
import { taskOf } from "../../rl/tasks.ts";
import { type Logger, redact } from "../../runs/log.ts";
import { borrowCheckpoint } from "../borrow-checkpoint.ts";
import type { Command } from "../command.ts";
import { engineFiles, engineKind, type GraderConnection } from "../connect.ts";
import { describeFailure } from "../failure-text.ts";
import { findProblem, type GivenProblem, givenId } from "../find-problem.ts";
import { sayRun } from "../find-run.ts";
import { engineOfRun, findWeights, type NamedWeights } from "../find-weights.ts";
import { interruptible } from "../interrupt.ts";
import { parseArguments } from "../options.ts";
import { askedRun, askedRunKey, askingKeys, settingsOfRun } from "../run-settings.ts";
import { describeRunOptions } from "../shown-defaults.ts";
import { verdictLine } from "../verdict-text.ts";
import { Workbench } from "../workbench.ts";

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
  json: z
    .boolean()
    .default(false)
    .describe("one JSON object per answer, with the ids and log-probabilities of its tokens"),
});
type SampleOptions = z.output<typeof SampleOptions>;

const say = (line: string) => console.error(redact(line));
const logger: Logger = { info: () => {}, warn: (line) => say(`warning: ${line}`), error: say, detail: () => {} };

export const command: Command = {
  keys: SampleOptions.shape,
  help: (args) =>
    [
      `Usage: ${whet} sample [RUN] PROBLEM [key=value …]`,
      "",
      "PROBLEM is a text in quotes, a file (text, or problems as JSON lines), the id of a problem of the run's data, or - for stdin. The prompt is",
      "the one that training uses. Answers go to stdout as they come. Without a run, the base model answers.",
      "",
      describeRunOptions(SampleOptions, args, runOfWords),
    ].join("\n"),
  async run(args) {
    const { options, given, words } = parseArguments(SampleOptions, args);
    const word = words.at(-1);
    if (word === undefined || words.length > (options.run === "" ? 2 : 1))
      throw new ConfigError(
        "config/one-problem",
        word === undefined
          ? `No problem was given. Write ${whet} sample RUN "the problem's text", or the name of a file or problem.`
          : `Several words were given ("${words[0]}", "${words[1]}" …). Put the problem into quotes.`,
      );
    const run = runOfWords(options, given, words);
    if (options.run === "" && run !== "") sayRun(run);
    options.run = run;
    const config = { ...(await settingsOfRun(options.run, options, given)), eval_max_problems: 0 };
    return interruptible((signal) => sampleAll(word, options, given, config, signal));
  },
};

/** With two words, the first is the run. */
function runOfWords(options: SampleOptions, given: ReadonlySet<string>, words: readonly string[]): string {
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
  config: TrainConfig,
  signal: AbortSignal,
): Promise<number> {
  const names = options.checkpoint.length > 0 ? options.checkpoint : [""];
  const weights = [...new Set(names)].map((name) => findWeights(name, options.run, config.model_name));
  const { kind, baseUrl } = engineOfRun(options.run, given.has("base_url") ? options.base_url : undefined);
  const scratch = scratchFolder("sample");
  const files = engineFiles(scratch);
  const bench = new Workbench(
    { ...config, base_url: baseUrl },
    { engineFiles: files, logger, signal, engineKind: kind },
  );
  try {
    if ((kind ?? engineKind(baseUrl)) === "embedded")
      for (const { path, run } of weights) if (path !== undefined) borrowCheckpoint(path, run, files.stateDir);
    const engine = await bench.engine();
    bench.model(engine);
    const { renderer } = await bench.renderer();
    const problem = await findProblem(word, options, bench, renderer);
    const tests = problem.tests === undefined ? undefined : await problem.tests();
    const grading = tests && (await bench.grading());
    // All of them are opened before the first one is asked.
    const samplers = await Promise.all(
      weights.map(({ path }) =>
        engine.service.createSamplingClient({
          ...(path === undefined ? { baseModel: config.model_name } : { modelPath: path }),
          signal,
        }),
      ),
    );
    if (!options.json) printQuestion(problem.problem);
    const counts = new Map<string, { passed: number; graded: number }>();
    for (const [index, source] of weights.entries()) {
      const samples = await sampleFrom(source, samplers[index]!, {
        problem,
        tests,
        grading,
        renderer,
        options,
        config: bench.config,
        signal,
      });
      const graded = samples.filter(({ verdict }) => verdict && verdict.verdict !== "ungraded");
      counts.set(source.label, {
        graded: graded.length,
        passed: graded.filter(({ verdict }) => verdict!.verdict === "pass").length,
      });
    }
    if (grading && !options.json && weights.length * options.n > 1)
      for (const [label, { passed, graded }] of counts) console.log(`${label}: ${passed} of ${graded} passed`);
    return grading && [...counts.values()].some(({ graded }) => graded < options.n) ? 1 : 0;
  } finally {
    await bench.close();
    rmSync(scratch, { recursive: true, force: true });
  }
}

/** What is asked; a text that was given has no name. */
function printQuestion({ id, question }: GivenProblem["problem"]): void {
  const heading = id === givenId ? "── problem" : `── problem ${visibleLine(id, 120)}`;
  console.log([heading, visible(question).trim(), ""].join("\n"));
}

/** Each answer is a request of its own, so that the first one is shown when it is there and not when the last one is. */
async function sampleFrom(
  source: NamedWeights,
  sampler: SamplingClient,
  parts: {
    problem: GivenProblem;
    tests: readonly NormalizedTest[] | undefined;
    grading: GraderConnection | undefined;
    renderer: Renderer;
    options: SampleOptions;
    config: TrainConfig;
    signal: AbortSignal;
  },
): Promise<Sample[]> {
  const { problem, tests, grading, renderer, options, config, signal } = parts;
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
          ? await grading.grader.grade({ problem: { id: task.id, tests }, response: text, truncated }, { signal })
          : undefined;
      const program = extractCode(text);
      const sample = { text, prompt: task.prompt, tokens, logprobs, truncated, seconds, program, verdict };
      print(source, index, sample, options);
      return sample;
    }),
  );
}

function print({ label }: NamedWeights, index: number, sample: Sample, options: SampleOptions): void {
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
