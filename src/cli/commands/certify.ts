// `./whet certify PROBLEMS`: is this problem set fit for training?

import { z } from "zod";
import { countOf } from "../../core/count.ts";
import { whet } from "../../core/program.ts";
import { isProblemFile } from "../../data/formats.ts";
import { describeProblem } from "../../data/left-out.ts";
import { idOf, languagesOf, questionOf } from "../../data/problem.ts";
import { type Fields, fieldNames, solutionsOf } from "../../data/rows.ts";
import { certify } from "../../grading/certify.ts";
import { type Json, JsonNumber, type JsonObject, writeJson } from "../../grading/index.ts";
import { TrainConfig } from "../../rl/config.ts";
import { refuseWords } from "../arguments/options.ts";
import { presetOf } from "../arguments/shown-defaults.ts";
import { commandOf } from "../command.ts";
import { certifySuite } from "../problems/certify-suite.ts";
import {
  comparatorOfRow,
  gradingShape,
  idOfRow,
  languagesOfRow,
  oneFile,
  openGrading,
  rawTestsOf,
  testsOfRow,
  textField,
  whyNoTests,
} from "../problems/grading-options.ts";
import { type ProblemRow, problemRows } from "../problems/problem-rows.ts";
import { interruptible } from "../terminal/interrupt.ts";
import { type CertifyRow, printTable, rowOf } from "../text/certify.ts";

const CertifyOptions = z.strictObject({
  ...gradingShape,
  reward_timeout: z
    .number()
    .positive()
    .optional()
    .describe("wall seconds per test; unless given as training here would have it: 1 with preset=nano, else 6"),
  repeats: z.int().min(1).default(2).describe("times that each solution is graded; all must agree"),
  max_solutions: z.int().min(1).default(3).describe("reference solutions tried per problem"),
  max_tests_bytes: TrainConfig.shape.max_tests_bytes,
  show: z.enum(["all", "bad"]).default("all").describe("rows of the table"),
  suite: z.string().default("").describe("instead of PROBLEMS: a suite, by the names of eval suite="),
});

export const command = commandOf(CertifyOptions, {
  usage: "certify PROBLEMS [key=value …]",
  about: [
    "PROBLEMS is a file of JSON lines (also .gz), a Parquet file, a folder of such files, a named set as in train_data=, or - for stdin.",
    "Each row is a problem: question, tests, solutions (a list) or solution; also id, source, metadata, starter_code, comparator, language.",
    "A problem is good when training can use it, its solutions pass every time, and empty, echo and constant programs fail. Below one whose",
    "solution fails stand the test, what came out and what may be meant. What training will leave out is said at the end, with the reason;",
    "what else is bad it would use. Exit code 1 when one is bad.",
  ],
  words: Number.POSITIVE_INFINITY,
  async run({ options, given, words }) {
    if (options.suite !== "") {
      refuseWords(words, `${whet} certify`);
      return interruptible((signal) => certifySuite(options, given, signal));
    }
    const file = oneFile(words, "certify", "problems, a folder of them");
    return interruptible((signal) => certifyFile(file, options, signal));
  },
});

