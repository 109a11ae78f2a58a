// `./whet grade FILE`: one JSON verdict per line of answers or programs, in the order of the input.

import { once } from "node:events";
import { z } from "zod";
import { languageNames } from "../../core/languages/languages.ts";
import { visibleLine } from "../../core/visible.ts";
import { type GradeResult, type NormalizedTests, writeJson } from "../../grading/index.ts";
import { commandOf } from "../command.ts";
import {
  comparatorOfRow,
  gradingShape,
  idOfRow,
  languagesOfRow,
  oneFile,
  openGrading,
  testsOfRow,
  textField,
  whyNoTests,
} from "../problems/grading-options.ts";
import { type JsonRow, mapInOrder, readRows } from "../problems/json-rows.ts";
import { interruptible } from "../terminal/interrupt.ts";
import { Progress } from "../terminal/progress.ts";
import { describeFailure } from "../text/failure.ts";

const GradeOptions = z.strictObject({
  ...gradingShape,
  format_coef: z.number().default(0.1).describe("weight of the format score in the reward"),
  fractional: z.boolean().default(false).describe("reward the share of tests passed instead of all or nothing"),
  thinking: z
    .boolean()
    .default(false)
    .describe("answers come from a thinking model: only what follows </think> counts"),
  details: z
    .boolean()
    .default(false)
    .describe(
      "run every test and say why each failed one did: its input, what was expected, what came out, the end of stderr",
    ),
});

interface Line {
  text: string;
  /** For people, with `details`. */
  why?: string;
  verdict: GradeResult["verdict"] | "bad input";
}

export const command = commandOf(GradeOptions, {
  usage: "grade FILE [key=value …]      FILE holds JSON lines (also .gz); - reads stdin",
  about: [
    "Each line: id, tests, and response (text with fences) or code (a program); also source, metadata, starter_code, comparator, language.",
    "With details=true the reasons are in each line too, and as text on stderr.",
    "Each output line: id, verdict (pass, fail, ungraded), reward, format_ok, status, tests_passed, tests_total, time_ms.",
    "Exit code 1 when a line could not be read, has no usable tests, or could not be graded.",
  ],
  words: Number.POSITIVE_INFINITY,
  async run({ options, words }) {
    const file = oneFile(words, "grade", "JSON lines");
    return interruptible((signal) => gradeFile(file, options, signal));
  },
});

async function gradeFile(file: string, options: z.output<typeof GradeOptions>, signal: AbortSignal): Promise<number> {
  const rows = readRows(file);
  const { sandbox, grader, programsAtOnce } = await openGrading(options, options.reward_timeout, {
    reward: { formatCoef: options.format_coef, fractional: options.fractional },
    everyTest: options.details,
  });
  const progress = new Progress({ label: "graded" });
  const counts = { pass: 0, fail: 0, ungraded: 0, "bad input": 0 };
  const summary = () =>
    `${counts.pass} pass, ${counts.fail} fail, ${counts.ungraded} ungraded${counts["bad input"] ? `, ${counts["bad input"]} unusable` : ""}`;
  try {
    progress.print(`whetstone: grading in ${grader.description.summary}`);
    await mapInOrder(
      rows,
      // Enough that a slow one at the front does not leave the sandbox idle.
      8 * programsAtOnce,
      async (row): Promise<Line> => {
        const problem = row.value && testsOfRow(row.value);
        const request = problem && requestOf(row, problem, options.thinking);
        if (!problem || !request || problem.reason) return { text: unusable(row, problem), verdict: "bad input" };
        const result = await grader.grade(request, { signal });
        const text = lineOf(row, result, options.details);
        return { text, verdict: result.verdict, ...(options.details && { why: whyOf(row, result) }) };
      },
      async (line, row) => {
        counts[line.verdict]++;
        if (!process.stdout.write(`${line.text}\n`)) await once(process.stdout, "drain", { signal });
        if (line.why !== undefined && line.why !== "") progress.print(line.why);
        const done = counts.pass + counts.fail + counts.ungraded + counts["bad input"];
        progress.update(done, { note: summary(), fraction: row.fraction });
      },
      signal,
    );
  } finally {
    progress.end(`whetstone: ${summary()}${signal.aborted ? "; interrupted" : ""}`);
    await sandbox.close();
  }
  return counts.ungraded + counts["bad input"] > 0 ? 1 : 0;
}

function requestOf(row: JsonRow, { tests }: NormalizedTests, thinking: boolean) {
  const value = row.value!;
  const response = textField(value, "response");
  const code = textField(value, "code");
  if (response === undefined && code === undefined) return undefined;
  const id = idOfRow(value, row.line);
  const languages = languagesOfRow(value);
  if (languages === null) return undefined;
  return { problem: { id, tests, languages, comparator: comparatorOfRow(value) }, response, code, thinking };
}

function lineOf(row: JsonRow, result: GradeResult, details: boolean): string {
  const failed = result.firstFailed === null ? undefined : result.tests[result.firstFailed];
  const fields = {
    verdict: result.verdict,
    reward: result.reward,
    format_ok: result.formatOk,
    status: result.status,
    tests_passed: result.passed,
    tests_total: result.total,
    time_ms: Math.round(result.sandboxMs * 10) / 10,
    ...(result.message ? { message: result.message } : {}),
    ...(result.flags.length > 0 ? { flags: result.flags } : {}),
    ...(details && failed?.detail ? { detail: failed.detail } : {}),
    ...(details && result.failure ? { failure: result.failure } : {}),
    ...(details && result.failures ? { failures: result.failures } : {}),
  };
  // The id is written as it came: a number of any length stays the same.
  return `{"id":${idOfRow(row.value, row.line)},${JSON.stringify(fields).slice(1)}`;
}

/** Why an answer did not pass, as text. */
function whyOf(row: JsonRow, result: GradeResult): string {
  if (result.verdict === "pass") return "";
  const id = visibleLine(idOfRow(row.value, row.line), 80);
  const head = `${id}: ${result.verdict}, ${result.status}, ${result.passed} of ${result.total} tests passed before it`;
  if (result.message) return `${head}\n  ${visibleLine(result.message, 2000)}`;
  const failures = result.failures ?? (result.failure ? [result.failure] : []);
  const fact = result.status === "format_error" ? "\n  there is no closed code block in the answer" : "";
  return [head + fact, ...failures.map((failure) => describeFailure(failure, result.total))].join("\n");
}

/** A line that cannot be graded still gets its line, so that outputs and inputs stay side by side; it never gets a reward. */
function unusable(row: JsonRow, problem: NormalizedTests | undefined): string {
  const message = !row.value
    ? `the line is no JSON object: ${row.problem}`
    : problem?.reason
      ? `the tests cannot be used (${problem.reason}): ${whyNoTests(row.value, problem.reason)}`
      : languagesOfRow(row.value) === null
        ? `the language ${writeJson(row.value.get("language")!)} is none that programs are run in: ${languageNames.join(", ")}`
        : 'a line needs "response" or "code", as text';
  const fields = {
    verdict: "ungraded",
    reward: null,
    format_ok: null,
    status: "bad_input",
    tests_passed: 0,
    tests_total: 0,
    time_ms: 0,
    message: `line ${row.line}: ${message}`,
  };
  return `{"id":${idOfRow(row.value, row.line)},${JSON.stringify(fields).slice(1)}`;
}
