// A verdict in words: what a program did wrong, with the first test that it failed.
import { visible } from "../core/visible.ts";
import type { GradeResult } from "../grading/index.ts";

type Verdict = Pick<GradeResult, "verdict" | "status" | "passed" | "total" | "message" | "failure">;

/** The verdict's first line. */
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

/** What the first failed test was given, what it wanted and what came out; empty where none was run. */
export function failureLines({ failure }: Verdict): string[] {
  if (!failure) return [];
  const parts: [string, string][] = [
    ["input", failure.input],
    ["expected", failure.expected],
    ["got", failure.printed],
    ["stderr", failure.stderr],
  ];
  return parts.flatMap(([label, text]) => {
    const lines = visible(text).replace(/\n+$/, "").split("\n");
    if (label === "stderr" && text.trim() === "") return [];
    return lines.map((line, index) => `${(index === 0 ? label : "").padEnd(9)} ${line}`);
  });
}
