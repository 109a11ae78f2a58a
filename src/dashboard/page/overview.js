// The overview of a run: findings, where it stands, its curves, its stages over time, its sessions and messages.
// @ts-check
import { ask, runPath } from "./api.js";
import { Chart, color, evaluated, smoothed, smoothingPicker } from "./chart.js";
import { clock, count, h, inAddress, percent, plain, replace, show } from "./dom.js";
import { drawFindings } from "./findings.js";
import { drawGantt } from "./gantt.js";
import { drawMessages, drawReason } from "./sessions.js";

/** @import { MetricChart } from "../../runs/metric-names.ts" */
/** @import { Series } from "../info.ts" */
/** @import { Stages } from "../routes.ts" */

let smoothing = 0;

/** @type {import("./app.js").View} */
export function overview(place, context) {
  const store = /** @type {import("./api.js").RunStore} */ (context.store);
  const onStep = (/** @type {number} */ step) => context.go(`step/${step}`);
  const reason = h("div");
  const findings = h("section.findings", { "aria-label": "Findings" });
  const tiles = h("section.tiles", { "aria-label": "Where the run stands" });
  const grid = h("section.charts", { "aria-label": "Curves" });
  const stages = h("div.gantt-place");
  const messages = h("section.card");

  /** @type {Map<string, Chart>} */
  const charts = new Map();
  const add = (/** @type {string} */ name, /** @type {Chart} */ chart) => {
    charts.set(name, chart);
    grid.append(chart.figure);
    return chart;
  };
  const addMetrics = (/** @type {MetricChart} */ { share, ...chart }) =>
    add(chart.title, new Chart({ ...chart, ...(share ? { format: percent } : {}), onStep }));
  /** @type {{ update: () => void } | null} */
  let own = null;
  /** The server says which charts there are. */
  const build = (/** @type {readonly MetricChart[]} */ [first, ...rest]) => {
    addMetrics(first);
    add(
      "pass@1",
      new Chart({
        title: "Pass@1",
        hint: "test problems, greedy, 95% interval",
        range: [0, 1],
        format: percent,
        sync: "evaluations",
        empty: "No evaluation yet.",
        onStep: (step) => context.go(`eval/${step}`),
      }),
    );
    for (const chart of rest) addMetrics(chart);
    own = ownFigure(context, add("own", new Chart({ title: "Any figure", onStep, empty: "Choose a figure." })));
  };

  const choose = smoothingPicker(smoothing, (weight) => {
    smoothing = weight;
    draw();
  });
  place.append(
    h("h1.offscreen", `Run ${plain(context.run)}`),
    reason,
    findings,
    tiles,
    h(
      "div.row",
      h("h2", "Curves"),
      h("span.quiet", "drag to zoom, double-click for all"),
      h("span.room"),
      h("span.quiet", choose),
    ),
    grid,
    h("section.card", gantt(context, stages, onStep)),
    messages,
  );

  const draw = () => {
    const { steps, columns } = store;
    const values = (/** @type {string} */ name) => columns[name] ?? steps.map(() => null);
    if (store.info && charts.size === 0) build(store.info.charts);
    for (const { title, lines, stacked } of store.info?.charts ?? []) {
      const drawn = lines.flatMap(([name, label, tint]) => {
        const line = { label, values: values(name), color: color(tint) };
        if (stacked) return [{ ...line, width: 0.5 }];
        const faint = { ...line, label: `${label} (each step)`, color: `${color(tint)}44`, width: 1 };
        return [...(smoothing > 0 ? [faint] : []), { ...line, values: smoothed(values(name), smoothing) }];
      });
      // The chart has the last area on the ground.
      charts.get(title)?.set(steps, stacked ? drawn.reverse() : drawn);
    }
    drawPass1(charts.get("pass@1"), store);
    drawTiles(tiles, store);
    drawReason(reason, store);
    drawFindings(findings, store.info?.causes ?? [], context);
    drawMessages(messages, store);
    own?.update();
  };
  store.addEventListener("change", draw, { signal: context.signal });
  document.addEventListener(
    "theme",
    () => {
      for (const chart of charts.values()) chart.shape = "";
      draw();
    },
    { signal: context.signal },
  );
  context.onEnd(() => {
    for (const chart of charts.values()) chart.destroy();
  });
  place.addEventListener("shown", draw);
}

/** @param {Chart | undefined} chart @param {import("./api.js").RunStore} store */
function drawPass1(chart, store) {
  const { steps, ...figures } = evaluated("eval/pass@1", store.info?.evaluations ?? []);
  chart?.set(steps, [{ label: "Pass@1", ...figures, color: color("orange"), points: true, dash: true }]);
}

