// `./whet certify FILE`: is this problem set fit for training?

import { z } from "zod";
import { ConfigError } from "../core/errors.ts";
import { whet } from "../core/program.ts";
import { type Certificate, certify } from "../grading/certify.ts";
import { createGrader, type JsonObject } from "../grading/index.ts";
import { openSandbox } from "../grading/open-sandbox.ts";
import type { Command } from "./command.ts";
import { comparatorOfRow, gradingShape, idOfRow, testsOfRow, textField } from "./grading-options.ts";
import { interruptible } from "./interrupt.ts";
import { type JsonRow, mapInOrder, readRows } from "./json-rows.ts";
import { describeOptions, parseArguments } from "./options.ts";
import { Progress } from "./progress.ts";

const CertifyOptions = z.strictObject({
  ...gradingShape,
  repeats: z.int().min(1).default(2).describe("times that each solution is graded; all must agree"),
  max_solutions: z.int().min(1).default(3).describe("reference solutions tried per problem"),
  show: z.enum(["all", "bad"]).default("all").describe("rows of the table"),
});

interface Row {
  cells: string[];
  good: boolean;
}

const widths = [28, 6, 6, 6, 6, 9, 7];
const header = ["problem", "tests", "gold", "empty", "echo", "constant", "repeat", "verdict"];

export const command: Command = {
  help: () =>
    [
      `Usage: ${whet} certify FILE [key=value …]      FILE holds JSON lines (also .gz); - reads stdin`,
      "",
      "Each line is a problem: tests, solutions (a list) or solution; also id, source, metadata, starter_code, comparator.",
      "A problem is good when its solutions pass every time and empty, echo and constant programs fail. Exit code 1 when one is bad.",
      "",
      describeOptions(CertifyOptions),
    ].join("\n"),
  run(args) {
    const { options, words } = parseArguments(CertifyOptions, args);
    const [file, ...more] = words;
    if (file === undefined || more.length > 0)
      throw new ConfigError("config/one-file", `${whet} certify wants one file of JSON lines, or - for stdin.`);
    return interruptible((signal) => certifyFile(file, options, signal));
  },
};

async function certifyFile(
  file: string,
  options: z.output<typeof CertifyOptions>,
  signal: AbortSignal,
): Promise<number> {
  const rows = readRows(file);
  const sandbox = await openSandbox({
    sandboxUrl: options.sandbox_url,
    sandboxPython: options.sandbox_python,
    sandboxPackages: options.sandbox_packages,
    say: (line) => console.error(`whetstone: ${line}`),
    maxConcurrency: options.concurrency,
  });
  const progress = new Progress({ label: "certified" });
  const counts = { good: 0, bad: 0 };
  try {
    progress.print(`whetstone: certifying in ${sandbox.description.summary}`);
    const grader = createGrader({
      sandbox,
      comparator: options.comparator,
      rewardTimeoutS: options.reward_timeout,
      maxTests: options.max_tests,
      testSelection: options.test_selection,
      limits: { memoryBytes: options.memory_mb * 1024 ** 2 },
      ...(options.concurrency === undefined ? {} : { concurrency: options.concurrency }),
      cacheSize: 0,
    });
    console.log(tableLine(header));
    await mapInOrder(
      rows,
      2 * (options.concurrency ?? sandbox.description.programsAtOnce ?? 4),
      async (row): Promise<Row> => {
        const name = row.value ? nameOf(row.value, row.line) : `line ${row.line}`;
        const unusable = (why: string): Row => ({ cells: [name, ...Array(6).fill("-"), `bad: ${why}`], good: false });
        if (!row.value) return unusable("the line is not a JSON object");
        const { tests, reason } = testsOfRow(row.value);
        if (reason) return unusable(`the tests cannot be used: ${reason}`);
        const problem = { id: name, tests, comparator: comparatorOfRow(row.value) ?? options.comparator };
        const solutions = solutionsOf(row.value).slice(0, options.max_solutions);
        const certificate = await certify(grader, { problem, solutions, repeats: options.repeats }, { signal });
        return rowOf(name, tests.length, certificate);
      },
      (line, row: JsonRow) => {
        counts[line.good ? "good" : "bad"]++;
        if (options.show === "all" || !line.good) console.log(tableLine(line.cells));
        progress.update(counts.good + counts.bad, {
          note: `${counts.bad} bad`,
          ...(row.fraction === undefined ? {} : { fraction: row.fraction }),
        });
      },
      signal,
    );
  } finally {
    progress.end(`whetstone: ${counts.good} good, ${counts.bad} bad${signal.aborted ? "; interrupted" : ""}`);
    await sandbox.close();
  }
  return counts.bad > 0 ? 1 : 0;
}

function rowOf(name: string, tests: number, certificate: Certificate): Row {
  const fails = (program: string) => (certificate.fooledBy.includes(program) ? "PASSES" : "fails");
  const good = certificate.problems.length === 0;
  return {
    good,
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

const nameOf = (row: JsonObject, line: number) => textField(row, "id") ?? idOfRow(row, line);

/** `solutions` as texts or as objects with `code`, or one `solution`. */
function solutionsOf(row: JsonObject): string[] {
  const list = row.get("solutions") ?? row.get("solution");
  return (Array.isArray(list) ? list : [list]).flatMap((item) => {
    const code = item instanceof Map ? item.get("code") : item;
    return typeof code === "string" ? [code] : [];
  });
}
