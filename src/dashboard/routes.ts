// What the page can ask for, as a table: one line per address below /api/run/ID. Everything is read from the journal.

import { ratesBySource } from "../runs/rates.ts";
import { type Phase, readGroup, readGroups, readSample, readTokens } from "./details.ts";
import { DashboardError, notFound } from "./errors.ts";
import { infoOf, pulseOf } from "./info.ts";
import { compareEvaluationsOf, problemOf, problemsOf } from "./problems.ts";
import type { RunIndex } from "./run-index.ts";
import { pieces, promptText } from "./tokens.ts";

interface Asked {
  index: RunIndex;
  /** The numbers in the address, in order. */
  numbers: number[];
  query: URLSearchParams;
}

type Handler = (asked: Asked) => unknown;

/** `:n` stands for a whole number. */
const table: readonly [path: string, handler: Handler][] = [
  ["", ({ index }) => ({ ...pulseOf(index), ...infoOf(index) })],
  ["/series", ({ index, query }) => seriesOf(index, query)],
  ["/spans", ({ index, query }) => spansOf(index, query)],
  ["/step/:n", ({ index, numbers: [step] }) => stepOf(index, step!)],
  ["/step/:n/group/:n", (asked) => groupOf(asked, "train")],
  ["/step/:n/group/:n/sample/:n", (asked) => sampleOf(asked, "train")],
  ["/step/:n/group/:n/sample/:n/tokens", (asked) => tokensOf(asked, "train")],
  ["/eval/:n", ({ index, numbers: [step] }) => evaluationOf(index, step!)],
  ["/eval/:n/group/:n", (asked) => groupOf(asked, "eval")],
  ["/eval/:n/group/:n/sample/:n", (asked) => sampleOf(asked, "eval")],
  ["/eval/:n/group/:n/sample/:n/tokens", (asked) => tokensOf(asked, "eval")],
  ["/evals/:n/:n", ({ index, numbers: [a, b] }) => compareEvaluationsOf(index, a!, b!)],
  ["/problems", ({ index }) => problemsOf(index)],
  ["/problem", ({ index, query }) => problemOf(index, query.get("id") ?? "")],
];

const routes = table.map(([path, handler]) => ({
  pattern: new RegExp(`^${path.replaceAll(":n", "(\\d{1,9})")}$`),
  handler,
}));

/** The answer to a request about a run: JSON. */
export async function answer(index: RunIndex, path: string, query: URLSearchParams): Promise<unknown> {
  for (const { pattern, handler } of routes) {
    const match = pattern.exec(path);
    if (!match) continue;
    const numbers = match.slice(1).map(Number);
    // What a handler reads before it first waits comes from one state of the journal.
    return await index.read(() => handler({ index, numbers, query }));
  }
  throw notFound(path);
}

function seriesOf(index: RunIndex, query: URLSearchParams) {
  const { columns } = index.fold;
  const names = query.getAll("name").slice(0, 50);
  return columns.slice(names, Math.min(columns.length, Number(query.get("from")) || 0), columns.length);
}

/** The stages of some rows, and the evaluations and checkpoints that ran beside them. */
function spansOf(index: RunIndex, query: URLSearchParams) {
  const { columns, spans, evaluations } = index.fold;
  const to = Math.min(columns.length, query.has("to") ? Number(query.get("to")) || 0 : columns.length);
  const from = Math.max(0, Math.min(to, query.has("from") ? Number(query.get("from")) || 0 : to - 30), to - 500);
  const steps = Array.from({ length: to - from }, (_, offset) => ({
    step: columns.step(from + offset),
    lag: columns.row(from + offset)["pipeline/lag"] ?? null,
    spans: spans[from + offset] ?? [],
  }));
  const times = steps.flatMap(({ spans: list }) => list.flatMap(({ start, end }) => [start, end]));
  const [first, last] = [Math.min(...times), Math.max(...times)];
  const beside = [...evaluations.values()]
    .filter(({ start, end }) => end >= first && start <= last)
    .map(({ step, start, end }) => ({ step, start, end }));
  return { from, to, rows: columns.length, steps, evaluations: beside };
}

function stepOf(index: RunIndex, step: number) {
  const { fold } = index;
  const row = fold.columns.rowOf(step);
  const groups = readGroups(index, "train", step);
  if (row < 0 && groups.length === 0) throw notFound(`Step ${step}`);
  return {
    step,
    done: row >= 0,
    previous: neighbour(index, row, step, -1),
    next: neighbour(index, row, step, 1),
    learningRate: fold.steps.get(step)?.learningRate ?? null,
    metrics: row >= 0 ? finite(fold.columns.row(row)) : {},
    spans: row >= 0 ? fold.spans[row] : [],
    groups,
  };
}

function neighbour({ fold: { columns } }: RunIndex, row: number, step: number, by: -1 | 1): number | null {
  const wanted = row >= 0 ? row + by : columns.length + Math.min(0, by);
  if (wanted < 0 || wanted >= columns.length || columns.step(wanted) === step) return null;
  return columns.step(wanted);
}

function evaluationOf(index: RunIndex, step: number) {
  const evaluation = index.fold.evaluations.get(step);
  const groups = readGroups(index, "eval", step);
  if (!evaluation && groups.length === 0) throw notFound(`The evaluation of step ${step}`);
  const sources = ratesBySource(evaluation?.outcomes ?? []);
  return { step, done: evaluation !== undefined, metrics: finite(evaluation?.metrics ?? {}), sources, groups };
}

async function groupOf({ index, numbers: [batch, group] }: Asked, phase: Phase) {
  const found = readGroup(index, phase, batch!, group!);
  if (!found) throw notFound(`Group ${group} of step ${batch}`);
  const { config } = index.fold;
  const tokens = readTokens(index, phase, batch!, group!);
  const prompt = tokens
    ? await promptText(config, tokens.prompt)
    : { text: null, note: "The journal no longer has the tokens of this step (keep_journal=checkpoint)." };
  return { ...found, phase, batch, prompt };
}

function sampleOf({ index, numbers: [batch, group, sample] }: Asked, phase: Phase) {
  const found = readSample(index, { phase, batch: batch!, group: group!, sample: sample! });
  if (!found) throw notFound(`Answer ${sample} of group ${group} of step ${batch}`);
  return found;
}

async function tokensOf({ index, numbers: [batch, group, sample] }: Asked, phase: Phase) {
  const tokens = readTokens(index, phase, batch!, group!)?.samples[sample!];
  if (!tokens)
    throw new DashboardError(
      404,
      "dashboard/no-tokens",
      "The journal no longer has the tokens of this answer: the run keeps them only back to its newest checkpoint (keep_journal=checkpoint). Look at a later step.",
    );
  const list = (array: Float32Array | undefined) =>
    array ? Array.from(array, (value) => (Number.isFinite(value) ? Number(value.toPrecision(5)) : null)) : null;
  return {
    ...(await pieces(index.fold.config, tokens.tokens)),
    logprobs: list(tokens.logprobs),
    trained: list(tokens.trained),
  };
}

const finite = (figures: Readonly<Record<string, unknown>>) =>
  Object.fromEntries(
    Object.entries(figures).map(([name, value]) => [
      name,
      Number.isFinite(Number(value)) ? Number(value) : String(value),
    ]),
  );
