// Judges by a suite's own check without putting it, or an expected value, beside the program: the check is run once with the suite's
// reference, which shows what it calls; a program gets those calls and nothing else; then the check alone is run on what it gave. Tests
// that look at more than returned values are run in the program's process, as their official harness does, and are counted apart.
import { readFileSync } from "node:fs";
import { Limiter } from "../core/limiter.ts";
import { limitsFor } from "../grading/grade.ts";
import {
  type GradeRequest,
  type GradeResult,
  type Grader,
  type Json,
  type NormalizedTest,
  toJson,
} from "../grading/index.ts";
import { extractInThread } from "../grading/judge-thread.ts";
import { rewardOf } from "../grading/reward.ts";
import { type Sandbox, SandboxError, type TestOutcome } from "../sandbox/sandbox.ts";

/** How one problem of a suite is judged. */
export interface Check {
  /** The whole program that an answer's code is a part of. */
  program(code: string): string;
  /** A program that is right. */
  reference: string;
  /** Python: asserts, or with `hasCheck` the definition of check(candidate). */
  test: string;
  hasCheck: boolean;
  /** The functions that are asked; empty: those of the reference that the test names. */
  entries: readonly string[];
  /** The whole of it is run in the program's process: its test cases look at more than what is returned. */
  unittest: boolean;
  /** Seconds for all calls together. */
  timeoutS: number;
  /** Processor seconds for one call, or four times what the reference takes; undefined: only all together are limited. */
  callTimeoutS?: number;
}

/** A check that was tried with its reference. */
interface ReadyCheck extends Check {
  /** Why the program and its check share a process; undefined: they do not. */
  inside?: string;
  calls: readonly Call[];
  limits: readonly number[];
  tests: readonly NormalizedTest[];
}

type Tree = readonly unknown[];
type Call = readonly [name: string, args: Tree, kwargs: Tree];
type Raised = readonly [type: string, text: string];
interface Answer {
  failed?: Raised;
  loading?: Raised;
  missing?: string;
  error?: Raised | null;
  held?: boolean;
  asked?: number;
  opaque?: boolean;
  entries?: string[];
  calls?: Call[];
  values?: Tree[];
  seconds?: number[];
  outcomes?: Tree[];
}

const driver = readFileSync(new URL("check.py", import.meta.url), "utf8");
/** For the check alone, beside what the program may take. */
const checkMarginS = 10;

export class Checks {
  readonly #sandbox: Sandbox;
  readonly #memoryBytes: number;
  readonly #limiter: Limiter;
  readonly #ready = new WeakMap<readonly NormalizedTest[], ReadyCheck>();

  constructor(sandbox: Sandbox, memoryMb: number) {
    this.#sandbox = sandbox;
    this.#memoryBytes = memoryMb * 1024 ** 2;
    this.#limiter = new Limiter(2 * (sandbox.description.programsAtOnce ?? 4));
  }

  /** Tries a check with its reference; why it cannot judge here where that does not pass. */
  prepare(check: Check, signal?: AbortSignal): Promise<ReadyCheck | { unfit: string }> {
    return this.#limiter.run(() => this.#prepare(check, signal), { signal });
  }

