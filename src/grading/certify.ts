// Checks that a problem is fit for training: its reference solutions pass, programs that know nothing fail, and verdicts repeat.
import { outputsMatch } from "./compare.ts";
import type { Failure } from "./failure.ts";
import type { GradeRequest, GradeResult, Grader } from "./grade.ts";
import { writeJson } from "./json.ts";
import type { NormalizedTest } from "./normalize.ts";

export interface CertifyRequest {
  problem: GradeRequest["problem"];
  solutions: readonly string[];
  /** Times that each solution is graded. The grader must not remember verdicts. */
  repeats: number;
}

/** A reference solution that does not pass, and the first test it fails. */
export interface FailedSolution {
  /** Counted from 0. */
  index: number;
  /** Its text. */
  solution: string;
  /** How the test ended. */
  status: string;
  /** The test. */
  test: NormalizedTest;
  /** What went in, what was wanted, what came out. */
  failure: Failure;
  /** What else is known, such as the module that is missing. */
  detail: string | undefined;
}

/** What certifying one problem found. */
export interface Certificate {
  /** Solutions that passed every time. */
  goldPassed: number;
  /** How many reference solutions were tried. */
  gold: number;
  /** Names of know-nothing programs that passed. */
  fooledBy: string[];
  /** Every repeat gave the same verdict and status. */
  repeatable: boolean;
  /** Solutions that failed a test. */
  failed: FailedSolution[];
  /** What is wrong with the problem; empty when it is fit. */
  problems: string[];
  /** A sandbox failed: the answer is incomplete. */
  ungraded: boolean;
}

/** Checks one problem. */
export async function certify(
  grader: Grader,
  { problem, solutions, repeats }: CertifyRequest,
  options: { signal?: AbortSignal } = {},
): Promise<Certificate> {
  const problems: string[] = [];
  const failures: FailedSolution[] = [];
  let ungraded = false;
  const grade = async (code: string, languages = problem.languages): Promise<GradeResult> => {
    const result = await grader.grade({ problem: { ...problem, languages }, code }, options);
    if (result.verdict === "ungraded") {
      ungraded = true;
      problems.push(`not graded: ${result.message ?? result.status}`);
    }
    return result;
  };

  let goldPassed = 0;
  let repeatable = true;
  for (const [index, solution] of solutions.entries()) {
    const results: GradeResult[] = [];
    for (let time = 0; time < repeats; time++) results.push(await grade(solution));
    if (results.every(({ verdict }) => verdict === "pass")) goldPassed++;
    else {
      const failed = results.find(({ verdict }) => verdict !== "pass")!;
      const at = failed.firstFailed ?? 0;
      if (failed.verdict === "fail") problems.push(`solution ${index + 1}: ${failed.status} on test ${at + 1}`);
      if (failed.failure) {
        const { failure, status, tests } = failed;
        const [test, detail] = [problem.tests[failure.testIndex]!, tests[at]?.detail];
        failures.push({ index, solution, status, test, failure, detail });
      }
    }
    if (new Set(results.map(({ status }) => status)).size > 1) {
      repeatable = false;
      problems.push(`solution ${index + 1}: verdicts differ (${results.map(({ status }) => status).join(", ")})`);
    }
  }
  if (solutions.length === 0) problems.push("no reference solution");

  const fooledBy: string[] = [];
  for (const [name, code] of knowNothingPrograms(problem.tests)) {
    if ((await grade(code, ["python"])).verdict === "pass") fooledBy.push(name);
  }
  if (oneAnswerFitsAll(problem)) fooledBy.push("constant");
  if (fooledBy.length > 0)
    problems.push(`passed by a program that knows nothing (${[...new Set(fooledBy)].join(", ")})`);
  const gold = solutions.length;
  return { goldPassed, gold, fooledBy: [...new Set(fooledBy)], repeatable, failed: failures, problems, ungraded };
}

/** Programs in Python that must fail whatever the problem and its language are. None holds an expected output: those do not go into a sandbox. */
function knowNothingPrograms(tests: readonly NormalizedTest[]): [name: string, code: string][] {
  const first = tests[0];
  if (first === undefined) return [];
  if (first.kind === "stdin")
    return [
      ["empty", ""],
      ["echo", "import sys\nsys.stdout.write(sys.stdin.read())"],
      ...["0", "1", "-1", "YES", "NO"].map((text): [string, string] => ["constant", `print(${JSON.stringify(text)})`]),
    ];
  const definition = (body: string) => `def ${first.functionName}(*values):\n    return ${body}`;
  return [
    ["empty", ""],
    ["echo", definition("values[0] if values else None")],
    ...["0", "1", "None", "True", "False", "[]", '""'].map((value): [string, string] => [
      "constant",
      definition(value),
    ]),
  ];
}

/** Names of know-nothing programs that would pass. Their outputs are known, so nothing is run, and every problem of a run can be checked. */
export function wouldFool(problem: GradeRequest["problem"]): string[] {
  const { tests, comparator } = problem;
  const fooledBy = new Set<string>();
  const [first] = tests;
  if (first?.kind === "stdin") {
    const passes = (output: (input: string) => string) =>
      tests.every((test) => test.kind === "stdin" && outputsMatch(output(test.input), test.expected, comparator));
    if (passes(() => "")) fooledBy.add("empty");
    if (passes((input) => input)) fooledBy.add("echo");
  } else if (first?.kind === "functional") {
    const passes = tests.every(
      (test) =>
        test.kind === "functional" && test.args.length > 0 && writeJson(test.args[0]!) === writeJson(test.expected),
    );
    if (passes) fooledBy.add("echo");
  }
  if (oneAnswerFitsAll(problem)) fooledBy.add("constant");
  return [...fooledBy];
}

/** Whether a program that always gives the first test's answer would pass; decided here, without running anything. */
function oneAnswerFitsAll({ tests, comparator }: GradeRequest["problem"]): boolean {
  const [first, ...rest] = tests;
  if (first === undefined) return false;
  if (first.kind === "stdin")
    return rest.every((test) => test.kind === "stdin" && outputsMatch(first.expected, test.expected, comparator));
  const answer = writeJson(first.expected);
  return rest.every((test) => test.kind === "functional" && writeJson(test.expected) === answer);
}
