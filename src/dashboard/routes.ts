// What the page can ask for, as a table: one line per address below /api/run/ID. Everything is read from the journal.

import { type Phase, readBatch, turnTokens } from "../runs/batch.ts";
import { ratesBySource } from "../runs/rates.ts";
import { detailsOf, readGroups, readSample } from "./details.ts";
import { DashboardError, notFound } from "./errors.ts";
import { infoOf, pulseOf, sliceOf } from "./info.ts";
import { compareEvaluationsOf, listProblems, problemOf } from "./problems.ts";
import type { RunIndex } from "./run-index.ts";
import { pieces, promptText } from "./tokens.ts";

export type Stages = ReturnType<typeof spansOf>;
export type Step = ReturnType<typeof stepOf>;
export type EvaluationDetail = ReturnType<typeof evaluationOf>;
export type GroupDetail = Awaited<ReturnType<typeof groupOf>>;
export type Answer = ReturnType<typeof sampleOf>;
export type Tokens = Awaited<ReturnType<typeof tokensOf>>;

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
  ["/evals/:n/:n", ({ index, numbers: [a, b] }) => compareEvaluationsOf(index.view, a!, b!)],
  ["/problems", ({ index }) => listProblems(index.view)],
  ["/problem", ({ index, query }) => problemOf(index.view, query.get("id") ?? "")],
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

function seriesOf({ view }: RunIndex, query: URLSearchParams) {
  const from = Math.min(view.steps.length, Number(query.get("from")) || 0);
  return sliceOf(view.steps, query.getAll("name").slice(0, 50), from);
}

/** The stages of some rows, and the evaluations that ran beside them. */
function spansOf({ view }: RunIndex, query: URLSearchParams) {
  const rows = view.steps.length;
  const to = Math.min(rows, query.has("to") ? Number(query.get("to")) || 0 : rows);
  const from = Math.max(0, Math.min(to, query.has("from") ? Number(query.get("from")) || 0 : to - 30), to - 500);
  const steps = view.steps
    .slice(from, to)
    .map(({ step, metrics: { "pipeline/lag": lag = null }, spans }) => ({ step, lag, spans }));
  const times = steps.flatMap(({ spans: list }) => list.flatMap(({ start, end }) => [start, end]));
  const [first, last] = [Math.min(...times), Math.max(...times)];
  const beside = [...view.evaluations.values()]
    .filter(({ start, end }) => end >= first && start <= last)
    .map(({ step, start, end }) => ({ step, start, end }));
  return { from, to, rows, steps, evaluations: beside };
}

function stepOf(index: RunIndex, step: number) {
  const { steps, updates } = index.view;
  const row = steps.findLastIndex((done) => done.step === step);
  const groups = readGroups(index, "train", step);
  if (row < 0 && groups.length === 0) throw notFound(`Step ${step}`);
  // One that is not over comes after all that are.
  const place = row < 0 ? steps.length : row;
  const stepAt = (at: number): number | null => steps[at]?.step ?? null;
  return {
    step,
    done: row >= 0,
    previous: stepAt(place - 1),
    next: stepAt(place + 1),
    learningRate: updates.get(step)?.learningRate ?? null,
    metrics: finite(steps[row]?.metrics ?? {}),
    spans: steps[row]?.spans ?? [],
    groups,
  };
}

function evaluationOf(index: RunIndex, step: number) {
  const evaluation = index.view.evaluations.get(step);
  const groups = readGroups(index, "eval", step);
  if (!evaluation && groups.length === 0) throw notFound(`The evaluation of step ${step}`);
  const sources = ratesBySource(evaluation?.outcomes ?? []);
  return { step, done: evaluation !== undefined, metrics: finite(evaluation?.metrics ?? {}), sources, groups };
}

async function groupOf({ index, numbers: [batch, group] }: Asked, phase: Phase) {
  const [found] = readBatch(index, phase, batch!, group).groups;
  if (!found) throw notFound(`Group ${group} of step ${batch}`);
  const ids = found.arrays()["prompt"];
  const prompt =
    ids instanceof Int32Array
      ? await promptText(index.view.config, ids)
      : { text: null, note: "The journal no longer has the tokens of this step (keep_journal=checkpoint)." };
  return { ...detailsOf(found), phase, batch: batch!, prompt };
}

function sampleOf({ index, numbers: [batch, group, sample] }: Asked, phase: Phase) {
  const found = readSample(index, phase, batch!, group!, sample!);
  if (!found) throw notFound(`Answer ${sample} of group ${group} of step ${batch}`);
  return found;
}

/** The tokens of a sample, turn by turn: what the model was shown behind its first prompt, and what it wrote. */
async function tokensOf({ index, numbers: [number, group, sample] }: Asked, phase: Phase) {
  const [found] = readBatch(index, phase, number!, group).groups;
  const turns = found?.sampled.samples[sample!] && turnTokens(index, found, sample!);
  if (!found || !turns)
    throw new DashboardError(
      404,
      "dashboard/no-tokens",
      "The journal no longer has the tokens of this answer: the run keeps them only back to its newest checkpoint (keep_journal=checkpoint). Look at a later step.",
    );
  const isTrained = found.judged?.trained.includes(sample!) ?? false;
  const parts = turns.flatMap(({ turn, context, tokens, sampler, trainer, counts }) => [
    ...(turn === 0 ? [] : [{ turn, kind: "context", ids: context, logprobs: undefined, trained: undefined }]),
    { turn, kind: isTrained && counts ? "trained" : "sampled", ids: tokens, logprobs: sampler, trained: trainer },
  ]);
  const texts = await Promise.all(parts.map(({ ids }) => pieces(index.view.config, ids)));
  const figures = (of: "logprobs" | "trained") =>
    parts.flatMap((part) => Array.from(part.ids, (_, place) => rounded(part[of]?.[place])));
  return {
    parts: parts.map(({ turn, kind, ids }) => ({ turn, kind, length: ids.length })),
    pieces: texts.flatMap((part) => part.pieces),
    note: texts[0]?.note ?? null,
    logprobs: figures("logprobs"),
    trained: turns.some(({ trainer }) => trainer) ? figures("trained") : null,
  };
}

const rounded = (value: number | undefined) =>
  value !== undefined && Number.isFinite(value) ? Number(value.toPrecision(5)) : null;

/** What JSON has no number for, as text. */
const finite = (figures: Readonly<Record<string, number>>) =>
  Object.fromEntries(
    Object.entries(figures).map(([name, value]) => [name, Number.isFinite(value) ? value : String(value)]),
  );
