// Two or more runs in one chart, and the settings in which they differ.
// @ts-check
import { ask, runPath } from "./api.js";
import { Chart, color, smoothed } from "./chart.js";
import { h, inAddress, percent, plain, replace, show, untrusted } from "./dom.js";

const tints = ["blue", "orange", "green", "violet", "red", "teal", "gray"];
const offered = [
  "mean_reward",
  "mean_correct",
  "format_rate",
  "eval/pass@1",
  "groups_mixed",
  "loss",
  "optim/kl_sample_train_v1",
  "optim/entropy",
  "optim/effective_sample_size",
  "sample/tokens_mean",
  "time/total",
];
const refreshMs = 3000;

/** @type {import("./app.js").View} */
export async function compareView(place, context) {
  const { runs } = await ask("runs", { signal: context.signal });
  /** @type {string[]} */
  const ids = runs.map((/** @type {any} */ { id }) => id);
  /** @type {string[]} */
  let chosen = context.query.getAll("run").filter((id) => ids.includes(id));
  if (chosen.length < 2) chosen = [...new Set([...chosen, ...ids])].slice(0, 2);
  let metric = context.query.get("metric") ?? "mean_reward";
  let weight = 0;
  context.title("Compare");
  const chart = new Chart({
    title: "Compared",
    height: 340,
    sync: "compare",
    onStep: (step) => chosen.length > 0 && context.go(`#/run/${inAddress(chosen[0])}/step/${step}`),
  });
  context.onEnd(() => chart.destroy());
  const table = h("div", {});
  const draw = async () => {
    history.replaceState(
      null,
      "",
      `#/compare?${chosen.map((id) => `run=${inAddress(id)}`).join("&")}&metric=${inAddress(metric)}`,
    );
    const all = await Promise.all(
      chosen.map(async (id) => {
        const [info, series] = await Promise.all([
          ask(runPath(id), { signal: context.signal }),
          ask(`${runPath(id)}/series?name=${inAddress(metric)}&name=mean_reward&name=mean_correct`, {
            signal: context.signal,
          }),
        ]);
        return { id, info, ...pointsOf(metric, info, series), series };
      }),
    );
    const steps = [...new Set(all.flatMap(({ steps: list }) => list))].sort((a, b) => a - b);
    const sparse = metric.startsWith("eval/");
    chart.heading.textContent = metric;
    chart.set(
      steps,
      all.map(({ id, steps: list, values }, index) => {
        const at = new Map(list.map((step, row) => [step, values[row]]));
        return {
          label: plain(id),
          values: smoothed(
            steps.map((step) => at.get(step) ?? null),
            weight,
          ),
          color: color(tints[index % tints.length]),
          points: sparse,
          dash: sparse,
        };
      }),
    );
    drawTable(table, all);
  };
  const boxes = h(
    "fieldset",
    { class: "row" },
    h("legend", {}, "Runs"),
    ids.map((id) =>
      h(
        "label",
        {},
        h("input", {
          type: "checkbox",
          checked: chosen.includes(id),
          onchange: (/** @type {Event} */ event) => {
            chosen = /** @type {HTMLInputElement} */ (event.target).checked
              ? [...chosen, id]
              : chosen.filter((one) => one !== id);
            void draw();
          },
        }),
        " ",
        untrusted(id),
      ),
    ),
  );
  const names = [...new Set([metric, ...offered])];
  place.append(
    h("h1", {}, "Compare runs"),
    boxes,
    h(
      "div",
      { class: "row" },
      h(
        "label",
        {},
        "figure ",
        h(
          "select",
          {
            onchange: (/** @type {Event} */ event) => {
              metric = /** @type {HTMLSelectElement} */ (event.target).value;
              void draw();
            },
          },
          names.map((name) => h("option", { value: name, selected: name === metric }, plain(name))),
        ),
      ),
      h(
        "label",
        {},
        "smoothing ",
        h(
          "select",
          {
            onchange: (/** @type {Event} */ event) => {
              weight = Number(/** @type {HTMLSelectElement} */ (event.target).value);
              void draw();
            },
          },
          [0, 0.6, 0.9, 0.97].map((value) =>
            h("option", { value: String(value) }, value === 0 ? "none" : String(value)),
          ),
        ),
      ),
    ),
    chart.figure,
    table,
  );
  place.addEventListener("shown", () => void draw());
  document.addEventListener(
    "theme",
    () => {
      chart.shape = "";
      void draw();
    },
    { signal: context.signal },
  );
  if (runs.some((/** @type {any} */ { id, pid }) => pid !== null && chosen.includes(id))) {
    const timer = setInterval(() => void draw().catch(() => {}), refreshMs);
    context.onEnd(() => clearInterval(timer));
  }
}

/** @param {string} metric @param {any} info @param {any} series @returns {{ steps: number[], values: (number | null)[] }} */
function pointsOf(metric, info, series) {
  if (!metric.startsWith("eval/"))
    return { steps: series.steps, values: series.columns[metric] ?? series.steps.map(() => null) };
  const known = info.evaluations.filter((/** @type {any} */ { metrics }) => metrics[metric] !== undefined);
  return {
    steps: known.map((/** @type {any} */ { step }) => step),
    values: known.map((/** @type {any} */ { metrics }) => metrics[metric]),
  };
}

/** Where they came to, and the settings in which they differ. @param {HTMLElement} place @param {any[]} all */
function drawTable(place, all) {
  const keys = [...new Set(all.flatMap(({ info }) => Object.keys(info.config)))];
  const differing = keys.filter(
    (key) =>
      new Set(all.map(({ info }) => JSON.stringify(info.config[key]))).size > 1 &&
      !["log_path", "wandb_run_id", "started_at"].includes(key),
  );
  const tail = (/** @type {any} */ series, /** @type {string} */ name) => {
    const values = (series.columns[name] ?? [])
      .filter((/** @type {number | null} */ value) => value !== null)
      .slice(-5);
    return values.length === 0
      ? null
      : values.reduce((/** @type {number} */ sum, /** @type {number} */ value) => sum + value, 0) / values.length;
  };
  /** @type {[string, (one: any) => string][]} */
  const facts = [
    ["state", ({ info }) => info.state],
    ["steps", ({ info }) => String(info.step + 1)],
    ["reward, last 5 steps", ({ series }) => show(tail(series, "mean_reward"))],
    ["correct, last 5 steps", ({ series }) => percent(tail(series, "mean_correct"))],
    ["Pass@1, last", ({ info }) => percent(info.evaluations.at(-1)?.metrics["eval/pass@1"])],
    ["hours", ({ info }) => show(info.seconds / 3600)],
  ];
  replace(
    place,
    h(
      "div",
      { class: "wide", tabindex: "0", role: "region", "aria-label": "Compared figures and settings" },
      h(
        "table",
        { class: "list" },
        h(
          "thead",
          {},
          h(
            "tr",
            {},
            h("th", { scope: "col" }, ""),
            all.map(({ id }) => h("th", { scope: "col" }, h("a", { href: `#/run/${inAddress(id)}` }, untrusted(id)))),
          ),
        ),
        h(
          "tbody",
          {},
          facts.map(([label, value]) =>
            h(
              "tr",
              {},
              h("th", { scope: "row" }, label),
              all.map((one) => h("td", {}, untrusted(value(one)))),
            ),
          ),
          differing.map((key) =>
            h(
              "tr",
              {},
              h("th", { scope: "row" }, h("code", {}, untrusted(key))),
              all.map(({ info }) => h("td", {}, h("code", {}, untrusted(JSON.stringify(info.config[key]) ?? "–")))),
            ),
          ),
        ),
      ),
    ),
  );
}
