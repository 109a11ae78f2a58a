// What the runs of a sweep came to: one row each, the best first, and how sure it is that it is the best.
import { countOf, percent, thousands } from "../../core/count.ts";
import { whet } from "../../core/program.ts";
import { shellCommand } from "../../core/shell.ts";
import { mean } from "../../core/statistics.ts";
import { visibleLine } from "../../core/visible.ts";
import { isCurable } from "../../diagnosis/rules.ts";
import { compareEvaluations, type Evaluation } from "../../rl/evaluate.ts";
import { dollars } from "../../rl/prices.ts";
import { resumeCommand } from "../../runs/directory.ts";
import { clock } from "../../runs/display.ts";
import { findingLevels } from "../../runs/findings.ts";
import { lookAt, looksLikeRun, type RunState } from "../../runs/overview.ts";
import { rateText } from "../../runs/rates.ts";
import type { RunView } from "../../runs/view.ts";
import { evaluationPair } from "./train-report.ts";

/** A run of the sweep as its journal has it; without one it was not begun. */
export interface MemberResult {
  label: string;
  values: readonly string[];
  path: string;
  view: RunView;
  state: RunState | "not begun";
  /** Why it is not finished, or the worst that the diagnosis found. */
  problem: string | undefined;
}

interface SweepTable {
  header: string[];
  /** In the order of `members`. */
  rows: string[][];
  /** The best first, those that have nothing to compare last. */
  members: MemberResult[];
  /** Whole sentences about the table. */
  notes: string[];
  /** What to do with the best. */
  next: { why: string; command: string }[];
}

/** Steps whose mean stands for where a run ended. */
const lastSteps = 5;
const likely = 0.05;

/** `failed`: why its process ended, for a run whose journal does not say. */
export function readMember(
  { label, values, path }: Pick<MemberResult, "label" | "values" | "path">,
  failed: string | undefined,
): MemberResult {
  const { view, state, problem } = lookAt(path);
  const begun = looksLikeRun(path);
  const why = (begun ? problem : undefined) ?? failed ?? (state === "crashed" ? "its process was killed" : undefined);
  return { label, values, path, view, state: begun ? state : "not begun", problem: why };
}

export function sweepTable(keys: readonly string[], results: readonly MemberResult[]): SweepTable {
  const all = results.map((result) => ({ ...result, ...figuresOf(result) }));
  const usable = all.filter(({ score }) => score !== undefined);
  const measured = usable.every(({ last }) => last?.pass1 !== undefined);
  const members = [
    ...usable.toSorted((a, b) => scoreOf(b, measured) - scoreOf(a, measured)),
    ...all.filter(({ score }) => score === undefined),
  ];
  const [best] = usable.length > 0 ? members : [];
  const pass1 = ({ first, last }: Row) => {
    if (!last?.pass1) return "–";
    return `${first?.pass1 ? `${percent(first.pass1.rate)} → ` : ""}${rateText(last.pass1)}`;
  };
  const columns = [
    column("", (row) => (row === best ? "*" : "")),
    ...keys.map((key, index) => column(key, ({ values }) => visibleLine(values[index]!, 40))),
    column("state", ({ state }) => state, "finished"),
    column("steps", ({ view }) => stepsOf(view)),
    column("Pass@1", pass1, "–"),
    column("reward", ({ reward }) => reward?.toFixed(3) ?? "–", "–"),
    column("time", ({ view }) => clock(view.seconds)),
    column("tokens", ({ tokens }) => (tokens === 0 ? "–" : thousands(tokens)), "–"),
    column("cost", ({ cost }) => (cost ? dollars(cost) : "–"), "–"),
    column("findings", ({ found }) => found || "–", "–"),
  ].filter(({ cell, usual }) => members.some((row) => cell(row) !== usual));
  return {
    header: columns.map(({ title }) => title),
    rows: members.map((row) => columns.map(({ cell }) => cell(row))),
    members,
    notes: [
      ...(best ? notesOn(best, members.slice(1), measured, keys) : []),
      ...seedsOf(keys, usable, measured),
      ...results.flatMap(({ label, state, problem, path }) =>
        problem === undefined
          ? []
          : [
              `${label}: ${state}, ${visibleLine(problem, 300)}${state === "not begun" ? "" : ` (${shellCommand(`${whet} show`, path)})`}`,
            ],
      ),
    ],
    next: best ? nextOf(best) : [],
  };
}

/** A column is left out where every cell is `usual`. */
const column = (title: string, cell: (row: Row) => string, usual?: string) => ({ title, cell, usual });