  async #prepare(check: Check, signal: AbortSignal | undefined): Promise<ReadyCheck | { unfit: string }> {
    const tried = check.unittest ? undefined : await this.#run("record", check, check.reference, {}, 20, signal);
    const said = tried?.answer;
    const wrong =
      tried && (said ? (said.failed ?? said.error) : ["", tried.outcome.stderrTail || tried.outcome.status]);
    if (wrong) return { unfit: `its reference does not pass its own check here (${wrong.filter(Boolean).join(": ")})` };
    const { calls = [], values = [], seconds = [], entries = [], opaque = false } = said ?? {};
    const callS = check.callTimeoutS;
    const ready: ReadyCheck = {
      ...check,
      entries: check.unittest ? check.entries : entries,
      calls,
      limits: calls.map((_, at) => (callS === undefined ? 0 : Math.max(callS, 4 * seconds[at]!))),
      tests: check.unittest || opaque ? [] : calls.map((call, at) => testOf(call, values[at]!)),
      ...(check.unittest && { inside: "its test cases look at more than what is returned" }),
      ...(opaque && { inside: "its arguments or results are objects of its own classes" }),
    };
    // They stand for the calls nobody sees: two that no constant fits.
    const functionName = ready.entries[0] ?? "solution";
    if (ready.tests.length === 0)
      ready.tests = [true, false].map((expected) => ({ kind: "functional", functionName, args: [], expected }));
    if (ready.inside) {
      const { status, detail } = await this.#inside(ready, check.reference, signal);
      if (status !== "pass") return { unfit: `its reference does not pass its own tests here (${detail ?? status})` };
    }
    this.#ready.set(ready.tests, ready);
    return ready;
  }

  /** Judges what it has prepared, and leaves the rest to `others`. */
  grader(others: Grader): Grader {
    return {
      ...others,
      grade: async (request, options = {}) => {
        const check = this.#ready.get(request.problem.tests);
        if (!check) return others.grade(request, options);
        return this.#limiter.run(() => this.#grade(check, request, options.signal), options);
      },
    };
  }

  async #grade(check: ReadyCheck, request: GradeRequest, signal: AbortSignal | undefined): Promise<GradeResult> {
    const start = performance.now();
    const finish = (judged: Judged, code: string | null): GradeResult => {
      const { status, at = 0 } = judged;
      const total = check.tests.length;
      const verdict = status === "pass" ? "pass" : status === "sandbox_error" ? "ungraded" : "fail";
      const passed = status === "pass" ? total : Math.min(at, total - 1);
      const shown = { testIndex: passed, status, expected: "", printed: judged.detail ?? "", stderr: "" };
      return {
        ...{ verdict, status, code, passed, total, tests: [], flags: [], cached: false, queueMs: 0, sandboxMs: 0 },
        reward: rewardOf({ verdict, formatOk: code !== null, passed, total }),
        formatOk: code !== null,
        truncated: request.truncated ?? false,
        language: "python",
        ran: total,
        firstFailed: verdict === "fail" ? passed : null,
        wallMs: performance.now() - start,
        ...(verdict === "fail" && { failure: { ...shown, input: callText(check.tests[passed]) } }),
        ...(judged.detail !== undefined && { message: judged.detail }),
      };
    };
    const { thinking = false } = request;
    const found = request.code ?? (await extractInThread(request.response ?? "", { thinking }))?.code ?? null;
    if (found === null) return finish({ status: "format_error" }, null);
    const program = request.code === undefined ? check.program(found) : found;
    try {
      return finish(
        await (check.inside ? this.#inside(check, program, signal) : this.#apart(check, program, signal)),
        program,
      );
    } catch (error) {
      if (signal?.aborted || !(error instanceof SandboxError)) throw error;
      return finish({ status: "sandbox_error", detail: error.message }, program);
    }
  }

  async #apart(check: ReadyCheck, program: string, signal: AbortSignal | undefined): Promise<Judged> {
    const { calls, limits, timeoutS } = check;
    const ran = await this.#run("calls", check, program, { calls, limits }, timeoutS, signal);
    const { answer } = ran;
    if (!answer) return ended(ran.outcome);
    const { failed, loading = failed, missing, outcomes = [] } = answer;
    if (loading) return raised(loading);
    if (missing !== undefined) return { status: "target_not_found", detail: `there is no function ${missing}` };
    const judged = await this.#run(
      "replay",
      check,
      check.reference,
      { calls, outcomes },
      timeoutS + checkMarginS,
      signal,
    );
    if (!judged.answer) return ended(judged.outcome);
    const { held, asked = 1, error } = judged.answer;
    if (held) return { status: "pass" };
    const at = Math.max(0, asked - 1);
    const [type, text] = error ?? ["", ""];
    if (type === "Late") return { status: "time_limit", at, detail: "the call took too long" };
    if (type === "Diverged")
      return { status: "bad_test", at, detail: "the check made other calls than with its reference" };
    const own = outcomes[at];
    if (own?.[0] === "r") return { ...raised([String(own[1]), String(own[2])]), at };
    return { status: "wrong_answer", at, detail: [type, text].filter(Boolean).join(": ") };
  }

  async #inside(check: Check, program: string, signal: AbortSignal | undefined): Promise<Judged> {
    const { answer, outcome } = await this.#run("inside", check, program, {}, check.timeoutS, signal);
    if (!answer) return ended(outcome);
    if (answer.held === true) return { status: "pass" };
    const error = answer.failed ?? answer.error ?? ["", ""];
    return answer.failed && error[0] !== "AssertionError"
      ? raised(error)
      : { status: "wrong_answer", detail: error.filter(Boolean).join(": ") };
  }

  async #run(what: string, check: Check, program: string, more: object, timeoutS: number, signal?: AbortSignal) {
    const { test, entries, unittest, hasCheck } = check;
    const hidden = what === "calls" ? {} : { test, unittest, entries, check: hasCheck };
    const stdin = JSON.stringify({ what, program, ...hidden, ...more });
    const limits = limitsFor(timeoutS, { memoryBytes: this.#memoryBytes });
    const job = { source: driver, tests: [{ kind: "stdin" as const, stdin }], limits, preamble: false };
    const [outcome] = await this.#sandbox.run(job, () => "continue", signal ? { signal } : {});
    return { outcome: outcome!, answer: readAnswer(outcome!) };
  }
}

