// A verdict in one line.
import { visible } from "../../core/visible.ts";
import type { GradeResult } from "../../grading/index.ts";

type Verdict = Pick<GradeResult, "verdict" | "status" | "passed" | "total" | "message" | "failure">;

/** What became of a program, and on which test. */
export function verdictLine({ verdict, status, passed, total, message, failure }: Verdict): string {
  const tests = total === 1 ? "1 test" : `${total} tests`;
  if (verdict === "pass") return `pass: ${tests}`;
  if (verdict === "ungraded") return `no verdict: ${visible(message ?? status)}`;
  const where = failure
    ? ` on test ${failure.testIndex + 1} of ${total}`
    : total > 0
      ? `, ${passed} of ${tests} passed`
      : "";
  return `fail: ${status.replaceAll("_", " ")}${where}${message ? ` (${visible(message)})` : ""}`;
}
