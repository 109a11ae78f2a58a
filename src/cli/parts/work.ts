// What a command asks of a model: a data set's programs, judged by their tests; the same as episodes (env=repair); or an environment
// with problems of its own (env=./guess.ts). All of them are tasks, and something that rolls out their groups.

import { countOf } from "../../core/count.ts";
import { ConfigError } from "../../core/errors.ts";
import type { LanguageName } from "../../core/languages/languages.ts";
import type { LoadProgress, Split } from "../../data/index.ts";
import { describeSummary } from "../../data/index.ts";
import { overlapWarning, sharedProblems } from "../../data/overlap.ts";
import { questionTemplateHash } from "../../data/question.ts";
import type { Renderer } from "../../renderers/index.ts";
import type { TrainConfig } from "../../rl/config.ts";
import {
  demonstrate,
  demonstrationSource,
  readConversations,
  solvedProblems,
  thatFit,
} from "../../rl/demonstrations.ts";
import { codeEnvironment, codeFingerprint } from "../../rl/environment/code.ts";
import { maxTurnsOf } from "../../rl/environment/environment.ts";
import type { LoadedEnvironment } from "../../rl/environment/module.ts";
import { type CodeServices, rollOutsOf } from "../../rl/environment/roll-outs.ts";
import { stratifiedSubset } from "../../rl/evaluate.ts";
import { ownTaskSource, ownTasks, problemsFingerprint } from "../../rl/own-problems.ts";
import { type RollOuts, sampleAndJudge } from "../../rl/rollout.ts";
import { evaluationTasks, type Task, type TaskSource, taskSource } from "../../rl/tasks.ts";
import { agentEnvironment } from "./agent-environment.ts";
import type { Workbench } from "./workbench.ts";

/** Problems, and what happens with each. */
export interface Work {
  train: TaskSource;
  test: Task[];
  /** Names the problems in config.json. */
  fingerprints: { train: string; test: string | undefined };
  /** What was read and left out, and a warning where something is odd. */
  summary: { train: string; test: string | undefined; warning: string | undefined };
  /** What else config.json says of it. */
  facts: Record<string, unknown>;
  /** Languages that problems name; they must be installed beside those of the run. */
  languages: readonly LanguageName[];
  /** Answers of an episode, at most. */
  maxTurns: number;
  /** `code`: what grades and runs programs. */
  rollOuts(renderer: Renderer, config: TrainConfig, code: () => Promise<CodeServices>): RollOuts;
}

export interface WorkOptions {
  /** The problems that are asked for; a module gives its own. */
  splits: readonly Split[];
  onProgress?: (split: Split, progress: LoadProgress) => void;
}

/** The problems of a data set; `config.env` says what happens with them. */
export async function dataWork(
  bench: Workbench,
  renderer: Renderer,
  { splits, onProgress }: WorkOptions,
): Promise<Work> {
  const load = (split: Split) =>
    splits.includes(split) ? bench.problems(split, renderer, onProgress) : Promise.resolve(undefined);
  const { config } = bench;
  const problems = await load("train");
  const tests = await load("test");
  const overlap = problems && tests ? sharedProblems(problems, tests).length : 0;
  const environment = config.agent === "" ? codeEnvironment(config.env) : agentEnvironment(config);
  const fingerprint = config.agent === "" ? codeFingerprint(config.env) : `agent ${config.agent}`;
  return {
    train: problems ? taskSource(problems, config, renderer) : noTasks,
    test: tests ? evaluationTasks(tests, config, renderer) : [],
    fingerprints: { train: problems?.fingerprint ?? "", test: tests?.fingerprint },
    summary: {
      train: problems ? describeSummary(problems.summary) : "",
      test: tests && describeSummary(tests.summary),
      warning: problems && tests ? overlapWarning(problems, tests) : undefined,
    },
    facts: {
      prompt_template: questionTemplateHash(),
      ...(overlap > 0 ? { train_test_overlap: overlap } : {}),
      ...(environment && { environment: fingerprint }),
    },
    languages: [
      ...new Set([problems, tests].flatMap((set) => set?.problems.flatMap((one) => one.languages ?? []) ?? [])),
    ],
    maxTurns: environment ? maxTurnsOf(environment, config) : 1,
    rollOuts: (renderer, config, code) =>
      environment ? rollOutsOf(environment, renderer, config, code) : sampleAndJudge(renderer, judgeOf(code)),
  };
}

