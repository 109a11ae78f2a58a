// The grader: an answer in, a verdict and a reward out. It takes the program out of the answer, runs it on the problem's tests
// with bounded concurrency, and turns failures of the sandbox into "ungraded", which has no reward.
import { createHash } from "node:crypto";
import { type LanguageName, languageOf, languageOfTag } from "../core/languages/languages.ts";
import { Limiter, type TaskOptions } from "../core/limiter.ts";
import { entryOf } from "../core/maps.ts";
import {
  defaultLimits,
  type Limits,
  type Sandbox,
  type SandboxDescription,
  SandboxError,
  type TestStatus,
} from "../sandbox/sandbox.ts";
import { testsFingerprint, VerdictCache } from "./cache.ts";
import type { Comparator } from "./compare.ts";
import type { Failure } from "./failure.ts";
import { passFlags, sourceFlags } from "./flags.ts";
import { type GradeStatus, isTooLong, type Judgement, judge, type TestReport, tooLong } from "./judge.ts";
import { extractInThread } from "./judge-thread.ts";
import type { NormalizedTest } from "./normalize.ts";
import { defaultRewardRules, type RewardRules, rewardOf } from "./reward.ts";
import { type SelectionRules, selectTests } from "./select.ts";
import { Siblings, type Turn } from "./siblings.ts";

/** What a grader works with, and its rules. */
export interface GraderOptions {
  /** Where programs run: what `openSandbox` gives. */
  sandbox: Sandbox;
  /** Default "tolerant"; a problem may name its own. */
  comparator?: Comparator;
  /** `rewardTimeoutS`: wall seconds per test, default 6. The others default to `defaultLimits`. */
  limits?: Partial<Omit<Limits, "wallMs" | "cpuMs">> & { rewardTimeoutS?: number };
  /** How a verdict becomes a reward. */
  reward?: Partial<RewardRules>;
  /** Which tests of a problem are run; default all. */
  tests?: Partial<SelectionRules>;
  /** Languages of answers, where a problem says nothing; of several, the tag of the fence names one, else it is the first. Default Python. */
  languages?: readonly LanguageName[];
  /** The usual modules' names are there without an import; default on. */
  preamble?: boolean;
  /** Run every test although one has failed, and report all failures; verdict and reward stay what they are without. Default off. */
  everyTest?: boolean;
  /** Programs in work at the same moment; default twice what the sandbox runs at once, so that one is always waiting for it. */
  concurrency?: number;
  /** Verdicts remembered; default 5,000, 0 for none. */
  cacheSize?: number;
}

/** One answer to one problem. */
export interface GradeRequest {
  /** The problem's tests, its id for messages and caches, the languages of its answers (default the grader's) and its own comparator. */
  problem: {
    id?: string | undefined;
    languages?: readonly LanguageName[] | undefined;
    tests: readonly NormalizedTest[];
    comparator?: Comparator | undefined;
  };
  /** The model's answer, with its fences. */
  response?: string | undefined;
  /** A program, instead of an answer. */
  code?: string | undefined;
  /** The answer comes from a thinking model. */
  thinking?: boolean | undefined;
  /** The answer ended without its stop token. */
  truncated?: boolean | undefined;
  /** Run it even if its verdict is known. */
  fresh?: boolean | undefined;
}

/** What grading an answer gave. */
export interface GradeResult {
  /** `ungraded` is an outage, not a judgement: leave such an answer out. */
  verdict: "pass" | "fail" | "ungraded";
  /** Why, in one word. */
  status: GradeStatus;
  /** null when ungraded: an outage is not a wrong answer. */
  reward: number | null;
  /** Whether the code stood in the answer as it was asked for. */
  formatOk: boolean;
  /** Whether the answer was cut off before its end. */
  truncated: boolean;
  /** The program that was graded; null without one. */
  code: string | null;
  /** Its language. */
  language: LanguageName;
  /** Tests that passed. */
  passed: number;
  /** Tests of the problem that were chosen. */
  total: number;
  /** Tests that ran before the verdict was clear. */
  ran: number;
  /** The index of the first test that failed, or null. */
  firstFailed: number | null;
  /** One report for each test that ran. */
  tests: TestReport[];
  /** Of a graded failure: the lowest failing test that was run, what it was given, what was wanted and what came out; each cut to 2 KiB. */
  failure?: Failure;
  /** With `everyTest`: every failed test, up to 100. */
  failures?: Failure[];
  /** From the call to the verdict, and the shares of it spent waiting in line and in the sandbox. */
  wallMs: number;
  /** Time spent waiting for a place in the sandbox. */
  queueMs: number;
  /** Time the programs took. */
  sandboxMs: number;
  /** The verdict was remembered or shared with an equal program. */
  cached: boolean;
  /** Signs of a program that tries to fool a judge; they never change a verdict. */
  flags: string[];
  /** Why there is no verdict. */
  message?: string;
}