/** @param {HTMLElement} place @param {import("./api.js").RunStore} store */
function drawTiles(place, store) {
  const { info, pulse } = store;
  if (!info || !pulse) return;
  const evaluations = info.evaluations.filter(({ metrics }) => metrics["eval/pass@1"] !== undefined);
  const pass1 = evaluations.at(-1)?.metrics;
  const before = evaluations.length > 1 ? evaluations[0].metrics["eval/pass@1"] : null;
  const tile = (/** @type {string} */ name, /** @type {string} */ value, /** @type {string} */ more = "") =>
    h("div.tile", h("span.tile-name", name), h("span.tile-value", value), h("span.quiet", more));
  const lag = store.last("pipeline/lag");
  const carried = store.last("pipeline/carried_groups");
  const idle = `trainer idle ${percent(store.last("pipeline/train_idle_frac"))}`;
  const cost = store.last("cost/total");
  const underWay = store.last("cost/under_way");
  const most = Number(info.config.max_steps ?? -1);
  const pace = store.last("time/total");
  const newest = info.checkpoints.at(-1);
  replace(
    place,
    tile(
      "step",
      pulse.step < 0 ? "–" : count(pulse.step + 1),
      most < 0 ? "no end set" : most > pulse.step ? `of ${count(most)}` : "",
    ),
    tile("reward", show(store.last("mean_reward")), `format ${percent(store.last("format_rate"))}`),
    tile("correct", percent(store.last("mean_correct")), "of the last step's answers"),
    tile(
      "Pass@1",
      percent(pass1?.["eval/pass@1"]),
      pass1
        ? `${percent(pass1["eval/pass@1_low"])} to ${percent(pass1["eval/pass@1_high"])}${before === null ? "" : `, from ${percent(before)}`}, ${show(pass1["eval/n"])} problems`
        : "not measured yet",
    ),
    tile(
      "mixed groups",
      `${show(store.last("groups_mixed"))} / ${show(store.last("groups_total"))}`,
      "right and wrong answers, last step",
    ),
    tile("time", clock(info.seconds), pace === null ? "" : `${show(pace)} s a step`),
    tile("lag", show(lag), carried === null ? idle : `${count(carried)} groups carried over, ${idle}`),
    cost === null
      ? null
      : tile(
          "money",
          `$${show(cost)}`,
          underWay ? `at most $${show(underWay)} more is under way` : "up to the newest step",
        ),
    tile("checkpoints", count(info.checkpoints.length), newest ? `newest after step ${newest.step}` : "none yet"),
  );
}

/** Any of the run's figures. @param {import("./app.js").Context} context @param {Chart} chart */
function ownFigure(context, chart) {
  const store = /** @type {import("./api.js").RunStore} */ (context.store);
  const select = /** @type {HTMLSelectElement} */ (
    h("select", { "aria-label": "Figure to draw", onchange: () => void load() })
  );
  chart.heading.after(select);
  let offered = "";
  let rows = -1;
  const load = async () => {
    if (select.value === "") return;
    rows = store.steps.length;
    const chosen = store.info?.metrics.find(({ name }) => name === select.value);
    select.title = chosen?.meaning ?? "";
    /** @type {Series | null} */
    const slice = await ask(`${runPath(context.run)}/series?name=${inAddress(select.value)}`, {
      signal: context.signal,
    }).catch(() => null);
    if (slice)
      chart.set(slice.steps, [
        {
          label: select.value,
          values: slice.columns[select.value] ?? slice.steps.map(() => null),
          color: color("blue"),
        },
      ]);
  };
  return {
    update() {
      const metrics = store.info?.metrics ?? [];
      const names = metrics.map(({ name }) => name).join();
      if (names !== offered) {
        offered = names;
        const kept = select.value || context.query.get("figure") || "";
        replace(
          select,
          h("option", { value: "" }, "choose…"),
          metrics.map(({ name }) => h("option", { value: name, selected: name === kept }, plain(name))),
        );
      }
      if (select.value !== "" && rows !== store.steps.length) void load();
    },
  };
}

/** The stages of the last steps; earlier ones by two buttons. @param {import("./app.js").Context} context @param {HTMLElement} place @param {(step: number) => void} onStep */
function gantt(context, place, onStep) {
  const store = /** @type {import("./api.js").RunStore} */ (context.store);
  const window_ = 24;
  /** @type {number | null} */
  let to = null;
  let drawn = "";
  const range = h("span.quiet");
  const load = async () => {
    const end = to ?? store.steps.length;
    const wanted = `${end} ${place.clientWidth}`;
    if (wanted === drawn || store.steps.length === 0) return;
    drawn = wanted;
    /** @type {Stages | null} */
    const data = await ask(`${runPath(context.run)}/spans?from=${Math.max(0, end - window_)}&to=${end}`, {
      signal: context.signal,
    }).catch(() => null);
    if (!data) return;
    drawGantt(place, data, onStep);
    const last = data.steps.at(-1);
    range.textContent = last ? `steps ${data.steps[0].step} to ${last.step}; right: share of the time at work` : "";
  };
  const move = (/** @type {number} */ by) => {
    const next = Math.max(Math.min(window_, store.steps.length), (to ?? store.steps.length) + by);
    to = next >= store.steps.length ? null : next;
    void load();
  };
  store.addEventListener("change", () => void load(), { signal: context.signal });
  document.addEventListener("theme", () => void load(), { signal: context.signal });
  window.addEventListener("resize", () => void load(), { signal: context.signal });
  setTimeout(() => void load());
  return [
    h(
      "div.row",
      h("h2", "Stages"),
      range,
      h("span.room"),
      h("button", { type: "button", onclick: () => move(-window_) }, "earlier"),
      h("button", { type: "button", onclick: () => move(window_) }, "later"),
    ),
    place,
  ];
}
