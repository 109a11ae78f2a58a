// The problem that a word on the command line means: a text, a file, or the id of a problem in the run's data.
import { existsSync, readFileSync, statSync } from "node:fs";
import { ConfigError } from "../../core/errors.ts";
import { nearest } from "../../core/nearest.ts";
import type { Problem } from "../../data/problem.ts";
import { type NormalizedTest, normalizeTests } from "../../grading/index.ts";
import { callOf } from "../../grading/signature.ts";
import type { Renderer } from "../../renderers/index.ts";
import { loadProblems } from "../../rl/tasks.ts";
import type { Workbench } from "../parts/workbench.ts";

export interface GivenProblem {
  problem: Problem;
  /** The tests to run programs on; undefined where none were asked for. */
  tests: (() => Promise<readonly NormalizedTest[]>) | undefined;
}

/** The id of a problem that is given as a text. */
export const givenId = "given";

const isRows = (path: string) => /\.(jsonl|ndjson|parquet)$/i.test(path);

/** `tests`: a file with tests to use; `grade`: use the problem's own. */
export async function findProblem(
  word: string,
  { tests, grade }: { tests: string; grade: boolean },
  bench: Workbench,
  renderer: Renderer,
): Promise<GivenProblem> {
  const given = tests === "" ? undefined : readTests(tests);
  const text = textOf(word);
  if (text !== undefined) {
    if (grade && !given)
      throw new ConfigError(
        "config/no-tests",
        "A program is graded by its problem's tests, and a text has none. Name a file with tests=FILE.",
      );
    return { problem: problemOf(text, given ?? []), tests: given && (() => Promise.resolve(given)) };
  }
  const found = await inData(word, bench, renderer);
  if (given) return { problem: found, tests: () => Promise.resolve(given) };
  const own = async () => {
    const { source, metadata } = found;
    return normalizeTests(await found.loadTests(), { source, metadata }).tests;
  };
  return { problem: found, tests: grade ? own : undefined };
}

/** The text that a word is or names; undefined where it names a problem. */
function textOf(word: string): string | undefined {
  const isFile = existsSync(word) && statSync(word).isFile();
  if (isFile && isRows(word)) return undefined;
  const text =
    word === "-" ? readFileSync(0, "utf8") : isFile ? readFileSync(word, "utf8") : /\s/.test(word) ? word : undefined;
  if (text === undefined || text.trim() !== "") return text?.trim();
  throw new ConfigError("config/one-problem", `${word === "-" ? "stdin" : word} holds no text. Give it the problem.`);
}

/** By its id in the run's data; or the first of a file of problems. */
async function inData(word: string, bench: Workbench, renderer: Renderer): Promise<Problem> {
  if (isRows(word)) {
    const { problems } = await loadProblems({ ...bench.config, test_data: word }, "test", { renderer });
    if (problems.length === 0)
      throw new ConfigError("config/no-problem", `${word} holds no problem that can be used. certify says why.`);
    if (problems.length > 1)
      console.error(`${word} holds ${problems.length} problems; the first one is asked: ${problems[0]!.id}`);
    return problems[0]!;
  }
  const ids: string[] = [];
  for (const split of ["test", "train"] as const) {
    const data = await bench.problems(split, renderer);
    const problem = data.byId(word);
    if (problem) return problem;
    ids.push(...data.problems.map(({ id }) => id));
  }
  const guess = nearest(word, ids) ?? ids[0];
  throw new ConfigError(
    "config/no-problem",
    `"${word}" is neither a file nor the id of one of the run's ${ids.length} problems${guess ? ` (such as ${guess})` : ""}. ` +
      "A problem's text has more than one word; or put it into a file.",
  );
}

function problemOf(question: string, tests: readonly NormalizedTest[]): Problem {
  return {
    id: givenId,
    source: givenId,
    question,
    starterCode: null,
    metadata: {},
    testsBytes: 0,
    facts: { call: callOf(tests) },
    loadTests: () => Promise.resolve("[]"),
    loadSolutions: () => Promise.resolve([]),
  };
}

/** A file of tests: the JSON itself, or a problem's row with its tests. */
function readTests(path: string): readonly NormalizedTest[] {
  let text: string;
  try {
    text = readFileSync(path, "utf8").replace(/^\ufeff/, "");
  } catch (cause) {
    throw new ConfigError("config/no-file", `tests=${path} cannot be read. Name a file with tests.`, { cause });
  }
  let row: { tests?: unknown; ground_truth?: unknown; source?: unknown; metadata?: unknown } | undefined;
  try {
    const value: unknown = JSON.parse(
      isRows(path) ? (text.split("\n").find((line) => line.trim() !== "") ?? "") : text,
    );
    if (typeof value === "object" && value !== null && ("tests" in value || "ground_truth" in value)) row = value;
  } catch {
    // The tests' own reader says what is wrong.
  }
  const raw = row ? (row.tests ?? row.ground_truth) : text;
  const context = row
    ? { source: typeof row.source === "string" ? row.source : undefined, metadata: row.metadata }
    : {};
  const { tests, reason } = normalizeTests(raw, context);
  if (tests.length > 0) return tests;
  throw new ConfigError(
    "config/no-tests",
    `tests=${path} holds no usable tests (${reason}). Write for example [{"input": "1 2\\n", "output": "3\\n"}]; docs/data.md has every form.`,
  );
}
