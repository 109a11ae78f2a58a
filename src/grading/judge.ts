// Runs one program on its tests and judges what came out. The sandbox gets inputs only; expected values stay here, and a pass
// needs evidence for every test.
import { whet } from "../core/program.ts";
import { endsRound } from "../sandbox/rounds.ts";
import {
  type Job,
  type Limits,
  maxSourceBytes,
  type Sandbox,
  SandboxError,
  type TestInput,
  type TestOutcome,
} from "../sandbox/sandbox.ts";
import { type Comparator, compareInSlices, decodeOutput } from "./compare.ts";
import { type Failure, failureOf, returned } from "./failure.ts";
import { writeJson } from "./json.ts";
import type { NormalizedTest } from "./normalize.ts";
import { longestFrame, readFrame, valuesMatch } from "./values.ts";

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
  comparator: Comparator;
  limits: Limits;
  preamble: boolean;
  /** Wall time of all tests together. */
  problemMs: number;
  /** Go on after a failure, to show every one and count all that pass; the verdict is the same. */
  everyTest?: boolean;
}

/** Failures that are shown of one program. */
const mostFailures = 100;

const inputsOf = new WeakMap<readonly NormalizedTest[], readonly TestInput[]>();

/** What a sandbox may know of the tests. */
export function sandboxInputs(tests: readonly NormalizedTest[]): readonly TestInput[] {
  let inputs = inputsOf.get(tests);
  if (!inputs) {
    inputs = tests.map((test) =>
      test.kind === "stdin"
        ? { kind: "stdin", stdin: test.input }
        : { kind: "call", functionName: test.functionName, argumentsJson: test.args.map(writeJson) },
    );
    inputsOf.set(tests, inputs);
  }
  return inputs;
}

/** Judges a program; rejects with SandboxError when there is no verdict to give. */
export async function judge(
  sandbox: Sandbox,
  source: string,
  tests: readonly NormalizedTest[],
  rules: JudgeRules,
  signal?: AbortSignal,
): Promise<Judgement> {
  if (Buffer.byteLength(source) > maxSourceBytes) return tooLong(source, tests);
  const job: Job = { source, tests: sandboxInputs(tests), limits: rules.limits, preamble: rules.preamble };
  const reports: (TestReport | Promise<TestReport>)[] = [];
  const failures = new Map<number, Failure>();
  let lowest = Number.POSITIVE_INFINITY;
  let spentMs = 0;
  const outcomes = await sandbox.run(
    job,
    (outcome, index) => {
      spentMs += outcome.wallMs;
      // A comparison that takes long goes on beside the next test; its report is awaited below.
      const note = (report: TestReport) => {
        const first = index < lowest;
        if (report.status !== "pass" && (first || (rules.everyTest && failures.size < mostFailures)))
          failures.set(index, failureOf(index, tests[index]!, outcome, report.status));
        if (report.status !== "pass") lowest = Math.min(lowest, index);
        // Judged: what came out is not needed any more, and may be large.
        outcome.stdout = new Uint8Array();
        delete outcome.frame;
        return report;
      };
      const endedItself = outcome.status !== "finished" || outcome.exitCode !== 0 || outcome.signal !== null;
      const report = reportOf(outcome, tests[index]!, index, rules.comparator);
      reports[index] = report instanceof Promise ? report.then(note) : note(report);
      const decided = endedItself || (failures.size > 0 && endsRound(index + 1));
      return (decided && !rules.everyTest) || spentMs > rules.problemMs ? "stop" : "continue";
    },
    signal ? { signal } : {},
  );
  const settled = await Promise.all(reports.map((report) => Promise.resolve(report)));
  const firstFailed = settled.findIndex((report) => report.status !== "pass");
  const kept = firstFailed < 0 ? settled : settled.slice(0, firstFailed + 1);
  const base = { total: tests.length, ran: outcomes.length, tests: kept };
  const failed = (index: number, status: GradeStatus): Judgement => ({
    ...base,
    status,
    passed: rules.everyTest ? settled.filter((report) => report.status === "pass").length : index,
    firstFailed: index,
    failure: failures.get(index) ?? failureOf(index, tests[index]!, undefined, status),
    ...(rules.everyTest ? { failures: [...failures.values()].sort((a, b) => a.testIndex - b.testIndex) } : {}),
    ...(status === "time_limit" && couldBeLoad(outcomes[index] ?? outcomes.at(-1)) ? { uncertain: true } : {}),
  });
  if (firstFailed >= 0) return failed(firstFailed, settled[firstFailed]!.status);
  if (settled.length === tests.length) return { ...base, status: "pass", passed: tests.length, firstFailed: null };
  if (spentMs > rules.problemMs) return failed(settled.length, "time_limit");
  throw new SandboxError(
    "sandbox/incomplete",
    `The sandbox answered for ${settled.length} of ${tests.length} tests and gave no reason. Grade the program again; if it repeats, run ${whet} doctor.`,
  );
}

