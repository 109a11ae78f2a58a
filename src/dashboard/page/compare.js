// Two or more runs in one chart, what they came to, and the settings in which they differ; with a warning where figures do not compare.
// @ts-check
import { ask, runPath } from "./api.js";
import { Chart, color, evaluated, smoothed, smoothingPicker } from "./chart.js";
import {
  count,
  h,
  inAddress,
  interval,
  pass1Of,
  percent,
  picker,
  plain,
  replace,
  show,
  table,
  untrusted,
} from "./dom.js";
import { worstError } from "./findings.js";

/** @import { Evaluation, Info, Pulse, Series } from "../info.ts" */
/** @import { ListedRun } from "../run-list.ts" */

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

/** Settings without which figures of two runs do not compare. The sandbox is one where it is a judge of the run's own. */
const incomparable = [
  { what: "Pass@1 was measured on other test problems", keys: ["eval_ids_hash", "test_fingerprint"] },
  {
    what: "Pass@1 was measured in another way",
    keys: ["eval_num_samples", "eval_temperature", "eval_max_tokens", "comparator", "max_tests", "reward_timeout"],
  },
  {
    what: "rewards were given by other rules",
    keys: ["reward", "format_coef", "comparator", "max_tests", "reward_timeout", "sandbox"],
  },
  { what: "rewards are for other training problems", keys: ["data_fingerprint"] },
];
const isOwn = (/** @type {{ info: Info }} */ { info }) => String(info.config.sandbox).startsWith("own");

/** @type {import("./app.js").View} */
export async function compareView(place, context) {
  /** @type {{ runs: ListedRun[] }} */
  const { runs } = await ask("runs", { signal: context.signal });
  const ids = runs.map(({ id }) => id);
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
  const table = h("div");
  const draw = async () => {
    history.replaceState(
      null,
      "",
      `#/compare?${chosen.map((id) => `run=${inAddress(id)}`).join("&")}&metric=${inAddress(metric)}`,
    );
    const all = await Promise.all(
      chosen.map(async (id) => {
        /** @type {[Info & Pulse, Series]} */
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
      all.map(({ id, steps: list, values, low, high }, index) => {
        const at = new Map(list.map((step, row) => [step, values[row]]));
        const at_ = (/** @type {(number | null)[] | undefined} */ column) =>
          column && steps.map((step) => column[list.indexOf(step)] ?? null);
        return {
          label: plain(id),
          low: at_(low),
          high: at_(high),
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
    "fieldset.row",
    h("legend", "Runs"),
    ids.map((id) =>
      h(
        "label",
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
    h("h1", "Compare runs"),
    boxes,
    h(
      "div.row",
      picker(
        "figure",
        names.map((name) => [name, plain(name)]),
        metric,
        (name) => {
          metric = name;
          void draw();
        },
      ),
      smoothingPicker(weight, (chosenWeight) => {
        weight = chosenWeight;
        void draw();
      }),
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
  if (runs.some(({ id, pid }) => pid !== null && chosen.includes(id))) {
    const timer = setInterval(() => void draw().catch(() => {}), refreshMs);
    context.onEnd(() => clearInterval(timer));
  }
}

/**
 * @typedef {(number | null)[]} Column
 * @typedef {{ id: string, info: Info & Pulse, series: Series }} Compared
 * @param {string} metric @param {Info} info @param {Series} series @returns {{ steps: number[], values: Column, low?: Column, high?: Column }}
 */
function pointsOf(metric, info, series) {
  if (!metric.startsWith("eval/"))
    return { steps: series.steps, values: series.columns[metric] ?? series.steps.map(() => null) };
  return evaluated(metric, info.evaluations);
}

/** Where they came to, and the settings in which they differ. @param {HTMLElement} place @param {Compared[]} all */
function drawTable(place, all) {
  const keys = [...new Set(all.flatMap(({ info }) => Object.keys(info.config)))];
  const differing = keys.filter(
    (key) =>
      new Set(all.map(({ info }) => JSON.stringify(info.config[key]))).size > 1 &&
      !["log_path", "wandb_run_id", "started_at"].includes(key),
  );
  /** @param {Compared} one @param {string} name @param {(value: number) => string} text */
  const tail = ({ series, info }, name, text) => {
    const values = (series.columns[name] ?? []).filter((value) => value !== null).slice(-5);
    if (values.length === 0) return "–";
    const mean = values.reduce((sum, value) => sum + value, 0) / values.length;
    const answers = values.length * Number(info.config.prompts_per_step) * Number(info.config.completions_per_prompt);
    return [text(mean), quiet(Number.isFinite(answers) ? ` ${count(answers)} answers` : "")];
  };
  const quiet = (/** @type {string} */ text) => h("span.quiet", text);
  /** @type {[string, (one: Compared) => import("./dom.js").Child][]} */
  const facts = [
    [
      "state",
      ({ info }) => {
        const worst = worstError(info);
        return [info.state, worst ? `, ${plain(worst.id)}` : ""];
      },
    ],
    ["steps", ({ info }) => String(info.step + 1)],
    ["reward, last 5 steps", (one) => tail(one, "mean_reward", show)],
    ["correct, last 5 steps", (one) => tail(one, "mean_correct", percent)],
    ["Pass@1, first", ({ info }) => evaluationCell(info.evaluations.at(0))],
    ["Pass@1, last", ({ info }) => evaluationCell(info.evaluations.at(-1))],
    ["hours", ({ info }) => show(info.seconds / 3600)],
  ];
  const warnings = incomparable.flatMap(({ what, keys: its }) => {
    const differ = its.filter((key) => differing.includes(key) && (key !== "sandbox" || all.some(isOwn)));
    return differ.length === 0 ? [] : [{ what, differ }];
  });
  replace(
    place,
    warnings.map(({ what, differ }) =>
      h(
        "p.finding.warning",
        h("span.mark", { "aria-hidden": "true" }, "!"),
        h("strong", "Not comparable: "),
        `${what} (${differ.join(", ")}).`,
      ),
    ),
    table(
      "Compared figures and settings",
      ["", ...all.map(({ id }) => h("a", { href: `#/run/${inAddress(id)}` }, untrusted(id)))],
      [
        ...facts.map(([label, value]) => [label, ...all.map(value)]),
        ...differing.map((key) => [
          h("code", untrusted(key)),
          ...all.map(({ info }) => h("code", untrusted(JSON.stringify(info.config[key]) ?? "–"))),
        ]),
      ],
    ),
  );
}

/** @param {Evaluation | undefined} evaluation */
const evaluationCell = (evaluation) => {
  const pass1 = pass1Of(evaluation?.metrics);
  return evaluation && pass1
    ? [interval(pass1), h("span.quiet", `, ${show(pass1.n)} problems after step ${evaluation.step}`)]
    : "–";
};
