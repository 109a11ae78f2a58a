// Curves over steps, drawn by uPlot. A click on a step opens it; so does Enter after the arrow keys. Charts of a page share one cursor.
// @ts-check
import uPlot from "../vendor/uplot/uPlot.esm.js";
import { h, picker, say, show } from "./dom.js";

/** @import { Evaluation } from "../info.ts" */

/**
 * @typedef {{ label: string, values: (number | null)[], color: string, points?: boolean, dash?: boolean, fill?: string, width?: number,
 *   scale?: string, low?: (number | null)[] | undefined, high?: (number | null)[] | undefined, format?: (value: number | null) => string }} Line
 * @typedef {{ title: string, hint?: string, stacked?: boolean, range?: readonly [number | null, number | null], height?: number, sync?: string,
 *   onStep?: (step: number) => void, format?: (value: number | null) => string, empty?: string, optional?: boolean, log?: boolean }} ChartOptions
 */

/** Colours come from the style sheet, so that both themes have their own. @param {string} name */
export const color = (name) =>
  getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim() || "#888";

export class Chart {
  /** @param {ChartOptions} options */
  constructor(options) {
    this.options = options;
    this.figure = h("figure.chart");
    this.heading = h("h3", options.title);
    this.place = h("div.plot", {
      tabindex: "0",
      role: "group",
      "aria-label": `${options.title}: chart over steps`,
    });
    this.note = h("p.quiet.chart-empty", options.empty ?? "No figures yet.");
    this.figure.append(
      h("figcaption", this.heading, options.hint ? h("span.quiet", options.hint) : null),
      this.place,
      this.note,
    );
    /** @type {uPlot | null} */ this.plot = null;
    /** @type {Line[]} */ this.lines = [];
    /** @type {number[]} */ this.steps = [];
    /** The first and the last step of what was drawn; `steps` may grow meanwhile. @type {[number, number]} */
    this.drawn = [0, 0];
    this.shape = "";
    this.observer = new ResizeObserver(() => this.#resize());
    this.observer.observe(this.place);
    this.place.addEventListener("keydown", (event) => this.#key(event));
  }

  /** @param {number[]} steps @param {Line[]} lines */
  set(steps, lines) {
    const known = lines.filter(({ values }) => values.some((value) => value !== null));
    this.figure.hidden = known.length === 0 && this.options.optional === true;
    this.note.hidden = known.length > 0;
    this.place.hidden = known.length === 0;
    // A person who has zoomed in keeps looking at what they chose.
    const { zoomed } = this;
    this.steps = steps;
    this.drawn = [steps[0] ?? 0, this.last ?? 0];
    this.lines = known;
    if (known.length === 0) return;
    const shape = known.map(({ label, color: tint, points }) => `${label}|${tint}|${points}`).join("\n");
    const data = /** @type {any} */ ([steps, ...this.#series().map(({ values }) => values)]);
    if (this.plot && shape === this.shape) {
      this.plot.setData(data, !zoomed);
      if (zoomed) this.plot.redraw();
    } else {
      this.plot?.destroy();
      this.shape = shape;
      this.plot = new uPlot(this.#config(), data, this.place);
    }
  }

  /** Whether less is looked at than was drawn last. */
  get zoomed() {
    const { min, max } = this.plot?.scales.x ?? {};
    return min != null && max != null && (min > this.drawn[0] || max < this.drawn[1]);
  }

  destroy() {
    this.observer.disconnect();
    this.plot?.destroy();
    this.plot = null;
  }

  /** Draws anew in the colours of another theme. */
  repaint() {
    this.shape = "";
    this.set(this.steps, this.lines);
  }

  /** Stacked areas are drawn from sums, the last on the ground. */
  #series() {
    if (!this.options.stacked) return this.lines;
    return this.lines.map((line, index) => ({
      ...line,
      values: this.steps.map((_, row) => {
        let sum = 0;
        for (let at = index; at < this.lines.length; at++) sum += this.lines[at].values[row] ?? 0;
        return this.lines.every(({ values }) => values[row] === null) ? null : sum;
      }),
    }));
  }

  /** @returns {uPlot.Options} */
  #config() {
    const { stacked, range, onStep, format = show, log } = this.options;
    const axis = {
      stroke: color("quiet"),
      grid: { stroke: color("grid"), width: 1 },
      ticks: { stroke: color("grid"), width: 1, size: 4 },
      font: "11px system-ui, sans-serif",
    };
    return {
      width: Math.max(200, this.place.clientWidth),
      height: this.options.height ?? 190,
      padding: [10, 12, 0, 0],
      cursor: {
        sync: { key: this.options.sync ?? "steps" },
        // uPlot would also swallow clicks at an edge, and where the page has moved under the mouse: #opens tells a click from a drag itself.
        drag: { x: true, y: false, dist: 6, click: () => {} },
        focus: { prox: 24 },
        points: { size: 7 },
      },
      legend: { live: true },
      scales: { x: { time: false }, y: { range: yRange(range), distr: log ? 3 : 1 } },
      axes: [
        { ...axis, size: 28, values: (_, ticks) => ticks.map((tick) => (Number.isInteger(tick) ? String(tick) : "")) },
        {
          ...axis,
          // As wide as what stands at it: very small figures have long names.
          size: (_, labels) => Math.max(48, 16 + 7 * Math.max(0, ...(labels ?? []).map((label) => label.length))),
          values: (_, ticks) => ticks.map((tick) => (tick === null ? "" : format(tick))),
        },
      ],
      series: [
        // Without a cursor the legend says what is newest.
        { label: "step", value: (_, value) => String(value ?? this.last ?? "–") },
        ...this.lines.map((line, index) => ({
          label: line.label,
          stroke: line.color,
          width: line.width ?? 1.75,
          ...(line.dash ? { dash: [5, 4] } : {}),
          ...(stacked || line.fill ? { fill: line.fill ?? `${line.color}cc` } : {}),
          spanGaps: line.points === true,
          points: line.points
            ? { show: true, size: 7, fill: line.color }
            : { show: (/** @type {uPlot} */ self) => self.data[0].length < 3 },
          value: (
            /** @type {uPlot} */ _,
            /** @type {number | null} */ __,
            /** @type {number} */ ___,
            /** @type {number | null} */ row,
          ) => (line.format ?? format)(this.lines[index]?.values[row ?? this.steps.length - 1] ?? null),
        })),
      ],
      hooks: {
        ready: [(self) => this.#opens(self)],
        draw: [
          (self) => {
            this.#intervals(self);
            this.place.dataset.to = String(self.scales.x.max);
          },
        ],
        setCursor: [(self) => this.place.classList.toggle("can-open", Boolean(onStep) && self.cursor.idx != null)],
      },
    };
  }

  /** A click opens the step under it; a drag zooms. @param {uPlot} self */
  #opens(self) {
    const { over } = self;
    const { onStep } = this.options;
    let pressed = 0;
    over.addEventListener("mousedown", (event) => {
      pressed = event.clientX;
    });
    over.addEventListener("click", (event) => {
      // Not the cursor's: that follows the mouse a frame later.
      const step = this.steps[self.posToIdx(event.offsetX)];
      if (onStep && step !== undefined && Math.abs(event.clientX - pressed) < 4) onStep(step);
    });
  }

  /** The interval around each point. @param {uPlot} self */
  #intervals(self) {
    const { ctx } = self;
    for (const { low, high, color: tint } of this.lines) {
      if (!low || !high) continue;
      ctx.save();
      ctx.strokeStyle = tint;
      ctx.lineWidth = devicePixelRatio * 1.25;
      for (const [row, from] of low.entries()) {
        const to = high[row];
        if (from === null || to === null || to === undefined) continue;
        const x = Math.round(self.valToPos(self.data[0][row], "x", true));
        if (x < self.bbox.left || x > self.bbox.left + self.bbox.width) continue;
        const [top, bottom] = [self.valToPos(to, "y", true), self.valToPos(from, "y", true)];
        const cap = 4 * devicePixelRatio;
        ctx.beginPath();
        ctx.moveTo(x, top);
        ctx.lineTo(x, bottom);
        for (const y of [top, bottom]) {
          ctx.moveTo(x - cap, y);
          ctx.lineTo(x + cap, y);
        }
        ctx.stroke();
      }
      ctx.restore();
    }
  }

  #resize() {
    if (!this.plot || this.place.clientWidth === 0) return;
    if (Math.abs(this.plot.width - this.place.clientWidth) > 1)
      this.plot.setSize({ width: this.place.clientWidth, height: this.plot.height });
  }

  get last() {
    return this.steps[this.steps.length - 1];
  }

  /** @param {KeyboardEvent} event */
  #key(event) {
    const { plot } = this;
    if (!plot) return;
    const by = { ArrowLeft: -1, ArrowRight: 1, Home: -this.steps.length, End: this.steps.length }[event.key];
    const at = plot.cursor.idx ?? this.steps.length - 1;
    if (by !== undefined) {
      event.preventDefault();
      event.stopPropagation();
      const row = Math.max(0, Math.min(this.steps.length - 1, at + by));
      plot.setCursor({ left: plot.valToPos(this.steps[row], "x"), top: plot.over.clientHeight / 2 });
      const values = this.lines.map(
        ({ label, values: list, format }) => `${label} ${(format ?? this.options.format ?? show)(list[row] ?? null)}`,
      );
      say(`step ${this.steps[row]}: ${values.join(", ")}`);
    } else if (event.key === "Enter" && this.options.onStep) this.options.onStep(this.steps[at]);
  }
}

