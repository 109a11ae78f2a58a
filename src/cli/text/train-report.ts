// The end of a run: the report on the console, summary.json and the picture, all from one view of the run.
import { join } from "node:path";
import { writeFileAtomic } from "../../core/files.ts";
import { whet } from "../../core/program.ts";
import { shellCommand } from "../../core/shell.ts";
import { isCurable } from "../../diagnosis/rules.ts";
import { sayFinding } from "../../diagnosis/text.ts";
import { compareEvaluations, type Evaluation, summarizeOutcomes } from "../../rl/evaluate.ts";
import { Meter } from "../../rl/meter.ts";
import { renderReport, smokeTest } from "../../rl/report.ts";
import { runChart } from "../../runs/chart.ts";
import { readJournal } from "../../runs/read-journal.ts";
import type { Run } from "../../runs/run.ts";
import type { RunView } from "../../runs/view.ts";

/** Prints and writes what the run came to. */
export function report(run: Run, view: RunView): void {
  const { first, last } = evaluationPair(view);
  const comparison = first && last ? compareEvaluations(first.outcomes, last.outcomes) : undefined;
  const meter = Meter.over(readJournal(run.path));
  const { spent } = meter;
  const input = {
    history: view.records,
    before: last ? first : undefined,
    after: last ?? first,
    comparison,
    runPath: run.path,
    seconds: view.seconds,
    sessions: view.sessions.filter(({ started }) => started).length,
    secondsOf: view.secondsOf,
    meter,
  };
  const title = `${String(view.config["model_name"] ?? "run")}: ${run.path}`;
  writeFileAtomic(join(run.path, "curves.svg"), runChart(view.records, title));
  const newest = view.newest;
  run.summary({
    steps: newest?.step ?? 0,
    seconds: view.seconds,
    before: first && figuresOf(first),
    after: last && figuresOf(last),
    comparison,
    smoke_test: smokeTest(input),
    tokens: meter.tokens,
    cost: spent && { ...spent, basis: meter.tariff?.basis, mixed_groups: meter.mixedGroups },
    state_path: newest?.state_path,
    sampler_path: newest?.sampler_path,
  });
  run.logger.info(`\n${renderReport(input)}`);
  run.logger.info(`  picture  ${join(run.path, "curves.svg")}`);
  const broken = view.findings.causes.find(({ level }) => level === "error")?.root;
  const harmed = broken !== undefined && isCurable(broken.finding.id);
  if (broken) {
    const what = harmed ? "this run went wrong" : "the diagnosis has an error";
    run.logger.error(`${what} after step ${broken.since}, ${sayFinding(broken.finding)}`);
  }
  // No command is suggested for a policy that training broke.
  const next = [
    ...(broken ? [diagnoseCommand(run.path)] : []),
    ...(harmed ? [] : nextCommands(run.path, view, first, last)),
  ];
  for (const { why, command } of next) run.logger.info(`\n  # ${why}\n  ${command}`);
}

const diagnoseCommand = (path: string) => ({
  why: "what happened, with its evidence",
  command: shellCommand(`${whet} diagnose`, path),
});

/** What to do with what was trained; each command stands alone on its line, ready to be pasted. */
export function nextCommands(
  path: string,
  view: RunView,
  before: Evaluation | undefined,
  after: Evaluation | undefined,
): { why: string; command: string }[] {
  const { problem, isGained } = exampleOf(before, after);
  const hasEpisodes = Boolean(view.config["env"]);
  const text = hasEpisodes ? [] : ["Read integers and print their sum."];
  const asked = problem === undefined ? text : hasEpisodes ? [problem] : [problem, "grade=true"];
  const about = isGained ? "a problem that it learned to solve" : "a problem";
  return [
    {
      why: `ask it ${about}, beside the base model`,
      command: shellCommand(`${whet} sample`, `run=${path}`, `checkpoint=base,${view.newest?.name ?? ""}`, ...asked),
    },
    { why: "measure both, problem by problem", command: shellCommand(`${whet} eval`, `run=${path}`, "compare=base") },
    { why: "take the adapter away", command: shellCommand(`${whet} export`, `run=${path}`, `out=${path}-adapter`) },
    { why: "the curves in TensorBoard", command: shellCommand("tensorboard", "--logdir", path) },
  ];
}

/** A problem that was gained; else one that is solved, or any. */
function exampleOf(before: Evaluation | undefined, after = before): { problem: string | undefined; isGained: boolean } {
  const failed = new Set(before?.outcomes.filter(({ passed }) => passed === 0).map(({ id }) => id));
  const solved = after?.outcomes.filter(({ passed }) => passed > 0) ?? [];
  const gained = solved.find(({ id }) => failed.has(id));
  return { problem: (gained ?? solved[0] ?? after?.outcomes[0])?.id, isGained: gained !== undefined };
}

/** The first and the last evaluation, on the problems that both have: another eval_max_problems on the way changes the set. */
export function evaluationPair(view: RunView): { first?: Evaluation; last?: Evaluation } {
  const steps = [...view.evaluations.keys()].sort((a, b) => a - b);
  const [from, to] = [steps[0], steps.at(-1)].map((step) => view.evaluations.get(step ?? -1)?.outcomes);
  if (!from) return {};
  if (!to || steps.length < 2) return { first: summarizeOutcomes(from) };
  const shared = new Set(from.map(({ id }) => id));
  const both = to.filter(({ id }) => shared.has(id));
  const ids = new Set(both.map(({ id }) => id));
  return { first: summarizeOutcomes(from.filter(({ id }) => ids.has(id))), last: summarizeOutcomes(both) };
}

const figuresOf = ({ pass1, bySource, passAtK, formatRate, ungradedProblems, figures }: Evaluation) => ({
  pass1,
  bySource,
  passAtK,
  formatRate,
  ungradedProblems,
  figures,
});
