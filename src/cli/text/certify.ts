// What `./whet certify` prints: a row for each problem and, below one whose solution does not pass, why in words: the call as it was made or
// the input, what was wanted, what came out, the exception, and what was probably meant.
import { visibleLine } from "../../core/visible.ts";
import type { Certificate, FailedSolution } from "../../grading/certify.ts";
import { type Json, JsonNumber, type NormalizedTest, writeJson } from "../../grading/index.ts";
import { mapInOrder } from "../problems/json-rows.ts";
import { Progress } from "../terminal/progress.ts";
import { part } from "./failure.ts";

export interface CertifyRow {
  cells: string[];
  good: boolean;
  /** Why training leaves it out; undefined when it does not. */
  leftOut?: string;
  /** What is printed below it. */
  details: string[];
}

const widths = [28, 6, 6, 6, 6, 9, 7];
const header = ["problem", "tests", "gold", "empty", "echo", "constant", "repeat", "verdict"];

export function rowOf(name: string, tests: number, certificate: Certificate, limitS: number): CertifyRow {
  const fails = (program: string) => (certificate.fooledBy.includes(program) ? "PASSES" : "fails");
  const good = certificate.problems.length === 0;
  return {
    good,
    details: certificate.failed.flatMap((failed) => describeFailed(failed, limitS)),
    cells: [
      name,
      String(tests),
      `${certificate.goldPassed}/${certificate.gold}`,
      fails("empty"),
      fails("echo"),
      fails("constant"),
      certificate.repeatable ? "same" : "DIFFER",
      good ? "good" : `bad: ${certificate.problems.join("; ")}`,
    ],
  };
}

const tableLine = (cells: readonly string[]) =>
  cells
    .map((cell, index) => (widths[index] === undefined ? cell : cell.slice(0, widths[index]).padEnd(widths[index])))
    .join("  ");

interface Certifying<Row> {
  rows: AsyncIterable<Row> | Iterable<Row>;
  /** Problems, where that is known. */
  total?: number | undefined;
  /** Rows that are in work at once. */
  window: number;
  show: "all" | "bad";
  /** Printed before the table, on stderr. */
  note?: string;
  certify(row: Row): Promise<CertifyRow>;
  /** The share of the rows that have been read, where their number is not known. */
  fractionOf?(row: Row): number | undefined;
  /** Called before a row is printed. */
  take?(line: CertifyRow, row: Row): void;
}

/** Prints the table while its rows come; how many are good and bad is printed at its end, and counted in `counts`. */
export async function printTable<Row>(
  { rows, total, window, show, note, certify, fractionOf, take }: Certifying<Row>,
  counts: { good: number; bad: number },
  signal: AbortSignal,
): Promise<void> {
  const progress = new Progress({ label: "certified", total });
  const print = (line: CertifyRow, row: Row) => {
    take?.(line, row);
    counts[line.good ? "good" : "bad"]++;
    if (show === "all" || !line.good) console.log([tableLine(line.cells), ...line.details].join("\n"));
    progress.update(counts.good + counts.bad, { note: `${counts.bad} bad`, fraction: fractionOf?.(row) });
  };
  try {
    if (note !== undefined) progress.print(note);
    console.log(tableLine(header));
    await mapInOrder(rows, window, certify, print, signal);
  } finally {
    progress.end(`whetstone: ${counts.good} good, ${counts.bad} bad${signal.aborted ? "; interrupted" : ""}`);
  }
}

/** The lines below a problem in the table. */
function describeFailed(failed: FailedSolution, limitS: number): string[] {
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
function callOf(test: NormalizedTest & { kind: "functional" }): string {
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
