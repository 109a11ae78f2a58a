// Evaluations: Pass@1 of each; of two of them also by source, and the problems that were gained and lost in between.
// @ts-check
import { ask, runPath } from "./api.js";
import { h, inAddress, interval, pass1Of, percent, picker, replace, show, signed, table, untrusted } from "./dom.js";
import { walkable } from "./keys.js";
import { groupRow } from "./step.js";

/** @import { Info } from "../info.ts" */
/** @import { Comparison } from "../problems.ts" */
/** @import { EvaluationDetail } from "../routes.ts" */

/** @type {import("./app.js").View} */
export async function evaluationsView(place, context) {
  /** @type {Info} */
  const { evaluations } = await ask(runPath(context.run), { signal: context.signal });
  context.title(`evaluations · ${context.run}`);
  if (evaluations.length === 0) {
    place.append(
      h("h1", "Evaluations"),
      h("p.quiet", "No evaluation is over yet. eval_every says how often the run is measured."),
    );
    return;
  }
  const steps = evaluations.map(({ step }) => step);
  let from = Number(context.query.get("a") ?? steps[0]);
  let to = Number(context.query.get("b") ?? steps.at(-1));
  const result = h("div");
  const compare = async () => {
    history.replaceState(null, "", `${context.link("evals")}?a=${from}&b=${to}`);
    /** @type {Comparison} */
    const { rows, sources } = await ask(`${runPath(context.run)}/evals/${from}/${to}`, { signal: context.signal });
    replace(result, drawSources(sources, from, to), drawComparison(rows, from, to, context));
  };
  const choices = steps.map((step) => [step, `step ${step}`]);
  const a = picker("from", choices, from, (step) => {
    from = Number(step);
    void compare();
  });
  const b = picker("to", choices, to, (step) => {
    to = Number(step);
    void compare();
  });
  place.append(
    h("h1", "Evaluations"),
    table(
      "Evaluations",
      ["policy", "Pass@1, 95% interval", "problems", "format", "cut", "seconds"],
      evaluations.map(({ step, metrics, start, end, final }) => [
        [
          h("a", { href: context.link(`eval/${step}`) }, `after step ${step}`),
          final && step === steps.at(-1) ? " (last)" : "",
        ],
        interval(pass1Of(metrics)),
        show(metrics["eval/n"]),
        percent(metrics["eval/format_rate"]),
        percent(metrics["eval/truncated_rate"]),
        ((end - start) / 1000).toFixed(1),
      ]),
    ),
    h("div.row", h("h2", "Two evaluations"), a, b),
    result,
  );
  await compare();
}

/** Pass@1 of each source in both. @param {Comparison["sources"]} sources @param {number} from @param {number} to */
const drawSources = (sources, from, to) =>
  table(
    "Pass@1 by source",
    ["source", "problems", `after step ${from}`, `after step ${to}`, "change"],
    sources.map(({ source, before, after }) => [
      untrusted(source),
      show((after ?? before)?.problems),
      interval(before),
      interval(after),
      before && after ? `${signed(Number((100 * (after.rate - before.rate)).toFixed(1)))} points` : "–",
    ]),
  );

/** @param {Comparison["rows"]} rows @param {number} from @param {number} to @param {import("./app.js").Context} context */
function drawComparison(rows, from, to, context) {
  const known = rows.flatMap(({ before, after, ...row }) =>
    before === null || after === null ? [] : [{ ...row, before, after }],
  );
  const sets = [
    { title: "Gained", kind: "good", list: known.filter(({ before, after }) => after > before) },
    { title: "Lost", kind: "bad", list: known.filter(({ before, after }) => after < before) },
    { title: "Solved in both", kind: "", list: known.filter(({ before, after }) => after === before && after > 0) },
    {
      title: "Solved in neither",
      kind: "",
      list: known.filter(({ before, after }) => after === before && after === 0),
    },
  ];
  return h(
    "div.sets",
    sets.map(({ title, kind, list }) =>
      h(
        "section.card",
        h("h3", { class: kind }, `${title}: ${list.length}`),
        h(
          "ul.plain",
          list
            .slice(0, 400)
            .map(({ id, before, after, groupBefore, groupAfter }) =>
              h(
                "li",
                h("a", { href: context.link(`problem/${inAddress(id)}`) }, untrusted(id)),
                " ",
                h(
                  "span.quiet",
                  h("a", { href: context.link(`eval/${from}/group/${groupBefore}`) }, percent(before)),
                  " → ",
                  h("a", { href: context.link(`eval/${to}/group/${groupAfter}`) }, percent(after)),
                ),
              ),
            ),
        ),
      ),
    ),
  );
}

/** @type {import("./app.js").View} */
export async function evaluationView(place, context) {
  const [step] = context.numbers;
  /** @type {EvaluationDetail} */
  const data = await ask(`${runPath(context.run)}/eval/${step}`, { signal: context.signal });
  context.title(`evaluation ${step} · ${context.run}`);
  context.crumbs.push(
    { label: "Evaluations", path: "evals" },
    { label: `evaluation at step ${step}`, path: `eval/${step}` },
  );
  const rows = data.groups.map((group) => groupRow(group, `eval/${step}/group/${group.group}`, context.link));
  walkable(context.keys, () => rows);
  place.append(
    h("h1", `Evaluation at step ${step}`),
    data.done
      ? table(
          "Pass@1 by source",
          ["source", "problems", "Pass@1, 95% interval"],
          [
            ["all", show(data.metrics["eval/n"]), interval(pass1Of(data.metrics))],
            ...Object.entries(data.sources).map(([source, rate]) => [
              untrusted(source),
              show(rate.problems),
              interval(rate),
            ]),
          ],
        )
      : h("p", "under way"),
    h("h2", "Problems"),
    h("div.groups", rows),
  );
}
