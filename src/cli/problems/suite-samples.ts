// `./whet eval suite= samples=FILE`: programs that somebody sampled elsewhere, in the form of the official harnesses, judged here.

import { ConfigError } from "../../core/errors.ts";
import { writeFileAtomic } from "../../core/files.ts";
import { toJsonLine } from "../../core/jsonl.ts";
import { idOf } from "../../data/problem.ts";
import { type Evaluation, summarizeOutcomes } from "../../rl/evaluate.ts";
import type { ProblemOutcome } from "../../runs/events.ts";
import { Progress } from "../terminal/progress.ts";
import { textField } from "./grading-options.ts";
import { mapInOrder, readRows } from "./json-rows.ts";
import type { OpenSuite, ReadyProblem } from "./suite-work.ts";

interface Sample {
  problem: ReadyProblem;
  program: string;
  value: object;
}

/** Judges every line of the file; `out` gets each with passed and result, as the official harnesses write them. */
export async function evaluateSamples(
  suite: OpenSuite,
  { samples: file, out }: { samples: string; out: string },
  print: (label: string, evaluation: Evaluation) => void,
  signal: AbortSignal,
): Promise<number> {
  const byId = new Map(suite.problems.map((problem) => [problem.id, problem]));
  const outcomes = new Map<string, ProblemOutcome>();
  const lines: string[] = [];
  const progress = new Progress({ label: "judged" });
  let judged = 0;
  try {
    await mapInOrder(
      readSamples(file, byId),
      256,
      async ({ problem, program }) => {
        const request = { problem: { id: problem.id, tests: await problem.tests() }, code: program };
        return suite.grader.grade(request, { signal });
      },
      ({ status, verdict, message }, { problem: { id, source }, value }) => {
        const known = outcomes.get(id) ?? emptyOutcome(id, source);
        known.samples += Number(verdict !== "ungraded");
        known.passed += Number(verdict === "pass");
        known.ungraded += Number(verdict === "ungraded");
        known.well_formed++;
        known.statuses[status] = (known.statuses[status] ?? 0) + 1;
        outcomes.set(id, known);
        lines.push(
          toJsonLine({
            ...value,
            passed: verdict === "ungraded" ? null : verdict === "pass",
            status,
            ...(message && { result: message }),
          }),
        );
        progress.update(++judged);
      },
      signal,
    );
  } finally {
    progress.end();
  }
  signal.throwIfAborted();
  if (out !== "") writeFileAtomic(out, lines.join(""));
  const missing = suite.problems.length - outcomes.size;
  if (missing > 0) console.log(`missing  ${missing} problems have no sample and are not counted`);
  print(file, summarizeOutcomes([...outcomes.values()], suite.loaded.form.ks));
  return 0;
}

const emptyOutcome = (id: string, source: string): ProblemOutcome => ({
  ...{ id, source, samples: 0, passed: 0, ungraded: 0, well_formed: 0, truncated: 0 },
  statuses: {},
});

async function* readSamples(file: string, problems: ReadonlyMap<string, ReadyProblem>): AsyncGenerator<Sample> {
  const bad = (line: number, what: string) =>
    new ConfigError(
      "config/bad-sample",
      `${file}, line ${line}: ${what}. Write {"task_id": "HumanEval/0", "completion": "…"}, or "solution" with the whole program.`,
    );
  for await (const { line, value, problem: why } of readRows(file)) {
    if (!value) throw bad(line, why);
    const id = textField(value, "task_id") ?? idOf({ id: Number(value.get("task_id")) });
    const problem = problems.get(id ?? "");
    const [completion, solution] = [textField(value, "completion"), textField(value, "solution")];
    if (!problem) throw bad(line, `there is no problem ${JSON.stringify(id ?? null)} in the suite, or it was left out`);
    if (completion === undefined && solution === undefined) throw bad(line, "it has neither completion nor solution");
    yield {
      problem,
      program: solution ?? problem.prefix + completion,
      value: { task_id: id, ...(completion === undefined ? { solution } : { completion }) },
    };
  }
}
