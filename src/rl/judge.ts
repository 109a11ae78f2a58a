// The usual judge: the problem's tests. A sandbox that does not answer is waited for; what is still without a verdict when the
// patience is spent has no reward and is left out of training.
import { createHash } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";
import { weakTestsFlag } from "../diagnosis/evidence.ts";
import { wouldFool } from "../grading/certify.ts";
import type { Comparator, GradeResult, Grader } from "../grading/index.ts";
import type { Grade } from "../runs/events.ts";
import type { Judge } from "./rollout.ts";

/** While training, the sandbox may be away this long before completions are left ungraded. */
export const trainingPatienceMs = 5 * 60_000;

/** Problems whose tests were looked at; one is looked at again when there are more. */
const mostRemembered = 100_000;

export interface JudgeOptions {
  grader: Grader;
  /** How outputs are compared, where the tests are looked at without running anything. */
  comparator?: Comparator;
  /** How long a sandbox may be away before answers are left ungraded. */
  patienceMs: number;
  /** Called when the sandbox does not answer and the loop waits for it. */
  onWaiting?(message: string): void;
}

export function judgeByTests({ grader, comparator, patienceMs, onWaiting }: JudgeOptions): Judge {
  const known = new Map<string, boolean>();
  return async (task, answer, signal, { phase }) => {
    const tests = await task.loadTests();
    const request = {
      problem: { id: task.id, tests },
      response: answer.text,
      truncated: answer.truncated,
    };
    // A test problem may have a training problem's id.
    const key = `${phase} ${task.id}`;
    const isWeak = known.get(key) ?? wouldFool({ id: task.id, tests, ...(comparator && { comparator }) }).length > 0;
    if (known.size > mostRemembered) known.clear();
    known.set(key, isWeak);
    const deadline = Date.now() + patienceMs;
    for (let pauseMs = 1000; ; pauseMs = Math.min(15_000, pauseMs * 2)) {
      const result = await grader.grade(request, { signal, canWait: phase === "eval" });
      if (result.verdict !== "ungraded" || Date.now() + pauseMs > deadline) return gradeOf(result, isWeak);
      onWaiting?.(`the sandbox gives no verdicts (${result.message ?? result.status}); trying until it does`);
      await sleep(pauseMs, undefined, { signal });
    }
  };
}

/** What the loop keeps of a verdict. */
function gradeOf(result: GradeResult, isWeak: boolean): Grade {
  const { verdict, status, reward, formatOk, passed, total, ran, wallMs, queueMs, cached, code } = result;
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
    ...(result.message === undefined ? {} : { message: result.message }),
    ...(result.failure === undefined ? {} : { failure: result.failure }),
  };
}
