// A run's curves as one SVG picture: lines over steps, points with intervals for evaluations. No scripts, no fonts to fetch; it reads
// on light and dark pages.
import type { MetricsRecord } from "./records.ts";

export interface Line {
  label: string;
  color: string;
  /** [step, value], in order. */
  points: readonly (readonly [step: number, value: number])[];
  /** Per point: the interval around it. Drawn as bars, with dots instead of a thin line. */
  intervals?: readonly (readonly [low: number, high: number])[];
}

export interface ChartOptions {
  title: string;
  lines: readonly Line[];
  width?: number;
  height?: number;
}

const margin = { top: 44, right: 18, bottom: 40, left: 50 };

/** The SVG text. Values are drawn between 0 and 1, or a little wider where they go beyond. */
export function renderChart({ title, lines, width = 760, height = 340 }: ChartOptions): string {
  const values = lines.flatMap(({ points, intervals }) => [
    ...points.map(([, value]) => value),
    ...(intervals ?? []).flat(),
  ]);
  const low = Math.min(0, ...values);
  const high = Math.max(1, ...values);
  const last = Math.max(1, ...lines.flatMap(({ points }) => points.map(([step]) => step)));
  const x = (step: number) => round(margin.left + (step / last) * (width - margin.left - margin.right));
  const y = (value: number) =>
    round(height - margin.bottom - ((value - low) / (high - low)) * (height - margin.top - margin.bottom));

  const grid = [0, 0.25, 0.5, 0.75, 1].map(
    (value) =>
      `<line x1="${margin.left}" x2="${width - margin.right}" y1="${y(value)}" y2="${y(value)}" stroke="#8884"/>` +
      `<text x="${margin.left - 8}" y="${y(value) + 4}" text-anchor="end">${value}</text>`,
  );
  const ticks = stepTicks(last).map(
    (step) => `<text x="${x(step)}" y="${height - margin.bottom + 18}" text-anchor="middle">${step}</text>`,
  );
  const curves = lines.map(({ points, color, intervals }) => {
    const path = points.map(([step, value], index) => `${index === 0 ? "M" : "L"}${x(step)} ${y(value)}`).join("");
    const bars = (intervals ?? []).map(([from, to], index) => {
      const at = x(points[index]![0]);
      return (
        `<path d="M${at} ${y(from)}V${y(to)}M${at - 4} ${y(from)}h8M${at - 4} ${y(to)}h8" stroke="${color}" fill="none"/>` +
        `<circle cx="${at}" cy="${y(points[index]![1])}" r="4" fill="${color}"/>`
      );
    });
    const dash = intervals ? ' stroke-dasharray="5 4"' : "";
    return `<path d="${path}" fill="none" stroke="${color}" stroke-width="2"${dash}/>${bars.join("")}`;
  });
  let at = margin.left;
  const legend = lines.map(({ label, color }) => {
    const item = `<circle cx="${at + 5}" cy="30" r="5" fill="${color}"/><text x="${at + 15}" y="34">${escapeXml(label)}</text>`;
    at += 30 + label.length * 7;
    return item;
  });
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}" width="${width}" height="${height}" role="img" aria-label="${escapeXml(title)}" font-family="system-ui, sans-serif" font-size="12" fill="#888">`,
    `<text x="${margin.left}" y="15" font-size="14" font-weight="600">${escapeXml(title)}</text>`,
    ...legend,
    ...grid,
    ...ticks,
    `<text x="${(width + margin.left - margin.right) / 2}" y="${height - 6}" text-anchor="middle">step</text>`,
    ...curves,
    "</svg>\n",
  ].join("\n");
}

const round = (value: number) => Math.round(value * 10) / 10;

function stepTicks(last: number): number[] {
  const size = 10 ** Math.floor(Math.log10(last));
  const every =
    [0.1, 0.2, 0.5, 1, 2].map((factor) => Math.max(1, size * factor)).find((step) => last / step <= 10) ?? size;
  return Array.from({ length: Math.floor(last / every) + 1 }, (_, index) => Math.round(index * every));
}

function escapeXml(text: string): string {
  return text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;").replaceAll('"', "&quot;");
}

/** The picture of a training run, from its metrics records. */
export function runChart(history: readonly MetricsRecord[], title: string): string {
  const series = (name: string) =>
    history.flatMap((record) => {
      const value = record[name];
      return value === undefined ? [] : [[record.step, value] as const];
    });
  const evaluations = history.filter((record) => record["eval/pass@1"] !== undefined);
  const lines: Line[] = [
    { label: "format rate", color: "#8b8fa3", points: series("format_rate") },
    { label: "mean reward", color: "#3b82f6", points: series("mean_reward") },
    { label: "mean correct", color: "#22a06b", points: series("mean_correct") },
    {
      label: "Pass@1 (greedy, test problems, 95%)",
      color: "#e8590c",
      points: series("eval/pass@1"),
      intervals: evaluations.map(
        (record) => [Number(record["eval/pass@1_low"]), Number(record["eval/pass@1_high"])] as const,
      ),
    },
  ];
  return renderChart({ title, lines: lines.filter(({ points }) => points.length > 0) });
}