/** Answers that are given, in a file of conversations or as problems' reference solutions; measured on problems as always. */
export async function supervisedWork(bench: Workbench, renderer: Renderer, options: WorkOptions): Promise<Work> {
  const { config } = bench;
  const { splits, onProgress } = options;
  const read = splits.includes("train") ? await conversationsOf(bench, renderer, onProgress) : [];
  const rows = thatFit(read, config, renderer);
  if (splits.includes("train") && rows.length === 0)
    throw new ConfigError(
      "config/no-demonstrations",
      `${config.train_data} holds nothing to learn from: ${countOf(read.length, "conversation")} or solved problems, none within context_window=${config.context_window}. ` +
        'Give JSON lines with "messages", or problems with "solutions".',
    );
  const measured = await dataWork(bench, renderer, { ...options, splits: splits.filter((split) => split === "test") });
  const left = read.length - rows.length;
  const train = `${countOf(rows.length, "demonstration")} of ${config.train_data}`;
  return {
    ...measured,
    train: demonstrationSource(rows, config, renderer),
    fingerprints: {
      ...measured.fingerprints,
      train: problemsFingerprint(rows.map((row) => ({ ...row, prompt: row.messages }))),
    },
    summary: {
      ...measured.summary,
      train: left > 0 ? `${train}; ${left} longer than the context window left out` : train,
    },
    rollOuts: (...given) => demonstrate(measured.rollOuts(...given)),
  };
}

async function conversationsOf(bench: Workbench, renderer: Renderer, onProgress: WorkOptions["onProgress"]) {
  const { config } = bench;
  const read = readConversations(config.train_data);
  if (read) return read;
  const { problems } = await bench.problems("train", renderer, onProgress);
  return solvedProblems(problems, config);
}

/** An environment's own problems. Where it has no test problems and nothing is trained, the training problems are measured. */
export function ownWork(
  loaded: LoadedEnvironment,
  config: TrainConfig,
  renderer: Renderer,
  { splits }: WorkOptions,
): Work {
  const { problems, file } = loaded;
  const environment = config.agent === "" ? loaded.environment : agentEnvironment(config, loaded.environment);
  const fingerprint = config.agent === "" ? loaded.fingerprint : `${loaded.fingerprint} agent ${config.agent}`;
  const isMeasured = loaded.testProblems.length === 0 && !splits.includes("train");
  const testProblems = isMeasured ? problems : loaded.testProblems;
  const limits = { ...config, max_tokens: config.eval_max_tokens || config.max_tokens };
  const sources = testProblems.map((problem) => ({ source: "own", ...problem }));
  const measured = stratifiedSubset(sources, config.eval_max_problems, config.seed);
  return {
    train: ownTaskSource(problems, config, renderer),
    test: ownTasks(measured, limits, renderer),
    fingerprints: {
      train: problemsFingerprint(problems),
      test: testProblems.length > 0 ? problemsFingerprint(testProblems) : undefined,
    },
    summary: {
      train: `${countOf(problems.length, "problem")} of ${file}`,
      test:
        testProblems.length > 0
          ? `${countOf(testProblems.length, "problem")} of ${file}${isMeasured ? ", which has no testProblems" : ""}`
          : undefined,
      warning: undefined,
    },
    facts: { environment: fingerprint },
    languages: [],
    maxTurns: maxTurnsOf(environment, config),
    rollOuts: (renderer, config, code) => rollOutsOf(environment, renderer, config, code),
  };
}

const noTasks: TaskSource = { size: 0, batch: async () => [] };

/** The judge of a sandbox that is opened already. */
const judgeOf =
  (code: () => Promise<CodeServices>): CodeServices["judge"] =>
  async (...request) =>
    (await code()).judge(...request);
