// The usual judge: the problem's tests. A sandbox that gives no verdict on anything is waited for, and the run ends when that takes too
// long: nothing was written down, so that a resumed run judges it. A single program without a verdict, while others have theirs, has no
// reward after a while and is left out of training.
import { createHash } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";
import { Outage, type OutageNews } from "../core/outage.ts";
import { whet } from "../core/program.ts";
import { untilAborted } from "../core/wait.ts";
import { weakTestsFlag } from "../diagnosis/evidence.ts";
import { wouldFool } from "../grading/certify.ts";
import { type Comparator, type GradeResult, type Grader, normalizeTests } from "../grading/index.ts";
import type { Grade } from "../runs/events.ts";
import { TrainError } from "./resume.ts";
import type { Judge } from "./rollout.ts";

/** A program that gets no verdict while others do is left ungraded after this long. */
const programPatienceMs = 5 * 60_000;

/** Problems whose tests were looked at; one is looked at again when there are more. */
const maxRemembered = 100_000;

export interface JudgeOptions {
  grader: Grader;
  /** How outputs are compared, where the tests are looked at without running anything. */
  comparator?: Comparator;
  /** How long the sandbox may give no verdict on anything. */
  patienceMs: number;
  /** Called with how such an outage stands. */
  onOutage?(news: OutageNews): void;
}

/** A shorter outage is not reported. */
const quietMs = 5_000;

export function judgeByTests({ grader, comparator, patienceMs, onOutage }: JudgeOptions): Judge {
  const outage = new Outage({ what: "The sandbox", patienceMs, quietMs, report: (news) => onOutage?.(news) });
  /** Of all that wait for a verdict, one asks for one on a program that is known. */
  let asking: Promise<boolean> | undefined;
  const answers = (signal: AbortSignal) => {
    asking ??= isJudging(grader, signal).finally(() => {
      asking = undefined;
    });
    return asking;
  };
  /** When the sandbox last gave a verdict. */
  let answeredAt = Number.NEGATIVE_INFINITY;
  const answered = () => {
    answeredAt = performance.now();
    outage.answered();
  };
  const known = new Map<string, boolean>();
  return async (task, answer, signal, { phase }) => {
    const tests = await task.loadTests();
    const request = {
      problem: { id: task.id, tests, languages: task.languages },
      response: answer.text,
      truncated: answer.truncated,
    };
    // A test problem may have a training problem's id.
    const key = `${phase} ${task.id}`;
    const isWeak = known.get(key) ?? wouldFool({ id: task.id, tests, ...(comparator && { comparator }) }).length > 0;
    if (known.size > maxRemembered) known.clear();
    known.set(key, isWeak);
    const deadline = Date.now() + Math.min(patienceMs, programPatienceMs);
    for (let pauseMs = 1000; ; pauseMs = Math.min(15_000, pauseMs * 2)) {
      const askedAt = performance.now();
      const result = await grader.grade(request, { signal, canWait: phase === "eval" });
      if (result.verdict !== "ungraded") {
        if (result.ran > 0 && !result.cached) answered();
        return gradeOf(result, isWeak);
      }
      const reason = result.message ?? result.status;
      if (await untilAborted(answers(signal), signal)) {
        answered();
        if (Date.now() + pauseMs > deadline) return gradeOf(result, isWeak);
      } else {
        outage.failed(reason, performance.now() - Math.max(askedAt, answeredAt));
        if (outage.spent) throw sandboxAway(patienceMs, reason);
      }
      await sleep(Math.min(pauseMs, outage.leftMs), undefined, { signal });
    }
  };
}

const knownTests = normalizeTests([{ input: "", output: "1\n", testtype: "stdin" }]).tests;

/** Whether the sandbox gives a verdict on a program that needs nothing. */
async function isJudging(grader: Grader, signal: AbortSignal): Promise<boolean> {
  const known = {
    problem: { id: "known", tests: knownTests, languages: ["python"] as const },
    code: "print(1)",
    fresh: true,
  };
  return (await grader.grade(known, { signal })).verdict !== "ungraded";
}

const sandboxAway = (patienceMs: number, reason: string) =>
  new TrainError(
    "rl/sandbox-away",
    `The sandbox has given no verdict on anything for ${patienceMs / 1000} s (${reason}). Nothing was scored because of it. ` +
      `See that it runs (${whet} doctor checks it; outage_patience= waits longer), then run the same again: a run goes on where it ended.`,
  );

/** What the loop keeps of a verdict. */
function gradeOf(result: GradeResult, isWeak: boolean): Grade {
  const { verdict, status, reward, formatOk, passed, total, ran, wallMs, queueMs, cached, code, language } = result;
  // The problem's and not the program's: training on it rewards programs that solve nothing.
  const flags = isWeak ? [...result.flags, weakTestsFlag] : result.flags;
  return {
    verdict,
    status,
    reward,
    formatOk,
    passed,
    total,
    ran,
    wallMs,
    queueMs,
    cached,
    flags,
    codeHash: code === null ? null : createHash("sha256").update(code).digest("hex"),
    ...(language === "python" ? {} : { language }),
    ...(result.message === undefined ? {} : { message: result.message }),
    ...(result.failure === undefined ? {} : { failure: result.failure }),
  };
}
