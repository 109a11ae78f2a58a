// The end of a run: the report on the console, summary.json and the picture, all made from the run's files.

import { existsSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { writeFileAtomic } from "../core/files.ts";
import { readJsonLines } from "../core/jsonl.ts";
import { whet } from "../core/program.ts";
import { compareEvaluations, type Evaluation, type ProblemOutcome, summarizeOutcomes } from "../rl/evaluate.ts";
import { renderReport, smokeTest } from "../rl/report.ts";
import { runChart } from "../runs/chart.ts";
import { readCheckpoints } from "../runs/checkpoints.ts";
import { readRunConfig, runFiles } from "../runs/directory.ts";
import type { Run } from "../runs/run.ts";

/** Prints and writes what the run came to, from its files alone. */
export function report(run: Run, seconds: number): void {
  const history = run.history();
  const evaluations = readEvaluations(run.path);
  const before = evaluations.at(0);
  const after = evaluations.length > 1 ? evaluations.at(-1) : undefined;
  const comparison = before && after ? compareEvaluations(before.outcomes, after.outcomes) : undefined;
  const whole = history.reduce((sum, record) => sum + Number(record["time/total"] ?? 0), 0);
  const input = {
    history,
    before: after ? before : undefined,
    after: after ?? before,
    comparison,
    runPath: run.path,
    seconds: seconds || whole,
  };
  writeFileAtomic(
    join(run.path, "curves.svg"),
    runChart(history, `${String(readRunConfig(run.path)?.["model_name"] ?? "run")}: ${run.path}`),
  );
  const final = readCheckpoints(run.path).at(-1);
  run.summary({
    steps: final?.step ?? 0,
    seconds: whole,
    before: before && figures(before),
    after: after && figures(after),
    comparison,
    smoke_test: smokeTest(input),
    state_path: final?.state_path,
    sampler_path: final?.sampler_path,
  });
  run.logger.info(`\n${renderReport(input)}`);
  run.logger.info(`  picture  ${join(run.path, "curves.svg")}`);
  run.logger.info(`  next     ${whet} eval run=${run.path}     evaluate the trained adapter`);
  run.logger.info(`           tensorboard --logdir ${run.path}     the curves in TensorBoard`);
}

const figures = ({ pass1, bySource, passAtK, formatRate, ungradedProblems }: Evaluation) => ({
  pass1,
  bySource,
  passAtK,
  formatRate,
  ungradedProblems,
});

/** The evaluations of a run, oldest first. */
export function readEvaluations(runPath: string): Evaluation[] {
  const folder = join(runPath, runFiles.evaluations);
  if (!existsSync(folder)) return [];
  return readdirSync(folder)
    .filter((name) => name.endsWith(".jsonl"))
    .sort()
    .map((name) => summarizeOutcomes(readJsonLines(join(folder, name)) as ProblemOutcome[]));
}
