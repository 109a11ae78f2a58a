// One step: its figures, and its groups with a sign for every answer.
// @ts-check
import { ask, runPath } from "./api.js";
import { h, inAddress, percent, plain, show, untrusted } from "./dom.js";
import { walkable } from "./keys.js";
import { badge, chip, outcomes } from "./verdict.js";

/** @import { Group } from "../details.ts" */
/** @import { Step } from "../routes.ts" */

/** @type {import("./app.js").View} */
export async function stepView(place, context) {
  const {
    numbers: [step],
    link,
    go,
    keys,
  } = context;
  /** @type {Step} */
  const data = await ask(`${runPath(context.run)}/step/${step}`, { signal: context.signal });
  context.title(`step ${step} · ${context.run}`);
  context.crumbs.push({ label: "Overview", path: "" }, { label: `step ${step}`, path: `step/${step}` });
  const { metrics } = data;
  const figure = (/** @type {string} */ label, /** @type {string} */ value) =>
    h("div.tile.small", h("span.tile-name", label), h("span.tile-value", value));
  const statuses = Object.entries(metrics).filter(([name]) => name.startsWith("grade/status/"));
  if (data.previous !== null) keys.ArrowLeft = () => go(`step/${data.previous}`);
  if (data.next !== null) keys.ArrowRight = () => go(`step/${data.next}`);
  const rows = data.groups.map((group) => groupRow(group, `step/${group.batch}/group/${group.group}`, link));
  walkable(keys, () => rows);
  place.append(
    h(
      "div.row",
      h("h1", `Step ${step}`),
      data.done ? null : h("span.badge.waiting", "under way"),
      h("span.room"),
      data.previous === null
        ? null
        : h("a.button", { href: link(`step/${data.previous}`), rel: "prev" }, `← ${data.previous}`),
      data.next === null ? null : h("a.button", { href: link(`step/${data.next}`), rel: "next" }, `${data.next} →`),
    ),
    h(
      "section.tiles",
      { "aria-label": "Figures of the step" },
      figure("reward", show(metrics.mean_reward)),
      figure("correct", percent(metrics.mean_correct)),
      figure("format", percent(metrics.format_rate)),
      figure("loss", show(metrics.loss)),
      figure("KL", show(metrics["optim/kl_sample_train_v1"])),
      figure("lag", show(metrics["pipeline/lag"])),
      metrics["episode/turns_mean"] === undefined ? null : figure("turns", show(metrics["episode/turns_mean"])),
      figure("seconds", show(metrics["time/total"])),
      figure("learning rate", show(data.learningRate)),
    ),
    statuses.length > 0
      ? h(
          "p",
          statuses.map(([name, value]) => {
            const status = name.slice("grade/status/".length);
            return badge({ verdict: verdictOf(data.groups, status), status }, ` ${value}`);
          }),
        )
      : h("span"),
    h("h2", "Groups"),
    h("div.groups", rows),
    h(
      "details.card",
      h("summary", "All figures"),
      h(
        "table.figures",
        h(
          "tbody",
          Object.entries(metrics)
            .sort(([a], [b]) => (a < b ? -1 : 1))
            .map(([name, value]) =>
              h(
                "tr",
                h("th", { scope: "row" }, plain(name)),
                h("td", typeof value === "number" ? show(value, 5) : plain(value)),
              ),
            ),
        ),
      ),
    ),
  );
}

/** The verdict that answers with a status have. @param {Group[]} groups @param {string} status */
const verdictOf = (groups, status) =>
  groups.flatMap(({ samples }) => samples).find((sample) => sample.status === status)?.verdict ?? null;

/** @param {Group} group @param {string} path @param {(path: string) => string} link */
export function groupRow(group, path, link) {
  const passed = group.samples.filter(({ verdict }) => verdict === "pass").length;
  return h(
    "article.group-row",
    h(
      "div.group-head",
      h("a", { href: link(path) }, `group ${group.group}`),
      h("a.problem", { href: link(`problem/${inAddress(group.problem)}`) }, untrusted(group.problem)),
      h("span.quiet", untrusted(group.source)),
    ),
    group.question === null ? null : h("p.question", untrusted(group.question)),
    h(
      "div.chips",
      group.samples.map((sample) => chip(sample, link(`${path}/sample/${sample.sample}`))),
    ),
    h(
      "div.group-end",
      group.outcome
        ? h("span", { class: `outcome ${group.outcome}` }, outcomes[group.outcome] ?? plain(group.outcome))
        : null,
      h("span.quiet", `${passed} of ${group.samples.length}`),
      h("span.quiet", `policy ${group.policy}`),
      group.trainedIn === group.batch
        ? null
        : h("span.badge.waiting", `of step ${group.batch}, trained on in step ${group.trainedIn}`),
    ),
  );
}