/** Longer than any judge takes: refused before it is run. */
function tooLong(source: string, tests: readonly NormalizedTest[]): Judgement {
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

function reportOf(
  outcome: TestOutcome,
  test: NormalizedTest,
  index: number,
  comparator: Comparator,
): TestReport | Promise<TestReport> {
  const report = (status: GradeStatus, detail?: string): TestReport => ({
    index,
    status,
    wallMs: outcome.wallMs,
    ...(detail ? { detail } : {}),
  });
  if (outcome.status === "missing-module") return report("missing_module", missingModule(outcome.stderrTail));
  if (outcome.status !== "finished") return report(statusNames[outcome.status], middleCut(outcome.stderrTail.trim()));
  if (test.kind === "functional") {
    const status = judgeValue(outcome.frame, test);
    return status === "pass" ? report(status) : report(status, valueDetail(outcome.frame, test));
  }
  if (outcome.exitCode !== 0 || outcome.signal !== null)
    return report("runtime_error", `exit status ${outcome.exitCode ?? `signal ${outcome.signal}`}`);
  const actual = decodeOutput(outcome.stdout);
  const answer = (matches: boolean) =>
    matches ? report("pass") : report("wrong_answer", `got ${quote(actual)}, expected ${quote(test.expected)}`);
  const matches = compareInSlices(actual, test.expected, comparator);
  return typeof matches === "boolean" ? answer(matches) : matches.then(answer);
}

/** Whether the value in a frame is an expected one. */
function judgeValue(frame: string | undefined, test: NormalizedTest & { kind: "functional" }): GradeStatus {
  if (frame === undefined) return "no_result";
  // Looked at before it is read: a value far larger than the expected one cannot be it, and reading megabytes takes time.
  const longest = Math.max(longestFrame(test.expected), longestFrame(test.expectedAlt ?? null));
  if (frame.length > longest) return "wrong_answer";
  const tree = readFrame(frame);
  if (!tree) return "no_result";
  if (valuesMatch(tree, test.expected)) return "pass";
  return test.expectedAlt !== undefined && valuesMatch(tree, test.expectedAlt) ? "pass" : "wrong_answer";
}

/** Which module, and how to have it: the last line of the traceback says its name. */
function missingModule(stderr: string): string {
  const name = /No module named '([\w.]{1,80})'[^']*$/.exec(stderr)?.[1];
  if (name === undefined) return "a module that the program imports is not there";
  const [top] = name.split(".");
  return `No module named ${name}: it is not installed where programs run. Programs may use what sandbox_packages=${top} or sandbox_python=PATH brings.`;
}

const valueDetail = (frame: string | undefined, test: NormalizedTest & { kind: "functional" }) =>
  `got ${middleCut(returned(frame) || "nothing")}, expected ${middleCut(writeJson(test.expected))}`;

const statusNames: Record<Exclude<TestOutcome["status"], "finished" | "missing-module">, GradeStatus> = {
  "compile-error": "compile_error",
  "runtime-error": "runtime_error",
  "time-limit": "time_limit",
  "memory-limit": "memory_limit",
  "output-limit": "output_limit",
  "no-result": "no_result",
  unserialisable: "unserialisable",
  "target-not-found": "target_not_found",
  "bad-arguments": "bad_test",
};

const quote = (text: string) => JSON.stringify(middleCut(text));

/** At most 200 characters, both ends kept. */
function middleCut(text: string): string {
  return text.length <= 200 ? text : `${text.slice(0, 98)} … ${text.slice(-98)}`;
}