/** How one answer is graded. */
export interface GradeOptions {
  /** Gives up waiting and running. */
  signal?: AbortSignal;
  /** Other answers go first: an evaluation's are not to hold up those that training waits for. */
  canWait?: boolean;
}

/** Grades answers. Any number may be graded at once; it keeps to its own limit. */
export interface Grader {
  /** Grades one answer. Rejects only when the signal aborts; every other trouble is a result. */
  grade(request: GradeRequest, options?: GradeOptions): Promise<GradeResult>;
  /** Runs a program on an input, without judging it. Rejects with SandboxError where it could not be run. */
  run(code: string, options?: GradeOptions & { stdin?: string | undefined }): Promise<ProgramResult>;
  /** What runs the programs. */
  readonly description: SandboxDescription;
}

/** What a program did that was run by itself. */
export interface ProgramResult {
  /** `finished`, `runtime-error`, `time-limit` … */
  status: TestStatus;
  /** What it printed, cut to 64 KiB. */
  stdout: string;
  /** The end of what it printed as errors. */
  stderr: string;
}

/** Of what a program printed. */
const shownBytes = 65_536;

/** Limits for one test of `rewardTimeoutS` seconds: what a start may take comes on top, and a second more on the CPU clock. */
export function limitsFor(rewardTimeoutS: number, other: Partial<Limits> = {}, language?: LanguageName): Limits {
  const wallMs = Math.round(rewardTimeoutS * 1000) + languageOf(language).startMs;
  return { ...defaultLimits, ...other, wallMs, cpuMs: (Math.ceil(rewardTimeoutS) + 1) * 1000 };
}

