// The run by problem: a list of all it met, and one with its statement, its solve rate over the run and every attempt.
// @ts-check
import { ask, runPath } from "./api.js";
import { Chart, color } from "./chart.js";
import { count, h, inAddress, percent, replace, table, untrusted } from "./dom.js";
import { statement } from "./group.js";
import { walkable } from "./keys.js";
import { outcomes } from "./verdict.js";

/** @import { Problem } from "../../runs/problems.ts" */
/** @import { ListedProblem } from "../problems.ts" */
/** @import { GroupDetail } from "../routes.ts" */

const rowsFirst = 300;

/** @type {import("./app.js").View} */
export async function problemsView(place, context) {
  /** @type {ListedProblem[]} */
  const problems = await ask(`${runPath(context.run)}/problems`, { signal: context.signal });
  context.title(`problems · ${context.run}`);
  let key = "id";
  let descending = false;
  let wanted = "";
  let most = rowsFirst;
  const rate = (/** @type {ListedProblem} */ problem) => (problem.graded > 0 ? problem.passed / problem.graded : null);
  /** @type {Record<string, (problem: ListedProblem) => string | number>} */
  const values = {
    id: ({ id }) => id,
    attempts: ({ attempts }) => attempts,
    rate: (problem) => rate(problem) ?? -1,
    lastStep: ({ lastStep }) => lastStep ?? -1,
    evaluated: ({ evaluated }) => evaluated?.last ?? -1,
  };
  const body = h("tbody");
  const more = h("button", {
    type: "button",
    onclick: () => {
      most += 2000;
      draw();
    },
  });
  const draw = () => {
    const shown = problems
      .filter(({ id }) => id.toLowerCase().includes(wanted))
      .sort((a, b) => {
        const [x, y] = [values[key](a), values[key](b)];
        return (x < y ? -1 : x > y ? 1 : 0) * (descending ? -1 : 1);
      });
    replace(
      body,
      shown.slice(0, most).map((problem) =>
        h(
          "tr",
          h(
            "th",
            { scope: "row" },
            h("a", { href: context.link(`problem/${inAddress(problem.id)}`) }, untrusted(problem.id)),
          ),
          h("td", count(problem.attempts)),
          h("td", bar(rate(problem))),
          h(
            "td",
            Object.entries(problem.outcomes).map(([name, amount]) =>
              h("span", { class: `outcome ${name}` }, `${outcomes[name] ?? name} ${amount}`),
            ),
          ),
          h("td", problem.lastStep ?? "–"),
          h("td", problem.evaluated ? `${percent(problem.evaluated.first)} → ${percent(problem.evaluated.last)}` : "–"),
        ),
      ),
    );
    more.hidden = shown.length <= most;
    more.textContent = `show ${shown.length - most} more`;
  };
  const head = (/** @type {string} */ label, /** @type {string | null} */ by) =>
    h(
      "th",
      { scope: "col" },
      by === null
        ? label
        : h(
            "button",
            {
              type: "button",
              class: "sort",
              onclick: () => {
                descending = key === by ? !descending : by !== "id";
                key = by;
                draw();
              },
            },
            label,
          ),
    );
  walkable(context.keys, () => [.../** @type {NodeListOf<HTMLElement>} */ (body.querySelectorAll("tr"))]);
  place.append(
    h(
      "div.row",
      h("h1", "Problems"),
      h("span.quiet", `${count(problems.length)} met so far`),
      h("span.room"),
      h("input", {
        type: "search",
        placeholder: "find",
        "aria-label": "Find problems",
        oninput: (/** @type {Event} */ event) => {
          wanted = /** @type {HTMLInputElement} */ (event.target).value.toLowerCase();
          draw();
        },
      }),
    ),
    h(
      "div.wide",
      { tabindex: "0", role: "region", "aria-label": "Problems" },
      h(
        "table.list",
        h(
          "thead",
          h(
            "tr",
            head("problem", "id"),
            head("attempts", "attempts"),
            head("solved while training", "rate"),
            head("groups", null),
            head("last step", "lastStep"),
            head("evaluated, first → last", "evaluated"),
          ),
        ),
        body,
      ),
    ),
    more,
  );
  draw();
}

