// Curves over steps as the inside of an SVG picture: no script; colours are classes of the style that stands around it. Long series are
// thinned to what a picture can show.
import { escapeHtml } from "../core/html.ts";

export interface Curve {
  label: string;
  /** A class of the style: its colour. */
  color: string;
  values: readonly (number | null)[];
  /** Around each value; the values are drawn as points. */
  low?: readonly (number | null)[];
  high?: readonly (number | null)[];
}

export interface Plot {
  steps: readonly number[];
  lines: readonly Curve[];
  /** Areas one upon another, the first on the ground. */
  stacked?: boolean | undefined;
  /** At least this far. */
  range?: readonly [low: number | null, high: number | null] | undefined;
}

export interface Frame {
  width: number;
  height: number;
  /** Left free above. */
  top: number;
}

const margin = { right: 10, bottom: 24, left: 46 };
/** More points than this are not seen apart. */
const maxPoints = 400;

/** Pass@1 of evaluations with its 95% interval; `figure` gives the values of a metric. */
export const pass1Curve = (
  label: string,
  color: string,
  figure: (metric: string) => readonly (number | null)[],
): Curve => ({
  label,
  color,
  values: figure("eval/pass@1"),
  low: figure("eval/pass@1_low"),
  high: figure("eval/pass@1_high"),
});

/** The curves that have a value. */
export const knownCurves = (lines: readonly Curve[]): Curve[] =>
  lines.filter(({ values }) => values.some((value) => value !== null));

/** The opening tag of a picture. */
export const svgTag = (title: string, { width, height }: Frame, more = "") =>
  `<svg viewBox="0 0 ${width} ${height}" role="img" aria-label="${escapeHtml(title)}"${more}>`;

/** Grid, steps and curves; nothing where there is nothing to draw. */
export function svgPlot({ steps, lines, stacked = false, range }: Plot, { width, height, top: head }: Frame): string[] {
  const known = knownCurves(lines);
  if (known.length === 0 || steps.length === 0) return [];
  const drawn = stacked ? sums(known, steps.length) : known;
  const all = drawn
    .flatMap(({ values, low, high }) => [...values, ...(low ?? []), ...(high ?? [])])
    .filter((value) => value !== null);
  const [bottom, top] = bounds(all, stacked ? [0, null] : (range ?? [null, null]));
  const [first, newest] = minmax(steps);
  const last = Math.max(newest, first + 1);
  const x = (step: number) =>
    round(margin.left + ((step - first) / (last - first)) * (width - margin.left - margin.right));
  const y = (value: number) =>
    round(height - margin.bottom - ((value - bottom) / (top - bottom)) * (height - head - margin.bottom));
  const grid = ticks(bottom, top).map(
    (value) =>
      `<line class="grid" x1="${margin.left}" x2="${width - margin.right}" y1="${y(value)}" y2="${y(value)}"/>` +
      `<text x="${margin.left - 6}" y="${y(value) + 4}" text-anchor="end">${shortFigure(value)}</text>`,
  );
  const below = ticks(first, last)
    .filter(Number.isInteger)
    .map((step) => `<text x="${x(step)}" y="${height - 8}" text-anchor="middle">${step}</text>`);
  const shapes = (stacked ? [...drawn].reverse() : drawn).map((line) => {
    const points = thinned(steps, line.values);
    const path = pathOf(points, x, y);
    if (stacked) {
      const ground = points.filter(([, value]) => value !== null);
      if (ground.length === 0) return "";
      return `<path class="area ${line.color}" d="${path}L${x(ground.at(-1)![0])} ${y(bottom)}L${x(ground[0]![0])} ${y(bottom)}Z"/>`;
    }
    if (!line.low || !line.high) return `<path class="line ${line.color}" d="${path}"/>`;
    const marks = steps.map((step, row) => {
      const [value, low, high] = [line.values[row], line.low?.[row], line.high?.[row]];
      if (value == null || low == null || high == null) return "";
      return `<path class="line ${line.color}" d="M${x(step)} ${y(low)}V${y(high)}"/><circle class="dot ${line.color}" cx="${x(step)}" cy="${y(value)}" r="3.5"/>`;
    });
    return `<path class="line dashed ${line.color}" d="${path}"/>${marks.join("")}`;
  });
  return [...grid, ...below, ...shapes];
}

function sums(lines: readonly Curve[], length: number): Curve[] {
  const total = Array<number>(length).fill(0);
  return lines.map((line) => ({
    ...line,
    values: line.values.map((value, row) => {
      total[row]! += value ?? 0;
      return total[row]!;
    }),
  }));
}

function bounds(values: readonly number[], [low, high]: readonly [number | null, number | null]): [number, number] {
  const bottom = Math.min(low ?? Number.POSITIVE_INFINITY, ...minmax(values));
  const top = Math.max(high ?? Number.NEGATIVE_INFINITY, ...minmax(values));
  if (bottom < top) return [bottom, top];
  const room = Math.abs(bottom) * 0.1 || 1;
  return [bottom - room, top + room];
}

/** Not by spreading: a long run has more values than a call takes arguments. */
function minmax(values: readonly number[]): [number, number] {
  let [low, high] = [Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY];
  for (const value of values) {
    low = Math.min(low, value);
    high = Math.max(high, value);
  }
  return [low, high];
}

/** Of each stretch of a long series the lowest and the highest point: peaks stay. */
function thinned(steps: readonly number[], values: readonly (number | null)[]): [number, number | null][] {
  const points = steps.map((step, row): [number, number | null] => [step, values[row] ?? null]);
  if (points.length <= maxPoints) return points;
  const size = Math.ceil((2 * points.length) / maxPoints);
  const kept: [number, number | null][] = [];
  for (let from = 0; from < points.length; from += size) {
    const stretch = points.slice(from, from + size).filter(([, value]) => value !== null) as [number, number][];
    if (stretch.length === 0) continue;
    const lowest = stretch.reduce((a, b) => (b[1] < a[1] ? b : a));
    const highest = stretch.reduce((a, b) => (b[1] > a[1] ? b : a));
    kept.push(...[lowest, highest].sort((a, b) => a[0] - b[0]));
  }
  return kept;
}

function pathOf(
  points: readonly [number, number | null][],
  x: (step: number) => number,
  y: (value: number) => number,
): string {
  let pen = "M";
  return points
    .map(([step, value]) => {
      if (value === null) return "";
      const part = `${pen}${x(step)} ${y(value)}`;
      pen = "L";
      return part;
    })
    .join("");
}

/** About five round numbers between two. */
function ticks(low: number, high: number): number[] {
  const rough = (high - low) / 4;
  const size = 10 ** Math.floor(Math.log10(rough));
  const every = [1, 2, 5, 10].map((factor) => factor * size).find((step) => step >= rough) ?? size;
  const list: number[] = [];
  for (let value = Math.ceil(low / every) * every; value <= high + every * 1e-9; value += every)
    list.push(Number(value.toPrecision(12)));
  return list;
}

const round = (value: number) => Math.round(value * 10) / 10;

/** As short as a picture wants it. */
export function shortFigure(value: number): string {
  const size = Math.abs(value);
  return size !== 0 && (size < 1e-3 || size >= 1e6) ? value.toExponential(1) : String(Number(value.toPrecision(3)));
}
