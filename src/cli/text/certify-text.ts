// Why a reference solution does not pass, in words: the call as it was made or the input, what was wanted, what came out, the exception,
// and what was probably meant.
import { visibleLine } from "../../core/visible.ts";
import type { FailedSolution } from "../../grading/certify.ts";
import { type Json, JsonNumber, type NormalizedTest, writeJson } from "../../grading/index.ts";
import { part } from "./failure.ts";

/** The lines below a problem in the table. */
export function describeFailed(failed: FailedSolution, limitS: number): string[] {
  const { test, failure, detail, status } = failed;
  const raised = failure.stderr.trimEnd().split("\n").at(-1) ?? "";
  const [, line] = [...failure.stderr.matchAll(/File "[^"]*solution\.py", line (\d+)/g)].at(-1) ?? [];
  const missing = status === "missing_module" && detail !== undefined ? [detail] : [];
  const hints = [...missing, ...hintsFor(failed, raised, limitS)];
  return [
    ...(test.kind === "functional"
      ? [`    call      ${visibleLine(callOf(test), 400)}`]
      : part("input", failure.input)),
    ...part("expected", failure.expected),
    ...part(test.kind === "functional" ? "returned" : "printed", failure.printed),
    ...(raised === ""
      ? []
      : [`    raised    ${visibleLine(raised, 400)}${line === undefined ? "" : ` (line ${line} of the solution)`}`]),
    ...hints.map((hint) => `    hint      ${visibleLine(hint, 600)}`),
  ];
}

/** The call in Python. */
export function callOf(test: NormalizedTest & { kind: "functional" }): string {
  return `${test.functionName}(${test.args.map(python).join(", ")})`;
}

function python(value: Json): string {
  if (value === null) return "None";
  if (typeof value === "boolean") return value ? "True" : "False";
  if (value instanceof JsonNumber || typeof value === "string") return writeJson(value);
  if (Array.isArray(value)) return `[${value.map(python).join(", ")}]`;
  return `{${[...value].map(([key, item]) => `${JSON.stringify(key)}: ${python(item)}`).join(", ")}}`;
}

function hintsFor({ test, status, failure, solution }: FailedSolution, raised: string, limitS: number): string[] {
  const defined = [...solution.matchAll(/^(?:def|class) (\w+)/gm)].map(([, name]) => name!);
  if (status === "time_limit")
    return [`the limit is ${limitS} s per test, as training here has it; reward_timeout= sets another, for train too`];
  if (test.kind === "stdin")
    return status === "wrong_answer" && failure.printed === "" && defined.length > 0
      ? [
          `the tests give standard input, and the solution prints nothing; to have ${defined.at(-1)} called, name it: "fn_name": "${defined.at(-1)}" in tests`,
        ]
      : [];
  if (status === "target_not_found")
    return [`the tests call ${test.functionName}, and the solution defines ${defined.join(", ") || "no function"}`];
  const list = `[${test.args.map(python).join(", ")}]`;
  if (/takes \d+ positional arguments? but \d+ (was|were) given|missing \d+ required positional/.test(raised))
    return [
      `each input is the list of a call's arguments: if ${list} is one argument, write [${list}] for this input, and so for the others`,
    ];
  if (test.args.length === 1 && /object is not (iterable|subscriptable)|has no len\(\)/.test(raised))
    return [`if the argument is meant to be the list ${list}, write [${list}] for this input, and so for the others`];
  return [];
}