/** @param {number | null} share */
function bar(share) {
  if (share === null) return h("span.quiet", "–");
  const meter = h("span.meter", { "aria-hidden": "true" }, h("span.meter-bar"));
  /** @type {HTMLElement} */ (meter.firstElementChild).style.width = `${100 * share}%`;
  return h("span.meter-row", meter, percent(share));
}

/** @type {import("./app.js").View} */
export async function problemView(place, context) {
  const id = context.words[1];
  /** @type {Problem} */
  const data = await ask(`${runPath(context.run)}/problem?id=${inAddress(id)}`, { signal: context.signal });
  context.title(`problem · ${context.run}`);
  context.crumbs.push(
    { label: "Problems", path: "problems" },
    { label: id.slice(0, 80), path: `problem/${inAddress(id)}` },
  );
  const chart = new Chart({
    title: "Solve rate over the run",
    hint: "share of each group's judged answers that passed; a click opens the group",
    range: [0, 1],
    format: percent,
    sync: "problem",
    onStep: (step) => {
      const attempt = data.attempts.find((one) => one.step === step);
      const evaluation = data.evaluations.find((one) => one.step === step);
      if (attempt) context.go(`step/${step}/group/${attempt.group}`);
      else if (evaluation) context.go(`eval/${step}/group/${evaluation.group}`);
    },
  });
  context.onEnd(() => chart.destroy());
  const newest = data.attempts.at(-1);
  const measured = data.evaluations.at(-1);
  const source = newest
    ? `step/${newest.step}/group/${newest.group}`
    : `eval/${measured?.step}/group/${measured?.group}`;
  const prompt = h("div");
  void ask(`${runPath(context.run)}/${source}`, { signal: context.signal }).then(
    (group) => replace(prompt, statement(group)),
    () => {},
  );
  const rows = data.attempts.map(({ step, group, outcome, skipped, graded, passed }) => [
    h("a", { href: context.link(`step/${step}/group/${group}`) }, `step ${step}, group ${group}`),
    graded >= 0 ? `${passed} of ${graded}` : "–",
    h("span", { class: `outcome ${outcome}` }, outcomes[outcome] ?? outcome),
    skipped ? "not trained on" : "trained on",
  ]);
  const evaluations = data.evaluations.map(({ step, group, passed, samples, ungraded }) => [
    h("a", { href: context.link(`eval/${step}/group/${group}`) }, `evaluation at step ${step}`),
    samples > 0 ? `${passed} of ${samples}` : "–",
    ungraded > 0 ? `${ungraded} ungraded` : "",
    "",
  ]);
  const attempts = table(
    "Attempts",
    ["where", "passed", "group", "update"],
    [...rows.reverse(), ...evaluations.reverse()],
  );
  walkable(context.keys, () => [.../** @type {NodeListOf<HTMLElement>} */ (attempts.querySelectorAll("tbody tr"))]);
  place.append(
    h("h1.problem-title", untrusted(id)),
    prompt,
    chart.figure,
    h("section.card", h("h2", `${data.attempts.length} attempts, ${data.evaluations.length} evaluations`), attempts),
  );
  const steps = [...new Set([...data.attempts, ...data.evaluations].map(({ step }) => step))].sort((a, b) => a - b);
  /** @template {{ step: number }} T @param {T[]} list @param {(one: T) => number | null} value */
  const byStep = (list, value) =>
    steps.map((step) => {
      const one = list.find((entry) => entry.step === step);
      return one ? value(one) : null;
    });
  place.addEventListener("shown", () =>
    chart.set(steps, [
      {
        label: "training",
        values: byStep(data.attempts, ({ graded, passed }) => (graded > 0 ? passed / graded : null)),
        color: color("blue"),
        points: true,
      },
      {
        label: "evaluation",
        values: byStep(data.evaluations, ({ samples, passed }) => (samples > 0 ? passed / samples : null)),
        color: color("orange"),
        points: true,
        dash: true,
      },
    ]),
  );
}