/** How a program was judged; `at`: the call where it showed. */
interface Judged {
  status: GradeResult["status"];
  at?: number;
  detail?: string;
}

/** What came out may be anything: the program could write it itself. */
function readAnswer({ status, stdout }: TestOutcome): Answer | undefined {
  if (status !== "finished") return undefined;
  try {
    const answer: unknown = JSON.parse(Buffer.from(stdout).toString("utf8"));
    if (typeof answer !== "object" || answer === null) return undefined;
    const { outcomes = [] } = answer as Answer;
    return Array.isArray(outcomes) && outcomes.every((one) => Array.isArray(one)) ? answer : undefined;
  } catch {
    return undefined;
  }
}

const statuses: Partial<Record<TestOutcome["status"], GradeResult["status"]>> = {
  "time-limit": "time_limit",
  "memory-limit": "memory_limit",
  "output-limit": "output_limit",
  "runtime-error": "runtime_error",
};
const ended = ({ status, stderrTail }: TestOutcome): Judged => ({
  status: statuses[status] ?? "no_result",
  detail: stderrTail.trim().slice(-300) || "the program ended its process",
});

function raised([type, text]: Raised): Judged {
  const status =
    type === "ModuleNotFoundError"
      ? "missing_module"
      : type === "SyntaxError" || type === "IndentationError"
        ? "compile_error"
        : "runtime_error";
  return { status, detail: `${type}: ${text}`.slice(0, 500) };
}

/** A call as people and know-nothing programs see it: JSON has no tuples and no sets. */
function testOf([functionName, args]: Call, value: Tree): NormalizedTest {
  return {
    kind: "functional",
    functionName,
    args: toJson(plain(args)) as Json[],
    expected: toJson(plain(value)) as Json,
  };
}

function plain([tag, payload]: Tree): unknown {
  if (tag === "n") return null;
  if (tag === "b") return payload === 1;
  if (tag === "i")
    return Number(BigInt(`0x${String(payload).replace("-", "")}`)) * (String(payload)[0] === "-" ? -1 : 1);
  if (tag === "f") return Number(payload);
  if (tag === "d")
    return Object.fromEntries((payload as [Tree, Tree][]).map(([key, item]) => [String(plain(key)), plain(item)]));
  return Array.isArray(payload) ? (payload as Tree[]).map(plain) : payload;
}

const callText = (test: NormalizedTest | undefined) =>
  test?.kind === "functional" ? `${test.functionName}(${JSON.stringify(test.args).slice(1, -1)})`.slice(0, 2000) : "";