/** The score is undefined for a run that cannot be compared: it is not over, or training broke it. */
function figuresOf({ view, state }: MemberResult) {
  const { first, last } = evaluationPair(view);
  const rewards = view.steps.flatMap(({ metrics }) => metrics["mean_reward"] ?? []);
  const reward = mean(rewards.slice(-lastSteps));
  const newest = view.steps.at(-1)?.metrics;
  const sum = (...names: string[]) => names.reduce((all, name) => all + (newest?.[name] ?? 0), 0);
  const { causes } = view.findings;
  const counted = findingLevels.toReversed().flatMap((level) => {
    const count = causes.filter((cause) => cause.level === level).length;
    return count === 0 ? [] : [countOf(count, level)];
  });
  const harmed = causes.some(({ level, root }) => level === "error" && isCurable(root.finding.id));
  const isOver = state === "finished" || (state === "stopped" && view.newest?.name.startsWith("budget-"));
  return {
    first: last && first,
    last: last ?? first,
    reward,
    score: isOver && !harmed ? ((last ?? first)?.pass1?.rate ?? reward) : undefined,
    tokens: sum("tokens/prefill_total", "tokens/sampled_total", "tokens/trained_total"),
    cost: newest?.["cost/total"],
    found: counted.join(", "),
  };
}

type Row = MemberResult & ReturnType<typeof figuresOf>;

/** Pass@1 where every run has one, else the reward: the two cannot be compared. */
const scoreOf = ({ last, reward }: Row, measured: boolean) => (measured ? last!.pass1!.rate : (reward ?? -1));

function stepsOf({ steps, config }: RunView): string {
  const asked = Number(config["max_steps"] ?? -1);
  return asked > 0 ? `${steps.length}/${asked}` : String(steps.length);
}

/** Which is the best, and which others may be as good: the same problems were asked of all. */
function notesOn(best: Row, others: readonly Row[], measured: boolean, keys: readonly string[]): string[] {
  const which = others.some(({ score }) => score === undefined) ? "best of those that can be compared" : "best";
  if (!measured)
    return [
      `* ${which}: ${best.label}, by the mean reward of the last ${lastSteps} steps, each of other problems: eval_every= measures every run on the same ones.`,
    ];
  const compared = others.flatMap((other) => {
    if (other.score === undefined) return [];
    const { gained, lost, pValue } = compareEvaluations(outcomesOf(other.last), outcomesOf(best.last));
    return [{ pValue, text: `${other.label} (${gained} gained, ${lost} lost, p = ${pValue.toPrecision(2)})` }];
  });
  const near = compared.filter(({ pValue }) => pValue >= likely);
  const said = `* ${which}: ${best.label}, Pass@1 ${rateText(best.last!.pass1!)} of ${best.last!.pass1!.problems} problems`;
  if (compared.length === 0) return [`${said}.`];
  return [
    near.length === 0
      ? `${said}; ahead of each other one, problem by problem (sign test, p < ${likely}).`
      : `${said}. Within noise of it, problem by problem (sign test, p ≥ ${likely}): ${near.map(({ text }) => text).join("; ")}.`,
    ...(keys.includes("seed") ? [] : ["One seed each: seed=0,1,2 beside it says how much of a difference is luck."]),
  ];
}

const outcomesOf = (evaluation: Evaluation | undefined) => evaluation?.outcomes ?? [];

/** Where seeds are swept beside other keys: what each setting came to over its seeds. */
function seedsOf(keys: readonly string[], rows: readonly Row[], measured: boolean): string[] {
  const at = keys.indexOf("seed");
  if (at < 0 || keys.length < 2) return [];
  const bySetting = new Map<string, number[]>();
  for (const row of rows) {
    const setting = keys.flatMap((key, index) => (index === at ? [] : [`${key}=${row.values[index]}`])).join(" ");
    bySetting.set(setting, [...(bySetting.get(setting) ?? []), scoreOf(row, measured)]);
  }
  const show = (value: number) => (measured ? percent(value) : value.toFixed(3));
  return [...bySetting]
    .sort(([, a], [, b]) => mean(b)! - mean(a)!)
    .map(
      ([setting, scores]) =>
        `${visibleLine(setting, 120)}, over ${countOf(scores.length, "seed")}: mean ${show(mean(scores)!)}, from ${show(Math.min(...scores))} to ${show(Math.max(...scores))}.`,
    );
}

function nextOf({ path, view }: Row): SweepTable["next"] {
  return [
    {
      why: "measure the best beside the base model",
      command: shellCommand(`${whet} eval`, `run=${path}`, "compare=base"),
    },
    { why: "train it further", command: resumeCommand(path, `max_steps=${2 * Math.max(1, view.newest!.step)}`) },
    { why: "another run from its weights", command: shellCommand(`${whet} train`, `from=${path}`) },
  ];
}