async function certifyFile(
  file: string,
  options: z.output<typeof CertifyOptions>,
  signal: AbortSignal,
): Promise<number> {
  const rows = problemRows(file, options.max_tests_bytes);
  const first = await rows.next(); // a name that is wrong is said before anything is started
  const { preset, usual } = presetOf(undefined);
  const limitS = options.reward_timeout ?? usual.reward_timeout;
  const { sandbox, grader, programsAtOnce } = await openGrading(options, limitS, { cacheSize: 0 });
  const counts = { good: 0, bad: 0 };
  const leftOut = new Map<string, number>();
  const ids = new Set<string>();
  let shownFile = file;
  const certifyRow = async (row: ProblemRow): Promise<CertifyRow> => {
    const name = row.value ? nameOf(row.value, row.line) : `line ${row.line}`;
    const drop = reasonToDrop(row, ids, options.max_tests_bytes);
    if (drop) {
      const verdict = `bad: train leaves it out, ${drop.reason}: ${drop.why}`;
      return { cells: [name, ...Array(6).fill("-"), verdict], good: false, leftOut: drop.reason, details: [] };
    }
    const { tests } = testsOfRow(row.value!, row.source);
    const languages = languagesOfRow(row.value!) ?? row.languages;
    const problem = { id: name, tests, languages, comparator: comparatorOfRow(row.value!) ?? options.comparator };
    const solutions = solutionsOf((name) => row.value!.get(name)).slice(0, options.max_solutions);
    const certificate = await certify(grader, { problem, solutions, repeats: options.repeats }, { signal });
    return rowOf(name, tests.length, certificate, limitS);
  };
  const take = (line: CertifyRow, row: ProblemRow) => {
    if (row.file !== undefined && row.file !== shownFile) console.log(`${row.file}:`);
    shownFile = row.file ?? shownFile;
    if (line.leftOut !== undefined) leftOut.set(line.leftOut, (leftOut.get(line.leftOut) ?? 0) + 1);
  };
  const why = options.reward_timeout === undefined ? ` (preset=${preset})` : "";
  const note = `whetstone: certifying in ${sandbox.description.summary}; ${limitS} s per test${why}`;
  const problems = { rows: withFirst(first, rows), window: 2 * programsAtOnce, show: options.show, note };
  try {
    await printTable({ ...problems, certify: certifyRow, fractionOf: (row) => row.fraction, take }, counts, signal);
  } finally {
    console.error(`whetstone: ${forecast(file, counts, leftOut)}`);
    await sandbox.close();
  }
  return counts.bad > 0 ? 1 : 0;
}

/** What training makes of the file; a model with a short context window may leave out more. */
function forecast(file: string, { good, bad }: { good: number; bad: number }, leftOut: Map<string, number>): string {
  if (file === "-" || (/\.\w+$/.test(file) && !isProblemFile(file)))
    return `train reads .jsonl, .ndjson and .parquet files; give ${file === "-" ? "this" : file} such a name to train on it`;
  const reasons = [...leftOut].map(([reason, count]) => `${count} ${reason}`).join(", ");
  const dropped = [...leftOut.values()].reduce((sum, count) => sum + count, 0);
  const kept = countOf(good + bad - dropped, "problem");
  const doubtful = bad - dropped > 0 ? `, ${bad - dropped} of them bad: fix or remove those` : "";
  return `train would use ${kept}${doubtful}; it would leave out ${dropped === 0 ? "none" : reasons}`;
}

/** Why training leaves a row out, by the rules of its loader. */
function reasonToDrop(
  row: ProblemRow,
  ids: Set<string>,
  maxTestsBytes: number,
): { reason: string; why: string } | undefined {
  if (!row.value) return { reason: "bad_row", why: row.problem };
  const { value } = row;
  const fields: Fields = Object.fromEntries(fieldNames.map((name) => [name, plain(value.get(name))]));
  const drop = (reason: Parameters<typeof describeProblem>[1]) => ({
    reason,
    why: describeProblem({ fields, where: "", columns: [...value.keys()] }, reason),
  });
  if (questionOf(fields) === undefined) return drop("no_question");
  const tests = rawTestsOf(value);
  const bytes = typeof tests === "string" ? tests : tests === undefined ? "" : writeJson(tests);
  if (Buffer.byteLength(bytes) > maxTestsBytes) return drop("tests_too_big");
  if (languagesOf(fields) === null) return drop("unknown_language");
  const { reason } = testsOfRow(value, row.source);
  if (reason) return { reason, why: whyNoTests(value, reason) };
  const own = idOf(fields);
  const id = `${row.part}/${own}`;
  if (own !== undefined && ids.has(id)) return drop("duplicate_id");
  if (own !== undefined) ids.add(id);
  return undefined;
}

async function* withFirst<T>(first: IteratorResult<T, unknown>, rest: AsyncGenerator<T>): AsyncGenerator<T> {
  if (!first.done) yield first.value;
  yield* rest;
}

const plain = (value: Json | undefined): unknown => (value instanceof JsonNumber ? Number(value.text) : value);

const nameOf = (row: JsonObject, line: number) => textField(row, "id") ?? idOfRow(row, line);
