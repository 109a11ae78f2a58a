// What the head of a run's page shows, and the figures of its steps, as the page gets them.
import type { EventOf } from "../runs/events.ts";
import { metricCharts, metricMeaning } from "../runs/metric-names.ts";
import { stateOf, writerOf } from "../runs/overview.ts";
import { startedFrom } from "../runs/started-from.ts";
import type { DoneStep } from "../runs/view.ts";
import type { RunIndex } from "./run-index.ts";

/** The figures that the overview shows; others are asked for by name. */
export const shownNames: readonly string[] = [
  ...metricCharts.flatMap(({ lines }) => lines.map(([name]) => name)),
  "groups_total",
  "optim/lr",
  "pipeline/lag",
];

export type Pulse = ReturnType<typeof pulseOf>;
export type Info = ReturnType<typeof infoOf>;
export type Series = ReturnType<typeof sliceOf>;

/** An evaluation in JSON, which has null for figures that are not finite. */
export interface Evaluation extends Pick<EventOf<"evaluated">, "step" | "final" | "start" | "end"> {
  metrics: Readonly<Record<string, number | null>>;
}

/** What changes with every event: where the run is. */
export function pulseOf(index: RunIndex) {
  const { view } = index;
  return {
    state: stateOf(index.path, view, index.problem),
    pid: writerOf(index.path) ?? null,
    step: view.steps.at(-1)?.step ?? -1,
    rows: view.steps.length,
    lastAt: view.lastAt,
    sinceStep: { ...view.sinceStep },
    /** The share of the journal that was read. */
    walked: index.isWalking ? index.progress : 1,
    problem: index.problem ?? null,
  };
}

/** What changes now and then. */
export function infoOf({ view }: RunIndex) {
  return {
    config: view.config,
    from: startedFrom(view.config) ?? null,
    charts: metricCharts,
    sessions: view.sessions,
    seconds: view.seconds,
    metrics: [...view.metricNames].sort().map((name) => ({ name, meaning: metricMeaning(name) ?? "" })),
    evaluations: [...view.evaluations.values()]
      .sort((a, b) => a.step - b.step)
      .map(({ step, final, metrics, start, end }): Evaluation => ({ step, final, metrics, start, end })),
    checkpoints: view.checkpoints.map(({ name, step, final }) => ({ name, step, final: final ?? false })),
    controls: { paused: view.paused },
    causes: view.findings.causes.map(({ root: { finding, ...root }, symptoms, level }) => ({
      ...finding,
      ...root,
      level,
      symptoms: symptoms.map(({ since, finding: { id, message, steps } }) => ({ id, message, steps, since })),
    })),
    notes: view.notes.filter(({ level, type }) => level !== "INFO" || type !== "log").slice(-100),
  };
}

/** Some figures of the steps from a row on, rounded to what a chart can show; null where one is missing or not finite. */
export function sliceOf(steps: readonly DoneStep[], names: readonly string[], from = 0, to = steps.length) {
  const rows = steps.slice(from, to);
  const columns: Record<string, (number | null)[]> = {};
  for (const name of names) {
    const column = rows.map(({ metrics }) => shown(metrics[name]));
    if (column.some((value) => value !== null)) columns[name] = column;
  }
  return { from, steps: rows.map(({ step }) => step), columns };
}

const shown = (value: number | undefined) =>
  value !== undefined && Number.isFinite(value) ? Number(value.toPrecision(6)) : null;
