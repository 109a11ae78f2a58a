// When each stage ran, over time: one row per stage, one bar per step. What stands empty between bars is time in which a stage waited.
// @ts-check
import { clock, h, percent, replace, svg } from "./dom.js";

/** @import { Span } from "../../runs/events.ts" */
/** @import { Stages } from "../routes.ts" */

/** Rows from top to bottom; spans of other names are left out. */
const rows = [
  { name: "sample", label: "sampling" },
  { name: "grade", label: "grading" },
  { name: "carried", label: "carried" },
  { name: "train", label: "training" },
  { name: "weights", label: "publishing" },
  { name: "evaluate", label: "evaluating" },
];
const rowHeight = 26;
const labelWidth = 74;

/** @param {HTMLElement} place @param {Stages} data @param {(step: number) => void} onStep */
export function drawGantt(place, { steps, evaluations }, onStep) {
  const bars = steps.flatMap(({ step, lag, spans }) =>
    spans.map((span) => ({ ...span, step, lag })).filter(({ name }) => rows.some((row) => row.name === name)),
  );
  for (const { step, start, end } of evaluations) bars.push({ name: "evaluate", start, end, step, lag: null });
  const totals = steps.flatMap(({ spans }) => spans.filter(({ name }) => name === "total"));
  if (bars.length === 0 || totals.length === 0) {
    replace(place, h("p.quiet", "No step is over yet."));
    return;
  }
  const from = Math.min(...totals.map(({ start }) => start));
  const to = Math.max(...totals.map(({ end }) => end));
  const width = Math.max(280, place.clientWidth - 2);
  const height = rows.length * rowHeight + 24;
  const x = (/** @type {number} */ time) =>
    labelWidth + ((Math.max(from, Math.min(to, time)) - from) / Math.max(1, to - from)) * (width - labelWidth - 54);
  const shown = rows.filter(({ name }) => bars.some((bar) => bar.name === name && bar.end >= from));
  const picture = svg("svg", { viewBox: `0 0 ${width} ${height}`, width, height, class: "gantt", role: "img" });
  const idle = shown.map(({ name, label }) => `${label} idle ${percent(idleShare(bars, name, from, to))}`).join(", ");
  picture.setAttribute(
    "aria-label",
    `Stages of steps ${steps[0].step} to ${steps[steps.length - 1].step} over ${clock((to - from) / 1000)}: ${idle}`,
  );
  for (const [index, { name, label }] of shown.entries()) {
    const y = index * rowHeight + 4;
    picture.append(
      svg("text", { x: labelWidth - 8, y: y + 15, "text-anchor": "end", class: "gantt-label" }, label),
      svg("rect", {
        x: labelWidth,
        y,
        width: width - labelWidth - 54,
        height: rowHeight - 6,
        class: "gantt-track",
        rx: 3,
      }),
      svg(
        "text",
        { x: width - 4, y: y + 15, "text-anchor": "end", class: "gantt-label" },
        percent(1 - idleShare(bars, name, from, to)),
      ),
    );
    for (const bar of bars) {
      if (bar.name !== name || bar.end < from) continue;
      const left = x(bar.start);
      const rect = svg("rect", {
        x: left,
        y,
        width: Math.max(1, x(bar.end) - left),
        height: rowHeight - 6,
        rx: 2,
        class: `gantt-bar gantt-${name} ${bar.step % 2 ? "odd" : "even"}`,
        onclick: () => name !== "evaluate" && onStep(bar.step),
      });
      const lag = bar.lag ? `, answered by a policy ${bar.lag} behind` : "";
      rect.append(
        svg(
          "title",
          {},
          `step ${bar.step}: ${label} ${((bar.end - bar.start) / 1000).toFixed(2)} s${name === "sample" ? lag : ""}`,
        ),
      );
      picture.append(rect);
    }
  }
  const bottom = shown.length * rowHeight + 16;
  for (let tick = 0; tick <= 4; tick++) {
    const time = from + ((to - from) * tick) / 4;
    picture.append(
      svg(
        "text",
        { x: x(time), y: bottom, "text-anchor": "middle", class: "gantt-label" },
        clock((time - from) / 1000),
      ),
    );
  }
  picture.setAttribute("height", String(bottom + 6));
  picture.setAttribute("viewBox", `0 0 ${width} ${bottom + 6}`);
  replace(place, picture);
}

/**
 * The share of the time in which no bar of a stage ran.
 * @param {Span[]} bars @param {string} name @param {number} from @param {number} to
 */
export function idleShare(bars, name, from, to) {
  let covered = 0;
  let end = from;
  const own = bars.filter((bar) => bar.name === name).sort((a, b) => a.start - b.start);
  for (const bar of own) {
    const [start, stop] = [Math.max(end, bar.start), Math.min(to, bar.end)];
    if (stop > start) covered += stop - start;
    end = Math.max(end, stop);
  }
  return 1 - covered / Math.max(1, to - from);
}
