// A verdict in one line, and a failed test as text: what it was given, what was wanted, what came out. All of it is untrusted.

import { visible } from "../../core/visible.ts";
import type { GradeResult } from "../../grading/index.ts";
import type { Failure } from "../../runs/events.ts";

/** Lines of one part that are shown. */
const maxLines = 40;

/** The failure, indented by two spaces. `total` is the number of the problem's tests. */
export function describeFailure(failure: Failure, total?: number): string {
  const { testIndex, input, expected, printed, stderr, status } = failure;
  const of = total === undefined ? "" : ` of ${total}`;
  return [
    `  test ${testIndex + 1}${of}${status === undefined ? "" : `: ${status}`}`,
    ...part("input", input),
    ...part("expected", expected),
    ...part("printed", printed),
    ...(stderr.trim() === "" ? [] : part("stderr", stderr)),
  ].join("\n");
}

/** A text under its name: on the same line where it is short, as a block otherwise. */
export function part(name: string, text: string): string[] {
  const label = `    ${name.padEnd(9)}`;
  const lines = visible(text).replace(/\n$/, "").split("\n");
  if (lines.length === 1) return [`${label} ${lines[0] === "" ? "(nothing)" : lines[0]}`];
  const cut = lines.length > maxLines;
  const kept = cut ? [...lines.slice(0, maxLines / 2), ...lines.slice(-maxLines / 2)] : lines;
  const shown = kept.map((line) => `      │ ${line}`);
  if (cut) shown.splice(maxLines / 2, 0, `      │ … ${lines.length - maxLines} more lines …`);
  return [`${label} ${lines.length} lines`, ...shown];
}

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
