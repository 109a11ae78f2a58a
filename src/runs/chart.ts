// A run's curves as one SVG picture: lines over steps, points with intervals for evaluations. No scripts, no fonts to fetch; it reads
// on light and dark pages.
import { escapeHtml } from "../core/html.ts";
import type { MetricsRecord } from "./records.ts";
import { knownCurves, type Plot, svgPlot, svgTag } from "./svg-plot.ts";

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
    { label: "format rate", color: "gray", values: values("format_rate") },
    { label: "mean reward", color: "blue", values: values("mean_reward") },
    { label: "mean correct", color: "green", values: values("mean_correct") },
    {
      label: "Pass@1 (greedy, test problems, 95%)",
      color: "orange",
      values: values("eval/pass@1"),
      low: values("eval/pass@1_low"),
      high: values("eval/pass@1_high"),
    },
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
