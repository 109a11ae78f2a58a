// A run's curves as one SVG picture: lines over steps, points with intervals for evaluations. No scripts, no fonts to fetch; it reads
// on light and dark pages.
import { escapeHtml } from "../core/html.ts";
import { metricCharts } from "./metric-names.ts";
import type { MetricsRecord } from "./records.ts";
import { knownCurves, type Plot, pass1Curve, svgPlot, svgTag } from "./svg-plot.ts";

const frame = { width: 760, height: 340, top: 44 };
const colors = { gray: "#8b8fa3", blue: "#3b82f6", green: "#22a06b", orange: "#e8590c", violet: "#a855f7" };
const style = [
  "svg{font:12px system-ui,sans-serif;fill:#888}.grid{stroke:#8884}.line{fill:none;stroke-width:2}.dashed{stroke-dasharray:5 4}",
  ...Object.entries(colors).map(([name, color]) => `.${name}{stroke:${color}}.dot.${name}{fill:${color}}`),
].join("");

/** The picture of a training run, from its metrics records. */
export function runChart(history: readonly MetricsRecord[], title: string): string {
  const values = (name: string) =>
    history.map(({ [name]: value = Number.NaN }) => (Number.isFinite(value) ? value : null));
  const lines = [
    ...metricCharts[0]!.lines.map(([name, label, color]) => ({ label, color, values: values(name) })),
    pass1Curve("Pass@1 (greedy, test problems, 95%)", "orange", values),
  ];
  return picture(title, { steps: history.map(({ step }) => step), lines });
}

/** Curves between 0 and 1, or a little wider where they go beyond, as a file of its own. */
export function picture(title: string, { steps, lines }: Pick<Plot, "steps" | "lines">): string {
  let at = 50;
  const legend = knownCurves(lines).map(({ label, color }) => {
    const item = `<circle class="dot ${color}" cx="${at + 5}" cy="30" r="5"/><text x="${at + 15}" y="34">${label}</text>`;
    at += 30 + label.length * 7;
    return item;
  });
  return [
    svgTag(title, frame, ' xmlns="http://www.w3.org/2000/svg" width="760" height="340"'),
    `<style>${style}</style><text x="50" y="15" font-size="14" font-weight="600">${escapeHtml(title)}</text>`,
    ...legend,
    ...svgPlot({ steps, lines, range: [0, 1] }, frame),
    "</svg>\n",
  ].join("\n");
}
