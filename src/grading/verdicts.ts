// Whether what a program gave is what was expected. It runs in the judge thread: see judge-worker.ts.
import { type Comparator, decodeOutput, outputsMatch } from "./compare.ts";
import { readJson } from "./json.ts";
import { longestFrame, readFrame, valuesMatch } from "./values.ts";

/** What one test gave and what was wanted, as it travels to the judge thread. Expected values are JSON text: numbers keep their digits. */
export type Evidence =
  | { kind: "output"; stdout: Uint8Array; expected: string; comparator: Comparator }
  | { kind: "value"; frame: string | undefined; expected: string; expectedAlt?: string };

export type Verdict = "pass" | "wrong_answer" | "no_result";

export function verdictOn(evidence: Evidence): Verdict {
  if (evidence.kind === "value") return judgeValue(evidence);
  const { stdout, expected, comparator } = evidence;
  return outputsMatch(decodeOutput(stdout), expected, comparator) ? "pass" : "wrong_answer";
}

/** Whether the value in a frame is an expected one. */
function judgeValue({ frame, expected, expectedAlt }: Evidence & { kind: "value" }): Verdict {
  if (frame === undefined) return "no_result";
  const wanted = [expected, ...(expectedAlt === undefined ? [] : [expectedAlt])].map((text) => readJson(text)!);
  // Looked at before it is read: a value far larger than the expected one cannot be it, and reading megabytes takes time.
  if (frame.length > Math.max(...wanted.map(longestFrame))) return "wrong_answer";
  const tree = readFrame(frame);
  if (!tree) return "no_result";
  return wanted.map((value) => valuesMatch(tree, value)).includes(true) ? "pass" : "wrong_answer";
}