/** Creates a grader over a sandbox, which stays the caller's to close. */
export function createGrader(options: GraderOptions): Grader {
  const { sandbox, comparator = "tolerant", preamble = true, everyTest = false, languages = ["python"] } = options;
  const { rewardTimeoutS = 6, ...otherLimits } = options.limits ?? {};
  const rewards = { ...defaultRewardRules, ...options.reward };
  const selection: SelectionRules = { maxTests: 0, selection: "first", seed: 0, ...options.tests };
  const limiter = new Limiter(options.concurrency ?? 2 * (sandbox.description.programsAtOnce ?? 4));
  const cache = new VerdictCache(options.cacheSize ?? 5_000);
  const unremembered = new VerdictCache(0);
  const siblings = new Siblings();
  const chosen = new WeakMap<readonly NormalizedTest[], readonly NormalizedTest[]>();

  const testsOf = ({ id, tests }: GradeRequest["problem"]) =>
    entryOf(chosen, tests, () => selectTests(tests, selection, id ?? testsFingerprint(tests)));

  /** Takes turns in the sandbox; `spent` says how long it waited for them and how long they took. */
  const turns =
    (spent: { queueMs: number; sandboxMs: number }, options: TaskOptions): Turn =>
    (work) => {
      const asked = performance.now();
      return limiter.run(async () => {
        const entered = performance.now();
        spent.queueMs += entered - asked;
        await work().finally(() => {
          spent.sandboxMs += performance.now() - entered;
        });
      }, options);
    };

  async function grade(request: GradeRequest, { signal, canWait }: GradeOptions = {}): Promise<GradeResult> {
    signal?.throwIfAborted();
    const start = performance.now();
    const truncated = request.truncated ?? false;
    const tests = testsOf(request.problem);
    const spent = { queueMs: 0, sandboxMs: 0 };
    let code = request.code ?? null;
    const asked = request.problem.languages ?? languages;
    let language = languageOfTag(asked, "") ?? "python";
    let flags: { always: string[]; ofPass: string[] } = { always: [], ofPass: [] };

    const finish = (
      judgement: Omit<Judgement, "tests"> & { tests?: TestReport[] },
      extra: { cached?: boolean; message?: string } = {},
    ): GradeResult => {
      const verdict = judgement.status === "pass" ? "pass" : judgement.status === "sandbox_error" ? "ungraded" : "fail";
      const formatOk = code !== null;
      const { status, tests = [], passed, total, ran, firstFailed, failure, failures } = judgement;
      return {
        ...{ verdict, status, formatOk, truncated, code, language, passed, total, ran, firstFailed, tests },
        reward: rewardOf({ verdict, formatOk, passed, total }, rewards),
        ...(failure ? { failure } : {}),
        ...(failures ? { failures } : {}),
        wallMs: performance.now() - start,
        ...spent,
        cached: extra.cached ?? false,
        flags: verdict === "pass" ? [...flags.always, ...flags.ofPass] : flags.always,
        ...(extra.message ? { message: extra.message } : {}),
      };
    };
    const nothingRan = { passed: 0, total: tests.length, ran: 0, firstFailed: null };

    // Siblings count on it from here on. Those that can wait are siblings of each other only: nobody else is to wait for them.
    const place = siblings.join(`${testsFingerprint(tests)}${canWait ? " can wait" : ""}`);
    let isRun = false;
    try {
      const thinking = request.thinking ?? false;
      if (code === null) {
        const answer = await extractInThread(request.response ?? "", { thinking });
        code = answer?.code ?? null;
        language = languageOfTag(asked, answer?.info ?? "") ?? language;
      }
      if (code === null) return finish({ ...nothingRan, status: "format_error" });
      // Without tests there can be no evidence.
      if (tests.length === 0) return finish({ ...nothingRan, status: "bad_test" });
      if (isTooLong(code)) return finish(tooLong(code, tests));
      // Looked for whatever the verdict will be, so that nothing afterwards takes longer for one than for another.
      flags = { always: sourceFlags(code, tests, language), ofPass: passFlags(code, tests) };
      const source = code;
      const rule = request.problem.comparator ?? comparator;
      const limits = limitsFor(rewardTimeoutS, otherLimits, language);
      const key = createHash("sha256")
        .update(JSON.stringify([testsFingerprint(tests), language, limits, preamble, rule]))
        .update("\0")
        .update(source)
        .digest("base64");
      const problemMs = ((rewardTimeoutS + 1) * tests.length + 5) * 1000;
      const rules = { language, comparator: rule, limits, preamble, problemMs, everyTest };
      const compute = (runSignal: AbortSignal) => {
        isRun = true;
        const turn = turns(spent, { signal: runSignal, canWait });
        return judge({ sandbox, place, turn, signal: runSignal }, source, tests, rules).finally(() => place.leave());
      };
      const judging = (request.fresh ? unremembered : cache).get(key, compute, signal);
      // Its verdict is known, or an equal program is being run.
      if (!isRun) place.leave();
      const { judgement, cached } = await judging;
      return finish(judgement, { cached });
    } catch (error) {
      if (signal?.aborted || !(error instanceof SandboxError)) throw error;
      return finish({ ...nothingRan, status: "sandbox_error" }, { message: error.message });
    } finally {
      if (!isRun) place.leave();
    }
  }

  async function run(
    source: string,
    { stdin = "", ...options }: GradeOptions & { stdin?: string | undefined } = {},
  ): Promise<ProgramResult> {
    const job = {
      source,
      tests: [{ kind: "stdin" as const, stdin }],
      limits: limitsFor(rewardTimeoutS, otherLimits),
      preamble,
    };
    const [outcome] = await limiter.run(() => sandbox.run(job, () => "continue", options), options);
    const { status, stdout, stderrTail } = outcome!;
    return { status, stdout: Buffer.from(stdout.subarray(0, shownBytes)).toString("utf8"), stderr: stderrTail };
  }

  return { grade, run, description: sandbox.description };
}
