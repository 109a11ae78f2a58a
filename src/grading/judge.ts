// Judges one program: its rounds, each followed by the verdicts on it, and what they make together. A pass needs evidence for every test.
import type { LanguageName } from "../core/languages/languages.ts";
import { type Limits, maxSourceBytes, type TestOutcome } from "../sandbox/sandbox.ts";
import { type Comparator, decodeOutput } from "./compare.ts";
import { type Failure, failureOf, returned } from "./failure.ts";
import { writeJson } from "./json.ts";
import type { NormalizedTest } from "./normalize.ts";
import { ProgramRun, type RunPlace } from "./program-run.ts";

/** Every status. */
export const gradeStatuses = [
  "pass",
  "format_error",
  "compile_error",
  "wrong_answer",
  "runtime_error",
  "time_limit",
  "memory_limit",
  "output_limit",
  "no_result",
  "unserialisable",
  "target_not_found",
  "missing_module",
  "bad_test",
  "sandbox_error",
] as const;
/** Why a test or an answer was judged as it was. */
export type GradeStatus = (typeof gradeStatuses)[number];

/** How one test went. */
export interface TestReport {
  /** Which of the chosen tests. */
  index: number;
  /** How it ended. */
  status: GradeStatus;
  /** Time from start to end. */
  wallMs: number;
  /** Of a failed test: what came out and what was wanted, cut in the middle. */
  detail?: string;
}

export interface Judgement {
  status: GradeStatus;
  passed: number;
  total: number;
  ran: number;
  firstFailed: number | null;
  /** Reports up to the first failure. */
  tests: TestReport[];
  /** The first failure, for people to look at. */
  failure?: Failure;
  /** Under `everyTest`: all of them, in order. */
  failures?: Failure[];
  /** A busy machine could explain it: it is given, not remembered. */
  uncertain?: boolean;
}

export interface JudgeRules {
  language?: LanguageName | undefined;
  comparator: Comparator;
  limits: Limits;
  preamble: boolean;
  /** Wall time of all tests together. */
  problemMs: number;
  /** Go on after a failure, to show every one and count all that pass; the verdict is the same. */
  everyTest?: boolean;
}

/** Failures that are shown of one program. */
const maxFailures = 100;

/** Judges a program; rejects with SandboxError when there is no verdict to give. */
export async function judge(
  where: RunPlace,
  source: string,
  tests: readonly NormalizedTest[],
  rules: JudgeRules,
): Promise<Judgement> {
  const run = new ProgramRun(where, source, tests, rules);
  const reports: TestReport[] = [];
  const failures: Failure[] = [];
  while (!run.ended && (failures.length === 0 || rules.everyTest)) {
    const ran = await run.round();
    await where.place.judged((verdicts) => {
      let judged = 0;
      for (const { outcome, printedBytes, status = verdicts[judged++]! } of ran) {
        const index = reports.length;
        reports.push(reportOf(outcome, tests[index]!, index, status));
        if (status !== "pass" && (failures.length === 0 || (rules.everyTest && failures.length < maxFailures)))
          failures.push(failureOf(index, tests[index]!, outcome, status, printedBytes));
      }
    }, where.signal);
  }
  const firstFailed = reports.findIndex((report) => report.status !== "pass");
  const kept = firstFailed < 0 ? reports : reports.slice(0, firstFailed + 1);
  const base = { total: tests.length, ran: reports.length, tests: kept };
  const failed = (index: number, status: GradeStatus): Judgement => ({
    ...base,
    status,
    passed: rules.everyTest ? reports.filter((report) => report.status === "pass").length : index,
    firstFailed: index,
    failure: failures[0] ?? failureOf(index, tests[index]!, undefined, status),
    ...(rules.everyTest ? { failures } : {}),
    ...(status === "time_limit" && couldBeLoad(run.outcomes[index] ?? run.outcomes.at(-1)) ? { uncertain: true } : {}),
  });
  if (firstFailed >= 0) return failed(firstFailed, reports[firstFailed]!.status);
  if (reports.length === tests.length) return { ...base, status: "pass", passed: tests.length, firstFailed: null };
  return failed(reports.length, "time_limit");
}

/** Longer than any judge takes: it is refused, not run. */
export const isTooLong = (source: string): boolean => Buffer.byteLength(source) > maxSourceBytes;

/** The judgement on a program that is too long. */
export function tooLong(source: string, tests: readonly NormalizedTest[]): Judgement {
  const detail = `the program has ${Buffer.byteLength(source)} bytes; at most ${maxSourceBytes} are run`;
  return {
    status: "compile_error",
    passed: 0,
    total: tests.length,
    ran: 0,
    firstFailed: 0,
    tests: [{ index: 0, status: "compile_error", wallMs: 0, detail }],
    failure: { ...failureOf(0, tests[0]!, undefined, "compile_error"), stderr: detail },
  };
}

/** A time limit that the program reached mostly by itself, working or sleeping, would be reached on an idle machine too. */
function couldBeLoad(outcome: TestOutcome | undefined): boolean {
  return outcome !== undefined && (outcome.waitedMs ?? 0) > 50 + 0.05 * outcome.wallMs;
}

function reportOf(outcome: TestOutcome, test: NormalizedTest, index: number, status: GradeStatus): TestReport {
  const detail = status === "pass" ? "" : detailOf(outcome, test, status);
  return { index, status, wallMs: outcome.wallMs, ...(detail === "" ? {} : { detail }) };
}

function detailOf(outcome: TestOutcome, test: NormalizedTest, status: GradeStatus): string {
  if (status === "missing_module") return missingModule(outcome.stderrTail);
  if (outcome.status !== "finished") return middleCut(outcome.stderrTail.trim());
  if (test.kind === "functional")
    return `got ${middleCut(returned(outcome.frame) || "nothing")}, expected ${middleCut(writeJson(test.expected))}`;
  if (status === "runtime_error") return `exit status ${outcome.exitCode ?? `signal ${outcome.signal}`}`;
  return `got ${quote(decodeOutput(outcome.stdout))}, expected ${quote(test.expected)}`;
}

/** Which module, and how to have it: the last line of the traceback says its name. */
function missingModule(stderr: string): string {
  const name = /No module named '([\w.]{1,80})'[^']*$/.exec(stderr)?.[1];
  if (name === undefined) return "a module that the program imports is not there";
  const [top] = name.split(".");
  return `No module named ${name}: it is not installed where programs run. Programs may use what sandbox_packages=${top} or sandbox_python=PATH brings.`;
}

const quote = (text: string) => JSON.stringify(middleCut(text));

/** At most 200 characters, both ends kept. */
function middleCut(text: string): string {
  return text.length <= 200 ? text : `${text.slice(0, 98)} … ${text.slice(-98)}`;
}
