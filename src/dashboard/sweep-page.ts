// The runs of a sweep on one page to send: the table, and their curves over each other.
import { type MetricChart, metricCharts } from "../runs/metric-names.ts";
import { type Curve, pass1Curve } from "../runs/svg-plot.ts";
import type { RunView } from "../runs/view.ts";
import { untrustedHtml } from "./html.ts";
import { figureOf, pageOf, pass1Figure, row } from "./report-parts.ts";

export interface SweepPage {
  title: string;
  /** What all runs have in common. */
  about: string;
  header: readonly string[];
  rows: readonly (readonly string[])[];
  notes: readonly string[];
  /** In the order of the rows. */
  runs: readonly { label: string; view: RunView }[];
}

const hues = ["blue", "orange", "green", "violet", "red", "teal", "gray"];
/** As many as can be distinguished. */
const colors = [...hues, ...hues.map((hue) => `${hue} dashed`)];

export function renderSweep({ title, about, header, rows, notes, runs }: SweepPage, now: Date): string {
  const drawn = runs.slice(0, colors.length);
  const more = runs.length - drawn.length;
  const textRow = (cells: readonly string[], tag?: "th") =>
    row(
      cells.map((cell) => untrustedHtml(cell)),
      tag,
    );
  return pageOf(`${title} · Whetstone`, [
    `<header><h1>${untrustedHtml(title)}</h1><p><code>${untrustedHtml(about)}</code></p>`,
    `<p>written ${now.toISOString().slice(0, 16).replace("T", " ")} UTC by Whetstone</p></header>`,
    `<section><table>${textRow(header, "th")}${rows.map((cells) => textRow(cells)).join("\n")}</table>`,
    ...notes.map((note) => `<p>${untrustedHtml(note)}</p>`),
    `</section><section><h2>Curves${more > 0 ? ` of the first ${drawn.length}` : ""}</h2><div class="charts">`,
    pass1Of(drawn),
    ...metricCharts.filter(({ stacked, optional }) => !stacked && !optional).map((chart) => curvesOf(drawn, chart)),
    "</div></section>",
  ]);
}

/** The first metric of a chart, for every run. */
function curvesOf(runs: SweepPage["runs"], { title, hint, lines: [first], range }: MetricChart): string {
  const [metric, what] = first!;
  const steps = stepsOf(runs.flatMap(({ view }) => view.steps.map(({ step }) => step)));
  const lines = runs.map(({ label, view }, index): Curve => {
    const values = new Map(view.steps.map(({ step, metrics }) => [step, metrics[metric]]));
    return { label, color: colors[index]!, values: steps.map((step) => finite(values.get(step))) };
  });
  return figureOf({ title, steps, lines, range, hint: [what, ...(hint === undefined ? [] : [hint])].join(" · ") });
}

function pass1Of(runs: SweepPage["runs"]): string {
  const steps = stepsOf(runs.flatMap(({ view }) => [...view.evaluations.keys()]));
  const lines = runs.map(({ label, view }, index) => {
    const figure = (name: string) => steps.map((step) => finite(view.evaluations.get(step)?.metrics[name]));
    return pass1Curve(label, colors[index]!, figure);
  });
  return pass1Figure(steps, lines);
}

const stepsOf = (steps: readonly number[]) => [...new Set(steps)].sort((a, b) => a - b);

const finite = (value: number | undefined) => (value !== undefined && Number.isFinite(value) ? value : null);