/**
 * At least what is asked for, wider where the values go beyond.
 * @param {readonly [number | null, number | null] | undefined} range @returns {uPlot.Range.Function}
 */
function yRange(range) {
  return (_, low, high) => {
    let bottom = range?.[0] ?? low ?? 0;
    let top = range?.[1] ?? high ?? 1;
    if (low !== null) bottom = Math.min(bottom, low);
    if (high !== null) top = Math.max(top, high);
    if (bottom === top) {
      const room = Math.abs(bottom) * 0.1 || 1;
      return [bottom - room, top + room];
    }
    const room = (top - bottom) * 0.06;
    return [range?.[0] === bottom ? bottom : bottom - room, range?.[1] === top ? top : top + room];
  };
}

/** How strongly curves can be smoothed. @param {number} weight @param {(weight: number) => void} onChoose */
export const smoothingPicker = (weight, onChoose) =>
  picker(
    "smoothing",
    [0, 0.6, 0.9, 0.97].map((value) => [value, value === 0 ? "none" : String(value)]),
    weight,
    (value) => onChoose(Number(value)),
  );

/**
 * A figure of every evaluation that has it, with its interval where it is Pass@1.
 * @param {string} metric @param {readonly Evaluation[]} evaluations
 */
export function evaluated(metric, evaluations) {
  const known = evaluations.filter(({ metrics }) => metrics[metric] !== undefined);
  const figure = (/** @type {string} */ name) => known.map(({ metrics }) => metrics[name] ?? null);
  return {
    steps: known.map(({ step }) => step),
    values: figure(metric),
    ...(metric === "eval/pass@1" && { low: figure(`${metric}_low`), high: figure(`${metric}_high`) }),
  };
}

/** An exponential mean that begins unbiased. @param {(number | null)[]} values @param {number} weight */
export function smoothed(values, weight) {
  if (weight <= 0) return values;
  let mean = 0;
  let total = 0;
  return values.map((value) => {
    if (value === null) return total > 0 ? mean / total : null;
    mean = mean * weight + value * (1 - weight);
    total = total * weight + (1 - weight);
    return mean / total;
  });
}
